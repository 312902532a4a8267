"""Source files before and after a fix, and the lines and blocks that the fix changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from backends.index import ScratchIndex
from languages.paths import is_source
from mutation.lines import build_matcher, count_common_ends, split_lines
from taskdb.records.oracles import LineSpan

MAX_FILE_BYTES = 2_000_000

Block = tuple[int, int, int, int]
"""Lines [i1, i2) of the old file are replaced by lines [j1, j2) of the new file, 0-based."""


@dataclass(frozen=True, kw_only=True)
class FixedFile:
    """A source file before and after the fix. `before` is None for a new file."""

    path: str
    before: bytes | None
    after: bytes

    @cached_property
    def blocks(self) -> list[Block]:
        """Changed blocks; two with at most one line between them are merged."""
        return list(_diff_blocks(self.before or b"", self.after))

    @cached_property
    def lines(self) -> list[int]:
        """Lines (1-based) of the new file that the fix adds or changes, and the neighbours of removed lines."""
        count = self.after.count(b"\n") + 1
        numbers = {
            line for _, _, j1, j2 in self.blocks for line in (range(j1 + 1, j2 + 1) if j2 > j1 else (j1, j1 + 1))
        }
        return sorted(line for line in numbers if 1 <= line <= count)

    def list_lines_near(self, near: int) -> set[int]:
        """Return `lines`, and the lines at most `near` before or after them."""
        return {other for line in self.lines for other in range(line - near, line + near + 1)}

    @cached_property
    def old_lines(self) -> list[int]:
        """Lines (1-based) of the old file that contain the fault."""
        return sorted({line for i1, i2, _, _ in self.blocks for line in range(max(i1, 1), max(i2, i1 + 1) + 1)})


def read_fixed_files(index: ScratchIndex, paths: Iterable[str], gold: bytes) -> list[FixedFile]:
    """Return the source files that a fix adds or changes and that are text, by path.

    Args:
        index: index of the base tree; the fix is applied to it.
        paths: paths of the files that the fix touches.
        gold: the fix.
    """
    named = [path for path in paths if is_source(path)]
    before = {path: content for path in named if (content := index.read_file(path)) is not None}
    index.apply(gold)
    return select_fixed_files(before, {path: content for path in named if (content := index.read_file(path))})


def select_fixed_files(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[FixedFile]:
    """Return the source files that differ between two trees and that are text and not too large, by path.

    Args:
        before: path -> content.
        after: the same; deleted and empty files have no lines to edit.
    """
    return [
        FixedFile(path=path, before=before.get(path), after=content)
        for path, content in sorted(after.items())
        if is_source(path)
        and 0 < len(content) <= MAX_FILE_BYTES
        and b"\0" not in content
        and content != before.get(path)
    ]


def list_fix_spans(files: Iterable[FixedFile]) -> list[LineSpan]:
    """Return the lines of the gold tree that the fix adds or changes."""
    return [
        LineSpan(path=file.path, first_line=j1 + 1, last_line=j2)
        for file in files
        for _, _, j1, j2 in file.blocks
        if j2 > j1
    ]


def _diff_blocks(before: bytes, after: bytes) -> Iterator[Block]:
    """Yield the differing blocks in order; only the lines between the first and the last difference are compared."""
    old, new = split_lines(before), split_lines(after)
    head, tail = count_common_ends(old, new)
    opcodes = build_matcher(old[head : len(old) - tail], new[head : len(new) - tail]).get_opcodes()
    last: Block | None = None
    for word, i1, i2, j1, j2 in opcodes:
        if word == "equal":
            continue
        block = (head + i1, head + i2, head + j1, head + j2)
        if last and block[2] - last[3] <= 1:
            last = (last[0], block[1], last[2], block[3])
            continue
        if last:
            yield last
        last = block
    if last:
        yield last
