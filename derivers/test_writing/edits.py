"""What tests of a fix are tried on: the fixed tree with something wrong, written otherwise, or with the fault back.

All are patches on the fixed tree. Which of them count, the change's own tests decide, in boxes; nothing is run here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from backends.index import ScratchIndex
from backends.testing.written import FAULT, LEFT_OUT
from derivers.mutation import Change, mutants, patch_of, spread, variants
from derivers.mutation.lines import alike, by_line_feed, matcher
from derivers.test_writing.encoded import ENCODED, encoded
from derivers.test_writing.respaced import respaced
from languages.paths import is_source
from taskdb.oracles import Span

RESPACED = "respaced"
ONLY_LINES = ("remark-added", "blank-line-added", "step-added")
"""Rewrites that leave the lines of the fault as they were."""
MAX_LEFT_OUT = 4
"""Hunks of the fix that are left out, one at a time."""
NEAR = 3
"""How far beside the fix something may be wrong where its own lines give few mutants."""
MAX_FILE_BYTES = 2_000_000

_WHOLE: tuple[tuple[str, str, Callable[[str, bytes], bytes | None]], ...] = (
    (ENCODED, "its text is encoded", encoded),
    (RESPACED, "other white space", respaced),
)
"""Rewrites of whole files: operator, in words, and what makes them."""

Block = tuple[int, int, int, int]
"""Lines [i1, i2) of the file before became [j1, j2) of the file after, from 0."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An edit of the fixed tree that has not been tried yet; fields as in `taskdb.oracles.Edit`."""

    operator: str
    path: str
    line: int
    detail: str
    patch: bytes


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A source file that the fix leaves. `before` is None for a new one."""

    path: str
    before: bytes | None
    after: bytes

    @cached_property
    def blocks(self) -> list[Block]:
        """What was changed; blocks with one line between them are one."""
        return list(_blocks(self.before or b"", self.after))

    @cached_property
    def lines(self) -> list[int]:
        """Lines of the file after that the fix added or changed, and those beside what it only took away; from 1."""
        count = self.after.count(b"\n") + 1
        found = {line for _, _, j1, j2 in self.blocks for line in (range(j1 + 1, j2 + 1) if j2 > j1 else (j1, j1 + 1))}
        return sorted(line for line in found if 1 <= line <= count)

    def around(self, near: int) -> set[int]:
        """The lines, and those at most so many before or behind them."""
        return {other for line in self.lines for other in range(line - near, line + near + 1)}

    @cached_property
    def old_lines(self) -> list[int]:
        """The same of the file before: where the fault is."""
        return sorted({line for i1, i2, _, _ in self.blocks for line in range(max(i1, 1), max(i2, i1 + 1) + 1)})


def fixed_files(index: ScratchIndex, paths: Iterable[str], gold: bytes) -> list[Fixed]:
    """The source files that a fix adds or changes and that can be read as text, by path.

    Args:
        index: over the base tree; the fix is laid over it.
        paths: that the fix touches.
        gold: the fix.
    """
    named = sorted(path for path in paths if is_source(path))
    before = {path: index.read(path) for path in named}
    index.apply(gold)
    found = [Fixed(path=path, before=before[path], after=after) for path in named if (after := index.read(path))]
    return [one for one in found if len(one.after) <= MAX_FILE_BYTES and b"\0" not in one.after]


def spans(files: Iterable[Fixed]) -> list[Span]:
    """The lines that the fix added or changed, in the fixed tree."""
    return [
        Span(path=one.path, first_line=j1 + 1, last_line=j2) for one in files for _, _, j1, j2 in one.blocks if j2 > j1
    ]


# ------------------------------------------------------------------------------------------------ kinds of edits


def wrong(files: Sequence[Fixed], limit: int) -> list[Draft]:
    """Mutants: hunks of the fix left out, then one thing wrong on its lines, then beside them; at most `limit`.

    They are spread over lines and rules. A fix of one line alone would often give but one or two.
    """
    found = {draft.patch: draft for draft in _left_out(files)[:MAX_LEFT_OUT]}
    for near in (0, NEAR):
        changes = [change for one in files for change in mutants(one.path, one.after, one.around(near))]
        for draft in (_of_change(files, change) for change in spread(changes, limit)):
            found.setdefault(draft.patch, draft)
    return list(found.values())[:limit]


def otherwise(files: Sequence[Fixed], limit: int) -> list[Draft]:
    """Variants: the fixed files encoded, with other white space, then rewrites of the fix's lines by several rules."""
    found = [change for one in files for change in variants(one.path, one.after, one.lines)]
    first = [
        _of_texts(name, files, texts, detail)
        for name, detail, rewrite in _WHOLE
        if (texts := {one.path: text for one in files if (text := rewrite(one.path, one.after))})
    ]
    return (first + [_of_change(files, change) for change in spread(found, limit)])[:limit]


