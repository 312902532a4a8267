"""Find the entry of a version in a project's changelog, in any markup.

A changelog is a text with a heading for each version. A heading is a short line that contains the version and is marked
as a heading (`#`, underlined), or begins a line with little else than a date. The entry ends at the heading of the next
version, or at the next heading of the same level.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

_FILES = (
    re.compile(
        r"^(docs?/(source/|src/)?)?(changes|changelog|change_log|history|news|releases?|release[-_]?notes|whatsnew|"
        r"what'?s[-_]?new|versions?)(\.(rst|md|txt|markdown|adoc))?$",
        re.IGNORECASE,
    ),
    re.compile(
        r"^(docs?/(source/|src/)?)?(changes|changelog|history|news|releases?|release[-_]?notes|whatsnew)"
        r"[-_/]v?[\w.]*\.(rst|md|txt)$",
        re.IGNORECASE,
    ),
    re.compile(r"^readme(\.(rst|md|txt))?$", re.IGNORECASE),
)
"""Names of files with entries, the most likely first: a changelog, a file per version, the readme."""

_UNDERLINE = re.compile(r"^([=\-~^`'\"*+#.:_])\1{2,}\s*$")
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:\.?(?:post|rc|a|b|dev)\d*)?|\d+\.0)(?![\w]|\.\d)", re.IGNORECASE)
_HEADING_WORDS = re.compile(
    r"\b(version|release|released|changes|changelog|in|on|final|new|what'?s|notes?|stable|features?|"
    r"jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*|unreleased)\b|\d+(st|nd|rd|th)?\b",
    re.IGNORECASE,
)
_MAX_OTHER_LETTERS = 30  # letters besides the version in a line that is a heading by its position only
_MAX_HEADING_LENGTH = 100
_EMPTY_ENTRY = re.compile(
    r"^\.\. (_|:changelog:)|^<a (id|name)=|^[\W_]*(release date|released|unreleased)\b[^\n]{0,40}$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _VersionHeading:
    line: int
    body_start: int
    """Index of the first line below it."""
    versions: tuple[str, ...]


def is_changelog_path(path: str) -> bool:
    """Return whether a file of this name may be a changelog."""
    return any(pattern.match(path) for pattern in _FILES)


def find_entry(files: Mapping[str, bytes], name: str, version: Version) -> str:
    """Return the changelog entry of `version`; empty when there is none.

    Args:
        files: paths and contents of a tree.
        name: the package's name, which may begin a heading.
        version: the release.
    """
    for pattern in _FILES:
        for path in sorted(files, key=lambda path: (path.count("/"), len(path), path)):
            if pattern.match(path) and (section := find_section(files[path].decode(errors="replace"), name, version)):
                return section
    return ""


def find_section(text: str, name: str, version: Version) -> str:
    """Return the part of a changelog below the heading of `version`; empty when there is none."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    headings = _find_headings(lines, name)
    for at, heading in enumerate(headings):
        if any(_is_same_version(listed_version, version) for listed_version in heading.versions):
            end = headings[at + 1].line if at + 1 < len(headings) else len(lines)
            return _trim_blank_lines(_cut_own_lines(lines[heading.line], lines[heading.body_start : end]))
    return ""


def _cut_own_lines(heading: str, below: list[str]) -> list[str]:
    """Return the lines below a `##` heading up to the next of its level, whatever that section contains."""
    marks = re.match(r"^#{2,5}(?=\s)", heading)
    ends = (n for n, line in enumerate(below) if marks and line.startswith(f"{marks[0]} "))
    return below[: next(ends, len(below))]


def _find_headings(lines: list[str], name: str) -> list[_VersionHeading]:
    marked, plain = [], []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or len(stripped) > _MAX_HEADING_LENGTH or line[:1] == " ":
            continue
        versions = tuple(_VERSION.findall(_strip_dates(stripped)))
        if not versions:
            continue
        underlined = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
        overlined = underlined and number > 0 and _UNDERLINE.match(lines[number - 1]) is not None
        by_mark = underlined or re.match(r"^(#{1,5}\s|={1,5}\s)", line) is not None
        if by_mark and _count_other_letters(stripped, name) <= _MAX_OTHER_LETTERS * 2:
            marked.append(_VersionHeading(number - overlined, number + 1 + underlined, versions))
        elif _starts_with_version(stripped, name) and _count_other_letters(stripped, name) <= _MAX_OTHER_LETTERS // 3:
            plain.append(_VersionHeading(number, number + 1, versions))
    # In a text with marked headings, a line that only begins with a number is not one.
    return marked or plain


def _starts_with_version(line: str, name: str) -> bool:
    return re.match(rf"^[\[(*]{{0,3}}({re.escape(name)} )?(v|version |release )?\d", line, re.IGNORECASE) is not None


def _strip_dates(line: str) -> str:
    return re.sub(r"\b\d{4}[-./]\d{1,2}[-./]\d{1,2}\b|\b\d{1,2}[-./]\d{1,2}[-./]\d{4}\b|https?://\S+", " ", line)


def _count_other_letters(line: str, name: str) -> int:
    """Count the letters of a line without versions, dates and the words that usually accompany them."""
    rest = _HEADING_WORDS.sub("", _VERSION.sub("", _strip_dates(line)))
    rest = re.sub(re.escape(name), "", rest, flags=re.IGNORECASE)
    return sum(letter.isalpha() for letter in rest)


def _is_same_version(text: str, version: Version) -> bool:
    try:
        return Version(text) == version
    except InvalidVersion:
        return False


def _trim_blank_lines(lines: list[str]) -> str:
    while lines and (not lines[-1].strip() or re.match(r"^\.\. _|^<a |^-{3,}$|^\[\S+\]: ", lines[-1])):
        lines = lines[:-1]
    # An anchor or a date below a heading carries no information.
    body = [line for line in lines if not _EMPTY_ENTRY.match(line)]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in body)).strip("\n")
    return text if re.search(r"[^\W\d_]{2,}", text) else ""
