"""Files that CONTRIBUTING.md names exist, and it explains every place that is made to be extended."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOP_LEVEL = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")))
MADE_BY_THE_READER = re.compile(r"shell")
"""Part of the names of files that the guide to a new language writes."""
EXTENSION_POINTS = (
    "a language",
    "a skill",
    "a column of tasks",
    "a mining rule",
    "a kind of task",
    "an export format",
    "a scaffold",
    "a kind of subject",
    "a sandbox",
)


def test_files_that_are_named_exist() -> None:
    named = {path for path in re.findall(rf"`((?:{TOP_LEVEL})/[\w./-]*)`", PAGE) if not MADE_BY_THE_READER.search(path)}
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_extension_point_has_a_section() -> None:
    sections = re.findall(r"(?m)^## Adding (.*)$", PAGE)
    assert sections == list(EXTENSION_POINTS)
