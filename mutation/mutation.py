"""A small change of a file, from the place where an operator applies to the complete new text.

An operator (`MutationOperator`) only finds places. That a mutation alters the text, still parses and is yielded once
is ensured here, in the same way for every language.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

MAX_DETAIL_CHARS = 70
"""Characters of each side of a detail."""

S_contra = TypeVar("S_contra", contravariant=True)
N_contra = TypeVar("N_contra", contravariant=True)


class TextEdit(NamedTuple):
    """Bytes `start` to `end` of a file are replaced by `text`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, kw_only=True)
class MutationSite:
    """A place where an operator applies: its edits, disjoint and ascending, and the bytes quoted in the detail."""

    edits: tuple[TextEdit, ...]
    shown: tuple[int, int]


@dataclass(frozen=True)
class MutationOperator(Generic[S_contra, N_contra]):
    """A name, and a function that finds the edits that the operator changes at a node of a parsed file."""

    name: str
    find: Callable[[S_contra, N_contra], Iterable[MutationSite]]


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """An application of an operator."""

    operator: str
    path: str
    line: int
    """First line that differs, 1-based, in the text before."""
    detail: str
    """A line for people, such as `a < b became a <= b`."""
    after: bytes
    """The complete new file."""


def apply_edits(source: bytes, edits: Iterable[TextEdit]) -> bytes:
    """Return the text with all edits applied."""
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


def build_mutations(
    path: str,
    source: bytes,
    sites: Iterable[tuple[str, MutationSite]],
    lines: Collection[int] | None,
    parses: Callable[[bytes, Sequence[TextEdit]], bool],
) -> Iterator[Mutation]:
    """Yield a mutation for each site, ordered by position; of sites that give the same text only the first.

    Args:
        path: path of the file, copied into the mutations.
        source: the file.
        sites: (name of the operator, site).
        lines: lines (1-based) of which a mutation must touch any; None for all.
        parses: whether a new text, made by these edits, is still a program.
    """
    starts = [0, *(position + 1 for position, byte in enumerate(source) if byte == 10)]
    seen = {source}
    for name, site in sorted(sites, key=lambda pair: _sort_key(source, *pair)):
        touched = _list_touched_lines(source, site.edits, starts)
        if lines is not None and not any(line in lines for line in touched):
            continue
        after = apply_edits(source, site.edits)
        if after not in seen and parses(after, site.edits):
            seen.add(after)
            yield Mutation(operator=name, path=path, line=touched[0], detail=_describe(source, site), after=after)


def _sort_key(source: bytes, name: str, site: MutationSite) -> tuple[TextEdit, str, tuple[TextEdit, ...]]:
    return _trim_common_prefix(source, site.edits), name, site.edits


def _trim_common_prefix(source: bytes, edits: Iterable[TextEdit]) -> TextEdit:
    """Return the first edit without the prefix that it shares with the text it replaces."""
    start, end, text = min(edits)
    same = _count_common_prefix(source[start:end], text)
    return TextEdit(start + same, end, text[same:])


def _count_common_prefix(before: Sequence[object], after: Sequence[object]) -> int:
    different = (n for n, (char, other) in enumerate(zip(before, after, strict=False)) if char != other)
    return next(different, min(len(before), len(after)))


def _list_touched_lines(source: bytes, edits: Iterable[TextEdit], starts: list[int]) -> list[int]:
    """Return the lines that differ, ascending; for an insertion the line that it precedes or falls into."""
    touched: set[int] = set()
    for edit in edits:
        start, end, _ = _trim_common_prefix(source, [edit])
        touched.update(range(bisect_right(starts, start), bisect_right(starts, max(start, end - 1)) + 1))
    return sorted(touched)


def _describe(source: bytes, site: MutationSite) -> str:
    start, end = site.shown
    inside = [
        TextEdit(edit.start - start, edit.end - start, edit.text)
        for edit in site.edits
        if edit.start >= start and edit.end <= end
    ]
    before = _collapse_space(source[start:end])
    after = _collapse_space(apply_edits(source[start:end], inside))
    if after in ("", "pass", ";"):
        return f"{_shorten(before, 0)} was removed"
    if after == before:
        return f"white space around {_shorten(before, 0)}"
    same = _count_common_prefix(before, after)
    skipped = same - MAX_DETAIL_CHARS // 3 if max(len(before), len(after)) > MAX_DETAIL_CHARS else 0
    return f"{_shorten(before, skipped)} became {_shorten(after, skipped)}"


def _collapse_space(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split())


def _shorten(line: str, skipped: int) -> str:
    """Return at most MAX_DETAIL_CHARS characters of a line, starting near the first difference."""
    line = "…" + line[skipped + 1 :] if skipped > 0 else line
    return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"
