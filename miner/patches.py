"""The gold and the test patch of a change, taken from git's own diff so that every byte survives.

The diff is cut at its `diff --git` lines; each section goes to one side by `languages.paths.is_protected`. unidiff
reads every patch a second time and must see the same files. Two kinds of section are made anew before that: a rename
across the border becomes a deletion on one side and an addition on the other, and a section that is not UTF-8 becomes
a git binary patch, so that patches can travel in JSON. At the end both patches are applied to the base tree in a
throw-away index, together and each alone: the tree must be the merge's, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from languages.paths import is_protected
from miner.changes import Line, Patch, Split, Unparsable
from miner.scratch import Scratch

_START = re.compile(rb"^diff --git ", re.MULTILINE)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_RENAMES = ("-M", "-l400")


@dataclass(frozen=True, slots=True)
class Section:
    """The part of a diff that is about one file. A name is None on the side where there is no file."""

    old: str | None
    new: str | None
    body: bytes

    @property
    def path(self) -> str:
        """The new name, or that of a deleted file."""
        return self.new or self.old or ""

    @property
    def names(self) -> set[str]:
        """Both names."""
        return {name for name in (self.old, self.new) if name}

    @property
    def crosses(self) -> bool:
        """Whether it moves a file between the tests' side and the other."""
        return len({is_protected(name) for name in self.names}) > 1

    @property
    def is_text(self) -> bool:
        """Whether it is valid UTF-8."""
        try:
            self.body.decode()
        except UnicodeDecodeError:
            return False
        return True


def split_commit(scratch: Scratch, base: str, merge: str) -> Split:
    """Gold and test patch of the change from `base` to `merge` (commits), checked by applying them.

    Raises:
        Unparsable: git's diff and unidiff's reading of it differ.
    """
    sections = cut(scratch.diff(base, merge, *_RENAMES))
    sections = _anew(scratch, base, merge, sections, [s for s in sections if s.crosses])
    sections = _anew(scratch, base, merge, sections, [s for s in sections if not s.is_text], binary=True)
    # Deletions first: a file may take the place of a folder, and the other way round.
    sections.sort(key=lambda s: (s.new is not None, s.path))
    gold = _patch([s for s in sections if not is_protected(s.path)])
    test = _patch([s for s in sections if is_protected(s.path)])
    return Split(gold=gold, test=test, fault=_fault(scratch, (base, merge), sections, gold.text, test.text))


def split_published(scratch: Scratch | None, base: str, gold: str, test: str) -> Split:
    """The two patches of a published task as they are, checked to apply to `base` when there is a scratch.

    Raises:
        Unparsable: one of them is no patch.
    """
    sides, names = [], set[str]()
    for text in (gold, test):
        whole = text if not text or text.endswith("\n") else text + "\n"
        try:
            sections = cut(whole.encode())
        except UnicodeEncodeError as error:
            raise Unparsable("a patch holds half a surrogate pair") from error
        if whole.strip() and not sections:
            raise Unparsable("a patch has no line that begins with `diff --git`")
        sides.append(_patch(sections))
        names.update(*(section.names for section in sections))
    fault = ""
    if scratch and scratch.applied(scratch.entries(base, names), sides[1].text, sides[0].text) is None:
        fault = f"the published patches do not apply to {base[:10]}"
    return Split(gold=sides[0], test=sides[1], fault=fault)


def cut(diff: bytes) -> list[Section]:
    r"""The sections of a git diff, in its order.

    A hunk's lines begin with ` `, `+`, `-` or `\` and base 85 has no space, so `diff --git` at the beginning of a line
    is always a new section.

    Raises:
        Unparsable: a section's header tells no file name.
    """
    starts = [found.start() for found in _START.finditer(diff)]
    return [_section(diff[start:end]) for start, end in pairwise([*starts, len(diff)])]


