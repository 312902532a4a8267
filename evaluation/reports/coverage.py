"""Lines of the tree that a test run executed, from collectors installed in its container (`harness/coverage`).

Python: our own collector, in every process of the run. Go: `go test -coverprofile`, so each package is covered by its
own tests. Node: V8's coverage, for files that are executed untransformed (jest and vitest transform them). Other
languages have no collector. The code under test can see the collectors and forge lines, so coverage may contribute to a
score but must never decide one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from evaluation.harness import HARNESS_FOLDER

CoveredLines = Mapping[str, frozenset[int]]
"""Path from the tree's root -> executed lines, 1-based; a statement over several lines often counts by its first."""

MAX_RANGE = 100_000
_ROW = re.compile(r"^(.+):(\d{1,9})(?:-(\d{1,9}))?$", re.MULTILINE)

COLLECTOR_FILES = ("collect.sh", "_mergemill_coverage.py", "profiles.py")
COVERAGE_FILE = "covered.lines"
"""File that the collectors leave in the report folder: rows `path:line` and `path:first-last`."""


@cache
def load_collectors() -> Mapping[str, bytes]:
    """Return name -> content of the collectors' files; the shell that starts the evaluation sources `collect.sh`."""
    folder = HARNESS_FOLDER / "coverage"
    return {name: (folder / name).read_bytes() for name in COLLECTOR_FILES}


def parse_coverage(content: bytes | None) -> CoveredLines | None:
    """Return the executed lines from the content of COVERAGE_FILE; None when there is no such file."""
    if content is None:
        return None
    found: dict[str, set[int]] = {}
    for path, first, last in _ROW.findall(content.decode(errors="surrogateescape")):
        start, end = int(first), int(last or first)
        if start <= end < start + MAX_RANGE:
            found.setdefault(path, set()).update(range(start, end + 1))
    return {path: frozenset(lines) for path, lines in sorted(found.items())}
