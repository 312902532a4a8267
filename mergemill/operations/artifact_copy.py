"""Copy all artifacts from one place to another: into a shared store, out of it, or between two."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from core.errors import InputError
from mergemill.execution.progress import CountProgress
from taskdb.artifacts import Artifacts, decompress

BATCH_SIZE = 1000
"""Artifacts that wait for the threads at once."""


@dataclass(frozen=True, kw_only=True)
class ArtifactCopy:
    """Result of a copy."""

    copied: int
    present: int
    """Artifacts that the target had already."""
    unreadable: tuple[str, ...]
    """A line for each artifact that is damaged, or may not be read."""


def copy_artifacts(
    source: Artifacts, target: Artifacts, *, workers: int, make_progress: Callable[[str, int], CountProgress]
) -> ArtifactCopy:
    """Copy the artifacts that the target lacks; a copy that was interrupted goes on where it stopped.

    The hash of each is checked before it is written. `make_progress` makes the progress of a noun and a number.

    Raises:
        InputError: the source cannot be listed, or the target not be written.
        Transient: a store does not answer, or the disk is full.
    """
    target.check(writes=True)
    present = set(target.list_digests())
    listed = set(source.list_digests())
    missing = sorted(listed - present)
    unreadable: list[str] = []
    with ThreadPoolExecutor(workers) as threads, make_progress("artifact", len(missing)) as progress:
        for start in range(0, len(missing), BATCH_SIZE):
            batch = missing[start : start + BATCH_SIZE]
            for problem in threads.map(partial(_copy_artifact, source, target), batch):
                if problem:
                    unreadable.append(problem)
                progress.advance()
    return ArtifactCopy(
        copied=len(missing) - len(unreadable), present=len(listed & present), unreadable=tuple(unreadable)
    )


def _copy_artifact(source: Artifacts, target: Artifacts, digest: str) -> str:
    """Copy an artifact; return why it cannot be read, or nothing."""
    try:
        compressed = source.read_compressed(digest)
        decompress(digest, compressed, source.place)
    except InputError as error:
        return error.format_line()
    target.write_compressed(digest, compressed)
    return ""
