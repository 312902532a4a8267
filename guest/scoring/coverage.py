"""Executed lines, from the rows that the coverage collectors write."""

from __future__ import annotations

import re
from collections.abc import Mapping

CoveredLines = Mapping[str, frozenset[int]]
"""Path from the tree's root -> executed lines, 1-based; a statement over several lines often counts by its first."""

MAX_RANGE = 100_000
_ROW = re.compile(r"^(.+):(\d{1,9})(?:-(\d{1,9}))?$", re.MULTILINE)


def parse_coverage(content: bytes | None) -> CoveredLines | None:
    """Return the executed lines from the content of COVERAGE_FILE; None when there is no such file."""
    if content is None:
        return None
    coverage: dict[str, set[int]] = {}
    for path, first, last in _ROW.findall(content.decode(errors="surrogateescape")):
        start, end = int(first), int(last or first)
        if start <= end < start + MAX_RANGE:
            coverage.setdefault(path, set()).update(range(start, end + 1))
    return {path: frozenset(lines) for path, lines in sorted(coverage.items())}