def fault_again(files: Sequence[Fixed], limit: int) -> list[Draft]:
    """The fault back in all files, encoded, or its lines written otherwise; new files of the fix stay."""
    old = {one.path: one.before for one in files if one.before is not None}
    hidden, spaced = (
        {path: text for path, before in old.items() if (text := rewrite(path, before))} for _, _, rewrite in _WHOLE
    )
    found = [
        change for one in files if one.before is not None
        for change in variants(one.path, one.before, one.old_lines) if change.operator not in ONLY_LINES
    ]  # fmt: skip
    told = [("its text is encoded", hidden)] if hidden else []
    told += [(change.operator, spaced | _texts(change)) for change in spread(found, limit)]
    told += [("other white space", spaced)] if spaced else []
    drafts = [_of_texts(FAULT, files, old | texts, f"the fault is back: {how}") for how, texts in told]
    return [draft for draft in drafts if draft.patch][:limit]


def _texts(change: Change) -> dict[str, bytes]:
    """The file of a rewrite, with other white space on top where that can be had."""
    return {change.path: respaced(change.path, change.after) or change.after}


def _left_out(files: Sequence[Fixed]) -> list[Draft]:
    """Each hunk left out in turn; none where there is but one."""
    blocks = [(one, block) for one in files if one.before is not None for block in one.blocks]
    if len(blocks) < 2:
        return []
    return [
        Draft(
            operator=LEFT_OUT, path=one.path, line=max(1, block[2] + 1), detail="a part of the fix is left out",
            patch=patch_of(one.path, one.after, _without(one, block)),
        )
        for one, block in blocks
    ]  # fmt: skip


def _without(one: Fixed, block: Block) -> bytes:
    i1, i2, j1, j2 = block
    old, new = by_line_feed(one.before or b""), by_line_feed(one.after)
    return b"".join([*new[:j1], *old[i1:i2], *new[j2:]])


def _of_change(files: Sequence[Fixed], change: Change) -> Draft:
    one = next(one for one in files if one.path == change.path)
    return Draft(
        operator=change.operator, path=change.path, line=change.line, detail=change.detail,
        patch=patch_of(one.path, one.after, change.after),
    )  # fmt: skip


def _of_texts(operator: str, files: Sequence[Fixed], texts: Mapping[str, bytes], detail: str) -> Draft:
    """Several files with other texts, as one edit."""
    changed = [one for one in files if one.path in texts and texts[one.path] != one.after]
    line = next((one.lines[0] for one in changed if one.lines), 1)
    return Draft(
        operator=operator, path=changed[0].path if changed else "", line=line, detail=detail,
        patch=b"".join(patch_of(one.path, one.after, texts[one.path]) for one in changed),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------- lines


def _blocks(before: bytes, after: bytes) -> Iterator[Block]:
    """What differs, in order; only what lies between the first and the last difference is compared in full."""
    old, new = by_line_feed(before), by_line_feed(after)
    head, tail = alike(old, new)
    found = matcher(old[head : len(old) - tail], new[head : len(new) - tail]).get_opcodes()
    last: Block | None = None
    for word, i1, i2, j1, j2 in found:
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
