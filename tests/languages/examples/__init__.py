"""Example repositories, one folder for each: a language's plan as a snapshot, and a change whose verdict is known.

    tests/languages/examples/NAME/
        example.toml    language, day, FAIL_TO_PASS, PASS_TO_PASS; slow = true where it takes over 20 s (base there)
        before.txt      the files at the base commit
        after.txt       the files that the change makes anew or over: a fix and its tests
        plan.json       the plan of before.txt; written by `pytest tests/languages/test_examples.py --update`

A file of files has before each file a line `==== path/from/root`; `==== path/from/root (gone)` deletes it. Files are
kept like this so that no tool of this repository takes them for its own.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Example:
    """One of the folders."""

    folder: Path

    @property
    def facts(self) -> dict[str, Any]:
        """What example.toml says."""
        return tomllib.loads((self.folder / "example.toml").read_text(encoding="utf-8"))

    def files(self, name: str) -> dict[str, str | None]:
        """Path -> text, or None for one that goes, of `before.txt` or `after.txt`."""
        return unpacked((self.folder / name).read_text(encoding="utf-8"))


def unpacked(text: str) -> dict[str, str | None]:
    """The files of a file of files.

    Raises:
        ValueError: there is text before the first heading.
    """
    first, *parts = re.split(r"^==== (\S+)( \(gone\))?\n", text, flags=re.MULTILINE)
    if first.strip():
        raise ValueError(f"text before the first file: {first[:60]!r}")
    return {parts[n]: None if parts[n + 1] else parts[n + 2] for n in range(0, len(parts), 3)}


def examples() -> list[Example]:
    """All of them, by name."""
    return [Example(folder=path.parent) for path in sorted(HERE.glob("*/example.toml"))]
