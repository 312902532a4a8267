"""Which lines of the tree a test run executed, told by collectors that are laid into its box (`harness/coverage`).

Python: a collector of our own, in every process of the run. Go: `go test -coverprofile`, so each package by its own
tests. Node: V8's coverage, for files that run as they stand (jest and vitest transform them). None for other languages.
The collectors are not hidden from the code under test, which could write lines of its own: what is told here may weigh
in a score and must never be what decides it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

Covered = Mapping[str, frozenset[int]]
"""Path from the tree's root -> lines that were executed, 1-based; of a statement over several lines often the first."""

MAX_RANGE = 100_000
_ROW = re.compile(r"^(.+):(\d{1,9})(?:-(\d{1,9}))?$", re.MULTILINE)

FILES = ("collect.sh", "_mergemill_coverage.py", "profiles.py")
LEFT = "covered.lines"
"""Name of what a box leaves: rows `path:line` and `path:first-last`."""


@cache
def collectors() -> Mapping[str, bytes]:
    """What a box needs, by name; `collect.sh` is read by the shell that starts the evaluation."""
    folder = Path(__file__).parent / "harness" / "coverage"
    return {name: (folder / name).read_bytes() for name in FILES}


def covered(content: bytes | None) -> Covered | None:
    """What a box has left; None where it left nothing, because it could not be told."""
    if content is None:
        return None
    found: dict[str, set[int]] = {}
    for path, first, last in _ROW.findall(content.decode(errors="surrogateescape")):
        start, end = int(first), int(last or first)
        if start <= end < start + MAX_RANGE:
            found.setdefault(path, set()).update(range(start, end + 1))
    return {path: frozenset(lines) for path, lines in sorted(found.items())}
