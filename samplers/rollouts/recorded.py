"""Records that the gateway recorded of a rollout.

Its exchanges, the signs that they show of leaks, and whether the upstream failed.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samplers.gateway.exchanges import Exchange, parse_exchange, read_log
from samplers.gateway.process import GatewayUsage
from samplers.gateway.translation import to_chat_answer, to_chat_messages
from samplers.rollouts.leaks import find_leaks
from samplers.rollouts.wordings import RequestTexts, list_wordings
from samplers.subjects.guidance import Guidance
from samplers.subjects.subject import Subject
from samplers.trajectories.requests import get_text
from taskdb.records.rollouts import Leak

UPSTREAM_FAILURES = frozenset(
    ("rate-limit", "server", "connection", "timeout", "cut", "nonsense", "key", "closing", "disk", "bug")
)
"""Failures of a rollout's last request that are not the agent's."""
DISK = "disk"
Chat = tuple[Sequence[Mapping[str, Any]], Mapping[str, Any] | None]
"""Messages of a request, and its answer, in the form of OpenAI's chat completions."""


@dataclass(frozen=True, kw_only=True)
class RecordedTraffic:
    """Exchanges of the last run of a rollout, in order. `raw` is the log with all runs."""

    exchanges: Sequence[Exchange]
    n_doubtful: int
    """Requests of any run that were under way when gateway or machine died."""
    raw: bytes

    def find_upstream_failure(self, usage: GatewayUsage) -> tuple[str, str] | None:
        """Return the failure that ended the rollout where it is the upstream's or the gateway's: reason and detail."""
        if usage.stopped_by == DISK:
            return "disk-full", "the gateway cannot write its log"
        error: Mapping[str, str] | None = usage.last_error if not self.exchanges else None
        if self.exchanges and (last := self.exchanges[-1].error) is not None:
            error = {"kind": last.kind, "detail": last.detail}
        if not error or error["kind"] not in UPSTREAM_FAILURES:
            return None
        return f"upstream-{error['kind']}", error.get("detail", "")

    def find_system(self, text: str) -> int | None:
        """Return the number of the first exchange whose system prompt has a text, white space aside; None for none."""
        wanted = " ".join(text.split())
        for exchange in self.exchanges:
            messages, _ = _read_chat(exchange)
            prompt = " ".join(get_text(message) for message in messages if message.get("role") == "system")
            if wanted and wanted in " ".join(prompt.split()):
                return exchange.exchange
        return None

    def find_delivery(self, guidance: Guidance) -> dict[str, int | None]:
        """Return the number of the first exchange that has each wording of a guidance; None for none.

        The keys are those of `samplers.rollouts.wordings`.
        """
        wordings = list_wordings(guidance)
        delivered: dict[str, int | None] = {wording.key: None for wording in wordings}
        for exchange in self.exchanges:
            missing = [wording for wording in wordings if delivered[wording.key] is None]
            if not missing:
                break
            texts = RequestTexts.of(*to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect))
            delivered |= {wording.key: exchange.exchange for wording in missing if texts.has(wording)}
        return delivered

    def list_chats(self) -> list[Chat]:
        """Return the exchanges in the form of chat completions."""
        return [_read_chat(exchange) for exchange in self.exchanges]

    def find_leaks(self, subject: Subject) -> tuple[Leak, ...]:
        """Return the attempts to get at the secrets that the subject hides; none where the agent has no shell."""
        if not subject.workdir:
            return ()
        return find_leaks(self.list_chats(), hidden_lines=subject.hidden_lines, project=subject.project)


def _read_chat(exchange: Exchange) -> Chat:
    messages, _ = to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect)
    if exchange.response is None:
        return messages, None
    return messages, to_chat_answer(exchange.response, exchange.upstream_dialect)


def read_traffic(path: Path | None) -> RecordedTraffic:
    """Return the records that a log holds; nothing where there is none."""
    if path is None or not path.is_file():
        return RecordedTraffic(exchanges=(), n_doubtful=0, raw=b"")
    raw = path.read_bytes()
    content = read_log(io.BytesIO(raw))
    order = content.runs.get(content.last_run, [])
    exchanges = [parse_exchange(content.ends[number]) for number in order if number in content.ends]
    return RecordedTraffic(exchanges=exchanges, n_doubtful=len(content.find_doubtful()), raw=raw)
