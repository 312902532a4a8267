"""Example repositories, one folder each: the plan as a snapshot, and a change with its expected test lists.

    tests/languages/examples/NAME/
        example.toml    language, day, FAIL_TO_PASS, PASS_TO_PASS; slow = true if it takes over 20 s (base present);
                        unbuilt = REASON if it has a plan but no image that runs its tests
        before.txt      the files at the base commit
        after.txt       the files that the change adds or replaces: a fix and its tests
        plan.json       the plan of before.txt; written by `pytest tests/languages/test_examples.py --update`

A file of files has a line `==== path/from/root` before each file; `==== path/from/root (gone)` deletes it. This format
prevents tools of this repository from processing the example files as their own.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class LanguageExample:
    """One example folder."""

    folder: Path

    @property
    def facts(self) -> dict[str, Any]:
        """Content of example.toml."""
        return tomllib.loads((self.folder / "example.toml").read_text(encoding="utf-8"))

    def list_files(self, name: str) -> dict[str, str | None]:
        """Return path -> text, or None for a deleted file, of `before.txt` or `after.txt`."""
        return unpack_example((self.folder / name).read_text(encoding="utf-8"))


def unpack_example(text: str) -> dict[str, str | None]:
    """Return path -> text (None if deleted) of a file of files.

    Raises:
        ValueError: there is text before the first heading.
    """
    first, *parts = re.split(r"^==== (\S+)( \(gone\))?\n", text, flags=re.MULTILINE)
    if first.strip():
        raise ValueError(f"text before the first file: {first[:60]!r}")
    return {parts[n]: None if parts[n + 1] else parts[n + 2] for n in range(0, len(parts), 3)}


def list_examples() -> list[LanguageExample]:
    """Return all examples, by name."""
    return [LanguageExample(folder=path.parent) for path in sorted(HERE.glob("*/example.toml"))]
