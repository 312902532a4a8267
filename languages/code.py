"""Differences between two versions of a source file."""

from __future__ import annotations

from enum import IntEnum


class CodeDifference(IntEnum):
    """Greatest difference between two versions."""

    LAYOUT = 0
    """Comments, whitespace, line ends, quotes: the syntax trees are equal."""
    DOCSTRINGS = 1
    CODE = 2
    """The code differs or cannot be parsed."""
