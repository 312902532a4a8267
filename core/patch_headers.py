"""Names in the headers of git patches: paths may hold ` b/`, which separates the two names of a line `diff --git`."""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import pairwise

from unidiff.patch import PatchSet

_START = re.compile(r"^diff --git ", re.MULTILINE)
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*"|.+) ("(?:[^"\\]|\\.)*")')
_QUOTED_FIRST = re.compile(r'("(?:[^"\\]|\\.)*") (.+)')
_ESCAPES = dict(zip("abtnvfr", "\a\b\t\n\v\f\r", strict=True))
_ESCAPE = re.compile(r"\\([0-7]{3}|.)")
_SEPARATOR = " b/"
_MASK = "\ue000b/"
"""Stands for the separator inside of a name while unidiff parses a patch; a character for private use."""


def split_sections(patch: str) -> list[str]:
    """Split a patch at its lines `diff --git`; text before the first is left out."""
    starts = [match.start() for match in _START.finditer(patch)]
    return [patch[start:end] for start, end in pairwise([*starts, len(patch)])]


def read_path(section: str) -> str:
    """Return the new path of a section of a git patch, the old one of a deleted file; empty where there is none.

    Args:
        section: text that begins with the line `diff --git`; without further lines the new path of a renamed file
            is a guess.
    """
    old, new = read_paths(section)
    return new or old


def read_paths(section: str) -> tuple[str, str]:
    """Return both paths of a section of a git patch, each empty where it cannot be read; see `read_path`."""
    if not section.startswith("diff --git "):
        return "", ""
    first, *lines = section.split("\n@@ ", 1)[0].split("\nGIT binary patch\n", 1)[0].split("\n")
    old, new = map(strip_name, _split_names(first.removeprefix("diff --git ").rstrip("\r"), lines))
    for line in lines:
        for start, is_old in (("rename from ", True), ("copy from ", True), ("rename to ", False), ("copy to ", False)):
            if line.startswith(start):
                path = unquote(line.removeprefix(start).rstrip("\r"))
                old, new = (path, new) if is_old else (old, path)
        name = line[4:].rstrip("\t\r")
        if line.startswith("--- ") and name != "/dev/null":
            old = strip_name(name)
        elif line.startswith("+++ ") and name != "/dev/null":
            new = strip_name(name)
    return old, new


def leave_out_files(patch: bytes, paths: Container[str]) -> bytes:
    """Return a git patch without the sections of some files, by their new paths."""
    sections = split_sections(patch.decode(errors="surrogateescape"))
    kept = "".join(section for section in sections if read_path(section) not in paths)
    return kept.encode(errors="surrogateescape")


def parse_patch_set(patch: str) -> PatchSet:
    """Parse a git patch with unidiff, which takes the last ` b/` of a header for the separator.

    Raises:
        UnidiffParseError: the patch is malformed.
    """
    sections = split_sections(patch)
    if not any(_SEPARATOR in path for section in sections for path in read_paths(section)):
        return PatchSet(patch)
    head = patch[: len(patch) - sum(map(len, sections))]
    files = PatchSet(head + "".join(map(_mask_section, sections)))
    for file in files:
        file.source_file = file.source_file.replace(_MASK, _SEPARATOR)
        file.target_file = file.target_file.replace(_MASK, _SEPARATOR)
    return files


def _mask_section(section: str) -> str:
    """Return a section with the separator masked inside of the names of its header."""
    header, mark, rest = section.partition("\n@@ ")
    first, *lines = header.split("\n")
    names = _split_names(first.removeprefix("diff --git "), lines)
    if not all(names):
        return section
    masked = "diff --git " + " ".join(name.replace(_SEPARATOR, _MASK) for name in names)
    named = ("--- ", "+++ ", "rename ", "copy ")
    lines = [line[:5] + line[5:].replace(_SEPARATOR, _MASK) if line.startswith(named) else line for line in lines]
    return "\n".join([masked, *lines]) + mark + rest


def _split_names(names: str, lines: list[str]) -> tuple[str, str]:
    """Return both names of a line `diff --git` as they are written, empty ones where they cannot be separated.

    Args:
        names: text of the line after `diff --git `.
        lines: further lines of the header, which name a renamed or copied file.
    """
    if match := _QUOTED_FIRST.fullmatch(names) or _QUOTED.fullmatch(names):
        return match[1], match[2]
    half = (len(names) - 1) // 2
    if names[half : half + 1] == " " and strip_name(names[:half]) == strip_name(names[half + 1 :]):
        return names[:half], names[half + 1 :]
    ends = [match.start() for match in re.finditer(re.escape(_SEPARATOR), names)]
    pairs = [(names[:end], names[end + 1 :]) for end in ends]
    for line in lines:
        if line.startswith(("rename from ", "copy from ")):
            old = line.split(" ", 2)[2].rstrip("\r")
            pairs = [pair for pair in pairs if strip_name(pair[0]) == old] or pairs
        elif line.startswith(("rename to ", "copy to ")):
            new = line.split(" ", 2)[2].rstrip("\r")
            pairs = [pair for pair in pairs if strip_name(pair[1]) == new] or pairs
    return pairs[-1] if pairs else ("", "")


def strip_name(name: str) -> str:
    """Return the path of a name in a git patch: without a prefix such as `a/`, and without the quotes of git."""
    return unquote(name)[2:]


def unquote(name: str) -> str:
    """Decode a name from the C quotes of git."""
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    # Escapes are bytes of UTF-8, so the text is decoded again once each is a character below 256.
    text = name[1:-1].encode(errors="surrogateescape").decode("latin-1")
    raw = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1]) or _read_octal(match[1]), text)
    return raw.encode("latin-1").decode(errors="surrogateescape")


def _read_octal(code: str) -> str:
    return chr(int(code, 8) & 255) if len(code) == 3 else code
