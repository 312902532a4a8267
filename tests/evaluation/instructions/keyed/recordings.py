"""Recorded conversations: the exchanges of a rollout and its patch, in files of compressed lines of JSON."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from samplers.gateway.exchanges import Exchange
from samplers.rollouts.recorded import RecordedTraffic

RECORDINGS = Path(__file__).with_name("recordings")
PLACEHOLDER = "[text of the program]"
"""Text in place of each that is not the task's own."""
KEPT = "kept"
"""End of the name of a recording without the one breach of its conversation."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A recorded conversation."""

    name: str
    """Name of the conversation, with `/kept` behind it for the draft without its one breach."""
    texts: Mapping[str, str]
    """Constraint -> wording that the model was given."""
    patch: str
    exchanges: Sequence[Mapping[str, Any]]
    """Number, request and answer of each exchange, in the form of chat completions."""

    @property
    def traffic(self) -> RecordedTraffic:
        """The exchanges in the form in which a rollout's log has them."""
        return RecordedTraffic(exchanges=[_make_exchange(fields) for fields in self.exchanges], n_doubtful=0, raw=b"")


def _make_exchange(fields: Mapping[str, Any]) -> Exchange:
    return Exchange.model_construct(
        exchange=fields["exchange"],
        upstream_dialect="chat",
        request=json.dumps(fields["request"]),
        response=fields["response"],
        error=None,
    )


def write_recordings(path: Path, recordings: Iterable[Recording]) -> None:
    """Write recordings to a file."""
    lines = [json.dumps(asdict(recording), ensure_ascii=False, sort_keys=True) + "\n" for recording in recordings]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lzma.compress("".join(lines).encode(), preset=9))


def read_recordings() -> Iterator[Recording]:
    """Yield all recordings."""
    for path in sorted(RECORDINGS.glob("*.jsonl.xz")):
        for line in lzma.decompress(path.read_bytes()).decode().splitlines():
            yield Recording(**json.loads(line))
