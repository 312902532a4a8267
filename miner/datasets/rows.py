"""Parts that readers of task sets share."""

from __future__ import annotations

import re
from typing import Any

Row = dict[str, Any]
"""Row of a task set, before or after its conversion to SWE-bench's fields."""
_COLOUR = re.compile(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])")
_DURATION = re.compile(
    r"\s+[\[(]\s*\d+(?:\.\d+)?\s*m?s\s*[\])]\s*$|\s+in\s+\d+(?:\.\d+)?\s+(?:msec|sec)\b", re.IGNORECASE
)
"""Durations in the logs of test runners, which differ from run to run."""


def strip_decoration(name: str) -> str:
    """Return the name of a test from a log, without colours and without its duration."""
    return _DURATION.sub("", _COLOUR.sub("", name)).strip()
