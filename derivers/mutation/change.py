"""A small change of one file, from the place where a rule found it to the whole new text.

Rules (`Operator`) only find places; that a change alters the text, still parses and is told once is seen to here, the
same for every language.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

LONGEST = 70
"""Characters of each side of a detail."""

S_contra = TypeVar("S_contra", contravariant=True)
N_contra = TypeVar("N_contra", contravariant=True)


class Part(NamedTuple):
    """Bytes `start` to `end` of a file become `text`."""

    start: int
    end: int
    text: bytes


@dataclass(frozen=True, kw_only=True)
class Found:
    """One change a rule would make: its parts, disjoint and ascending, and the bytes that show it to people."""

    parts: tuple[Part, ...]
    shown: tuple[int, int]


@dataclass(frozen=True)
class Operator(Generic[S_contra, N_contra]):
    """A rule: its name, and what it would change at a node of a parsed file."""

    name: str
    find: Callable[[S_contra, N_contra], Iterable[Found]]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One application of one operator."""

    operator: str
    path: str
    line: int
    """First line that differs, 1-based, in the text before."""
    detail: str
    """One line for people, such as `a < b became a <= b`."""
    after: bytes
    """The whole new file."""


def applied(source: bytes, parts: Iterable[Part]) -> bytes:
    """The text with all parts changed."""
    for part in sorted(parts, reverse=True):
        source = source[: part.start] + part.text + source[part.end :]
    return source


def changes(
    path: str,
    source: bytes,
    found: Iterable[tuple[str, Found]],
    lines: Collection[int] | None,
    parses: Callable[[bytes, Sequence[Part]], bool],
) -> Iterator[Change]:
    """What was found, as changes, from the first line to the last; of those that give the same text the first.

    Args:
        path: of the file, as it is handed on.
        source: the file.
        found: (name of the operator, what it found).
        lines: lines (1-based) of which a change must touch one; None for all.
        parses: whether a new text, made by these parts, is still a program.
    """
    starts = [0, *(at + 1 for at, byte in enumerate(source) if byte == 10)]
    seen = {source}
    for name, one in sorted(found, key=lambda pair: (_trimmed(source, pair[1].parts)[0], pair[0], pair[1].parts)):
        touched = _lines(source, one.parts, starts)
        if lines is not None and not any(line in lines for line in touched):
            continue
        after = applied(source, one.parts)
        if after not in seen and parses(after, one.parts):
            seen.add(after)
            yield Change(operator=name, path=path, line=touched[0], detail=_detail(source, one), after=after)


def _trimmed(source: bytes, parts: Iterable[Part]) -> Part:
    """The first part without what it shares with the text it replaces."""
    start, end, text = min(parts)
    before = source[start:end]
    same = next((n for n, (a, b) in enumerate(zip(before, text, strict=False)) if a != b), min(len(before), len(text)))
    return Part(start + same, end, text[same:])


def _lines(source: bytes, parts: Iterable[Part], starts: list[int]) -> list[int]:
    """The lines that differ, ascending; at an insertion the line that it comes before or into."""
    touched: set[int] = set()
    for part in parts:
        start, end, _ = _trimmed(source, [part])
        touched.update(range(bisect_right(starts, start), bisect_right(starts, max(start, end - 1)) + 1))
    return sorted(touched)


def _detail(source: bytes, found: Found) -> str:
    start, end = found.shown
    inside = [Part(p.start - start, p.end - start, p.text) for p in found.parts if p.start >= start and p.end <= end]
    before, after = _one_line(source[start:end]), _one_line(applied(source[start:end], inside))
    if after in ("", "pass", ";"):
        return f"{_short(before, 0)} was removed"
    if after == before:
        return f"white space around {_short(before, 0)}"
    same = next(
        (n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    skipped = same - LONGEST // 3 if max(len(before), len(after)) > LONGEST else 0
    return f"{_short(before, skipped)} became {_short(after, skipped)}"


def _one_line(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split())


def _short(line: str, skipped: int) -> str:
    """At most LONGEST characters of a line, from about where something differs."""
    line = "…" + line[skipped + 1 :] if skipped > 0 else line
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
