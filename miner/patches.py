"""Split a change into gold and test patch, taken from git's own diff so that every byte is preserved.

The diff is cut at its `diff --git` lines; each section belongs to a patch by `languages.paths.is_protected`. unidiff
parses every patch again and must find the same files. Two kinds of section are remade before that: a rename between the
two patches becomes a deletion in the first and an addition in the other, and a section that is not UTF-8 becomes a git
binary patch, so that patches can be stored in JSON. At the end both patches are applied to the base tree in a scratch
index, together and each alone: the tree must be the merged tree, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from unidiff.errors import UnidiffParseError

from backends.scratch import ScratchRepository
from core.patch_headers import parse_patch_set, read_paths, strip_name
from languages.paths import is_protected
from miner.changes import Patch, PatchLine, PatchSplit, UnparsablePatchError

_START = re.compile(rb"^diff --git ", re.MULTILINE)
_RENAMES = ("-M", "-l400")


@dataclass(frozen=True, slots=True)
class DiffSection:
    """Section of a diff about a file. A name is None on the side where there is no file."""

    old: str | None
    new: str | None
    body: bytes

    @property
    def path(self) -> str:
        """New name, or the name of a deleted file."""
        return self.new or self.old or ""

    @property
    def names(self) -> set[str]:
        """Both names."""
        return {name for name in (self.old, self.new) if name}

    @property
    def crosses_sides(self) -> bool:
        """Whether it moves a file between gold and test patch."""
        return len({is_protected(name) for name in self.names}) > 1

    @property
    def is_text(self) -> bool:
        """Whether it is valid UTF-8."""
        try:
            self.body.decode()
        except UnicodeDecodeError:
            return False
        return True


def split_commit(scratch: ScratchRepository, base: str, merge: str) -> PatchSplit:
    """Split the change from `base` to `merge` (commits) into gold and test patch, and check them by applying them.

    Raises:
        UnparsablePatchError: git and unidiff parse the diff differently.
    """
    sections = split_sections(scratch.diff(base, merge, *_RENAMES))
    sections = _remake_sections(scratch, base, merge, sections, [s for s in sections if s.crosses_sides])
    sections = _remake_sections(scratch, base, merge, sections, [s for s in sections if not s.is_text], binary=True)
    # Deletions first: a file may replace a folder, and the other way round.
    sections.sort(key=lambda s: (s.new is not None, s.path))
    gold = _build_patch([s for s in sections if not is_protected(s.path)])
    test = _build_patch([s for s in sections if is_protected(s.path)])
    return PatchSplit(
        gold=gold, test=test, fault=_check_round_trip(scratch, (base, merge), sections, gold.text, test.text)
    )


def parse_published_patches(scratch: ScratchRepository | None, base: str, gold: str, test: str) -> PatchSplit:
    """Parse the two patches of a published task; with a scratch repository, check that they apply to `base`.

    Raises:
        UnparsablePatchError: any of them is not a patch.
    """
    sides, names = [], set[str]()
    for text in (gold, test):
        whole = text if not text or text.endswith("\n") else text + "\n"
        try:
            sections = split_sections(whole.encode())
        except UnicodeEncodeError as error:
            raise UnparsablePatchError("a patch contains an unpaired surrogate") from error
        if whole.strip() and not sections:
            raise UnparsablePatchError("a patch has no line that begins with `diff --git`")
        sides.append(_build_patch(sections))
        names.update(*(section.names for section in sections))
    fault = ""
    if scratch and scratch.apply_patches(scratch.list_entries(base, names), sides[1].text, sides[0].text) is None:
        fault = f"the published patches do not apply to {base[:10]}"
    return PatchSplit(gold=sides[0], test=sides[1], fault=fault)


def split_sections(diff: bytes) -> list[DiffSection]:
    r"""Split a git diff into its sections, in order.

    A line of a hunk begins with ` `, `+`, `-` or `\` and base 85 has no space, so `diff --git` at the start of a line
    is always a new section.

    Raises:
        UnparsablePatchError: the header of a section has no file name.
    """
    starts = [match.start() for match in _START.finditer(diff)]
    return [_parse_section(diff[start:end]) for start, end in pairwise([*starts, len(diff)])]


def escape_path(path: str) -> str:
    r"""Return a path for records: bytes that are not UTF-8 are written as `\xNN`."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _parse_section(body: bytes) -> DiffSection:
    text = body.decode(errors="surrogateescape")
    header = text.split("\n@@ ", 1)[0].split("\nGIT binary patch\n", 1)[0]
    old, new = read_paths(header)
    if not (old or new):
        raise UnparsablePatchError(f"no file name in {header.partition(chr(10))[0]!a}")
    is_new, is_deleted = "\nnew file mode " in header, "\ndeleted file mode " in header
    return DiffSection(None if is_new else old, None if is_deleted and not is_new else new, body)


def _remake_sections(
    scratch: ScratchRepository,
    base: str,
    merge: str,
    sections: list[DiffSection],
    chosen: list[DiffSection],
    *,
    binary: bool = False,
) -> list[DiffSection]:
    """Return `sections` with the chosen sections remade without renames."""
    if not chosen:
        return sections
    names = set().union(*(section.names for section in chosen))
    paths = tuple(sorted(names))
    fresh = split_sections(scratch.diff(base, merge, "--no-renames", paths=paths, binary=binary))
    # A path also matches everything below it, therefore the names are checked again.
    return [s for s in sections if not s.names & names] + [s for s in fresh if s.names <= names]


def _build_patch(sections: list[DiffSection]) -> Patch:
    """Build a patch, and parse it again with unidiff."""
    text = b"".join(section.body for section in sections).decode()
    try:
        seen = parse_patch_set(text)
    except UnidiffParseError as error:
        raise UnparsablePatchError(f"unidiff: {error}".strip().replace("\n", " ")[:200]) from error
    parsed = [(_find_side(file.source_file), _find_side(file.target_file)) for file in seen]
    if parsed != [(section.old, section.new) for section in sections]:
        raise UnparsablePatchError(f"unidiff finds {len(parsed)} files, git {len(sections)}, or other names")
    changed = tuple(
        PatchLine(section.path, line.value, line.is_added)
        for section, file in zip(sections, seen, strict=True)
        for hunk in file
        for line in hunk
        if line.is_added or line.is_removed
    )
    return Patch(
        text=text,
        files=_sort_paths(section.path for section in sections),
        remaining_files=_sort_paths(section.new for section in sections if section.new),
        line_count=len(changed),
        changed_lines=changed,
    )


def _sort_paths(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({escape_path(path) for path in paths}))


def _find_side(name: str) -> str | None:
    return None if name == "/dev/null" else strip_name(name)


def _check_round_trip(
    scratch: ScratchRepository, ends: tuple[str, str], sections: list[DiffSection], gold: str, test: str
) -> str:
    """Return why the patches do not reproduce the change, or an empty text. Other files are equal on both sides."""
    paths = set().union(*(section.names for section in sections))
    before, wanted = (scratch.list_entries(commit, paths) for commit in ends)
    made = scratch.apply_patches(before, test, gold)
    if made is None:
        return "test and gold patch do not apply one after the other"
    if wrong := sorted(path for path in made.keys() | wanted if made.get(path) != wanted.get(path)):
        return f"test and gold patch do not reproduce {escape_path(wrong[0])} of the merged tree"
    if scratch.apply_patches(before, gold) is None:
        return "the gold patch does not apply alone"
    return ""
