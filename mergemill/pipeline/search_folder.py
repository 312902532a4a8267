"""Progress of searches on the driver's disk, from which the next step goes on, also after a kill.

A file for each environment and kind of tasks, `searches/AB/CDEF....json`, with the progress after the last two steps,
each for the tasks that the environment has then. It is written before the tasks of a step are stored, so that
one of the two fits the database whenever the driver ends. Removing the folder costs repeated work, never a result.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from taskdb.artifacts import write_atomically
from taskdb.records import Kind, Task

FOLDER = "searches"


@dataclass(frozen=True)
class SearchFolder:
    """A folder of the progress of searches."""

    folder: Path

    @classmethod
    def below(cls, store: Path) -> SearchFolder:
        """Return the folder in the store's folder."""
        return cls(store / FOLDER)

    def load(self, environment: str, kind: Kind, tasks: Collection[Task]) -> bytes:
        """Return the progress with which the search of an environment goes on; empty for a search that begins.

        Args:
            environment: id of the environment.
            kind: kind of the tasks.
            tasks: all tasks of the kind that it has given.
        """
        text = self._read(environment, kind).get(_make_key([task.id for task in tasks]), "")
        return base64.b64decode(text) if text else b""

    def save(
        self, environment: str, kind: Kind, before: Collection[str], new: Collection[str], progress: bytes
    ) -> None:
        """Store the progress after a step.

        Args:
            environment: id of the environment.
            kind: kind of the tasks.
            before: ids of the tasks that it had before the step.
            new: ids of the tasks that the step adds.
            progress: results of the search so far.

        Raises:
            InputError: writing is not permitted.
            Transient: the disk is full.
        """
        earlier = self._read(environment, kind)
        kept = {key: earlier[key] for key in [_make_key(before)] if key in earlier}
        content = json.dumps(kept | {_make_key([*before, *new]): base64.b64encode(progress).decode()})
        write_atomically(self._path(environment, kind), content.encode(), self.folder)

    def _read(self, environment: str, kind: Kind) -> dict[str, str]:
        """Return key of the tasks -> progress; empty where the file is missing or damaged."""
        try:
            stored = json.loads(self._path(environment, kind).read_bytes())
        except (OSError, ValueError):
            return {}
        return stored if isinstance(stored, dict) else {}

    def _path(self, environment: str, kind: Kind) -> Path:
        digest = hashlib.sha256(f"{environment} {kind}".encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"


def _make_key(tasks: Collection[str]) -> str:
    return hashlib.sha256(" ".join(sorted(tasks)).encode()).hexdigest()
