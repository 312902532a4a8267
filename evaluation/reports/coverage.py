"""Lines of the tree that a test run executed, from collectors installed in its container (`harness/coverage`).

Python: our own collector, in every process of the run. Go: `go test -coverprofile`, so each package is covered by its
own tests. Node: V8's coverage, for files that are executed untransformed (jest and vitest transform them). Other
languages have no collector. The code under test can see the collectors and forge lines, so coverage may contribute to a
score but must never decide a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from guest.harness import HARNESS_FOLDER
from guest.scoring.coverage import CoveredLines, parse_coverage

__all__ = ["COLLECTOR_FILES", "COVERAGE_FILE", "CoveredLines", "load_collectors", "parse_coverage"]

COLLECTOR_FILES = ("collect.sh", "_mergemill_coverage.py", "profiles.py")
COVERAGE_FILE = "covered.lines"
"""File that the collectors leave in the report folder: rows `path:line` and `path:first-last`."""


@cache
def load_collectors() -> Mapping[str, bytes]:
    """Return name -> content of the collectors' files; the shell that starts the evaluation sources `collect.sh`."""
    folder = HARNESS_FOLDER / "coverage"
    return {name: (folder / name).read_bytes() for name in COLLECTOR_FILES}
