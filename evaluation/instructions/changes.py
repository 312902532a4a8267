"""Changes of files that a submission makes: texts before and after, and the lines between them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

MAX_COMPARED_LINES = 20_000
"""Lines of a file above which all lines of the new text count as added."""


@dataclass(frozen=True)
class ChangedFile:
    """A file that differs. `before` and `after`: None where there is no such file."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def is_new(self) -> bool:
        """Whether the submission adds it."""
        return self.before is None

    @cached_property
    def added(self) -> Sequence[tuple[int, str]]:
        """Number (1-based, in the new text) and text of each added line."""
        return self._lines[0]

    @property
    def n_removed(self) -> int:
        """Number of lines of the old text that are gone."""
        return self._lines[1]

    @cached_property
    def _lines(self) -> tuple[Sequence[tuple[int, str]], int]:
        old, new = split_lines(self.before or b""), split_lines(self.after or b"")
        if len(old) + len(new) > MAX_COMPARED_LINES:
            return list(enumerate(new, 1)), len(old)
        added, n_removed = [], 0
        for tag, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                added += [(place + 1, new[place]) for place in range(start, end)]
                n_removed += last - first
        return added, n_removed


def split_lines(text: bytes) -> list[str]:
    """Return the lines of a file: they end as in programs, and not at every character that Unicode has for it."""
    return [line.decode(errors="replace") for line in text.splitlines()]