def printable(path: str) -> str:
    r"""A path for records: what is not UTF-8 is written as `\xNN`."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _section(body: bytes) -> Section:
    header = body.split(b"\n@@ ", 1)[0].split(b"\nGIT binary patch\n", 1)[0]
    lines = header.split(b"\n")
    first = lines[0].removeprefix(b"diff --git ")
    old = new = _twice(first)
    for line in lines[1:]:
        key, _, value = line.partition(b" ")
        if line.startswith((b"rename from ", b"copy from ")):
            old = _unquoted(line.split(b" ", 2)[2])
        elif line.startswith((b"rename to ", b"copy to ")):
            new = _unquoted(line.split(b" ", 2)[2])
        elif key == b"---" and value != b"/dev/null":
            old = _unquoted(value.rstrip(b"\t\r"))[2:]
        elif key == b"+++" and value != b"/dev/null":
            new = _unquoted(value.rstrip(b"\t\r"))[2:]
    if not (old or new):
        raise Unparsable(f"no file name in {first.decode(errors='backslashreplace')!r}")
    if b"\nnew file mode " in header:
        old = None
    elif b"\ndeleted file mode " in header:
        new = None
    return Section(old, new, body)


def _twice(names: bytes) -> str | None:
    """The name in `a/NAME b/NAME`, where both are the same; None where they are not."""
    half = (len(names) - 1) // 2
    old, new = _unquoted(names[:half]), _unquoted(names[half + 1 :])
    return new[2:] if old[2:] == new[2:] and old[:2] == "a/" and new[:2] == "b/" else None


def _unquoted(name: bytes) -> str:
    """A name as git writes it in a diff, out of its C quotes."""
    if len(name) > 1 and name.startswith(b'"') and name.endswith(b'"'):
        name = _ESCAPE.sub(
            lambda m: _ESCAPES.get(m[1]) or (bytes([int(m[1], 8)]) if len(m[1]) == 3 else m[1]), name[1:-1]
        )
    return name.decode(errors="surrogateescape")


def _anew(
    scratch: Scratch, base: str, merge: str, sections: list[Section], chosen: list[Section], *, binary: bool = False
) -> list[Section]:
    """`sections` with the chosen ones made again, without renames."""
    if not chosen:
        return sections
    names = set().union(*(section.names for section in chosen))
    paths = tuple(sorted(names))
    fresh = cut(scratch.diff(base, merge, "--no-renames", paths=paths, binary=binary))
    # A path also matches what lies below it, hence the second look at the names.
    return [s for s in sections if not s.names & names] + [s for s in fresh if s.names <= names]


def _patch(sections: list[Section]) -> Patch:
    """One side's patch, read once more by unidiff."""
    text = b"".join(section.body for section in sections).decode()
    try:
        seen = PatchSet(text)
    except UnidiffParseError as error:
        raise Unparsable(f"unidiff: {error}".strip().replace("\n", " ")[:200]) from error
    theirs = [(_side(file.source_file), _side(file.target_file)) for file in seen]
    if theirs != [(section.old, section.new) for section in sections]:
        raise Unparsable(f"unidiff sees {len(theirs)} files, git {len(sections)}, or other names")
    changed = tuple(
        Line(section.path, line.value, line.is_added)
        for section, file in zip(sections, seen, strict=True)
        for hunk in file
        for line in hunk
        if line.is_added or line.is_removed
    )
    return Patch(
        text=text,
        files=_sorted(section.path for section in sections),
        left=_sorted(section.new for section in sections if section.new),
        lines=len(changed),
        changed=changed,
    )


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({printable(path) for path in paths}))


def _side(name: str) -> str | None:
    return None if name == "/dev/null" else _unquoted(name.encode(errors="surrogateescape"))[2:]


def _fault(scratch: Scratch, ends: tuple[str, str], sections: list[Section], gold: str, test: str) -> str:
    """Why the patches are not the change, or empty. Files that no section names are the same before and after."""
    paths = set().union(*(section.names for section in sections))
    before, wanted = (scratch.entries(commit, paths) for commit in ends)
    made = scratch.applied(before, test, gold)
    if made is None:
        return "test and gold patch do not apply one after the other"
    if wrong := sorted(path for path in made.keys() | wanted if made.get(path) != wanted.get(path)):
        return f"test and gold patch do not make {printable(wrong[0])} as it is in the merge"
    if scratch.applied(before, gold) is None:
        return "the gold patch does not apply alone"
    return ""
