"""The entry of one version in a project's changelog, whatever it is written in.

A changelog is a text with a heading for each version. A heading is a short line that holds the version, marked as a
heading (`#`, underlined) or standing at the beginning of a line with little else than a date beside it. The entry goes
from there to the heading of the next version, or to the next heading of its own level.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

_FILES = (
    re.compile(r"^(docs?/(source/|src/)?)?(changes|changelog|change_log|history|news|releases?|release[-_]?notes|whatsnew|"
               r"what'?s[-_]?new|versions?)(\.(rst|md|txt|markdown|adoc))?$", re.IGNORECASE),
    re.compile(r"^(docs?/(source/|src/)?)?(changes|changelog|history|news|releases?|release[-_]?notes|whatsnew)"
               r"[-_/]v?[\w.]*\.(rst|md|txt)$", re.IGNORECASE),
    re.compile(r"^readme(\.(rst|md|txt))?$", re.IGNORECASE),
)  # fmt: skip
"""Where entries are looked for, most likely first: a changelog, a file for each version, the readme."""

_UNDERLINE = re.compile(r"^([=\-~^`'\"*+#.:_])\1{2,}\s*$")
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:\.?(?:post|rc|a|b|dev)\d*)?|\d+\.0)(?![\w]|\.\d)", re.IGNORECASE)
_BESIDE = re.compile(
    r"\b(version|release|released|changes|changelog|in|on|final|new|what'?s|notes?|stable|features?|"
    r"jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*|unreleased)\b|\d+(st|nd|rd|th)?\b",
    re.IGNORECASE,
)
_MOST_BESIDE = 30  # letters beside a version in a line that is a heading by its place alone
_LONGEST_HEADING = 100
_NOTHING = re.compile(
    r"^\.\. (_|:changelog:)|^<a (id|name)=|^[\W_]*(release date|released|unreleased)\b[^\n]{0,40}$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Heading:
    line: int
    after: int
    """The first line below it."""
    versions: tuple[str, ...]


def may_tell(path: str) -> bool:
    """Whether a file of this name may be a changelog."""
    return any(pattern.match(path) for pattern in _FILES)


def entry(files: Mapping[str, bytes], name: str, version: Version) -> str:
    """What the changelog says of `version`; empty when it says nothing.

    Args:
        files: paths and contents of a tree.
        name: the package's name, which headings may begin with.
        version: the release.
    """
    for pattern in _FILES:
        for path in sorted(files, key=lambda path: (path.count("/"), len(path), path)):
            if pattern.match(path) and (found := section(files[path].decode(errors="replace"), name, version)):
                return found
    return ""


def section(text: str, name: str, version: Version) -> str:
    """The part of a changelog below the heading of `version`, or empty."""
    lines = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    headings = _headings(lines, name)
    for at, heading in enumerate(headings):
        if any(_same(found, version) for found in heading.versions):
            end = headings[at + 1].line if at + 1 < len(headings) else len(lines)
            return _trimmed(_own(lines[heading.line], lines[heading.after : end]))
    return ""


def _own(heading: str, below: list[str]) -> list[str]:
    """The lines below a `##` heading up to the next of its level, which need not name a version."""
    marks = re.match(r"^#{2,5}(?=\s)", heading)
    ends = (n for n, line in enumerate(below) if marks and line.startswith(f"{marks[0]} "))
    return below[: next(ends, len(below))]


def _headings(lines: list[str], name: str) -> list[_Heading]:
    marked, plain = [], []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or len(stripped) > _LONGEST_HEADING or line[:1] == " ":
            continue
        versions = tuple(_VERSION.findall(_without_dates(stripped)))
        if not versions:
            continue
        underlined = number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) is not None
        overlined = underlined and number > 0 and _UNDERLINE.match(lines[number - 1]) is not None
        by_mark = underlined or re.match(r"^(#{1,5}\s|={1,5}\s)", line) is not None
        if by_mark and _beside(stripped, name) <= _MOST_BESIDE * 2:
            marked.append(_Heading(number - overlined, number + 1 + underlined, versions))
        elif _begins_with_version(stripped, name) and _beside(stripped, name) <= _MOST_BESIDE // 3:
            plain.append(_Heading(number, number + 1, versions))
    # In a text with marked headings, a line that merely begins with a number is not one.
    return marked or plain


def _begins_with_version(line: str, name: str) -> bool:
    return re.match(rf"^[\[(*]{{0,3}}({re.escape(name)} )?(v|version |release )?\d", line, re.IGNORECASE) is not None


def _without_dates(line: str) -> str:
    return re.sub(r"\b\d{4}[-./]\d{1,2}[-./]\d{1,2}\b|\b\d{1,2}[-./]\d{1,2}[-./]\d{4}\b|https?://\S+", " ", line)


def _beside(line: str, name: str) -> int:
    """How many letters a line has besides versions, dates and the words that go with them."""
    rest = _BESIDE.sub("", _VERSION.sub("", _without_dates(line)))
    rest = re.sub(re.escape(name), "", rest, flags=re.IGNORECASE)
    return sum(letter.isalpha() for letter in rest)


def _same(found: str, version: Version) -> bool:
    try:
        return Version(found) == version
    except InvalidVersion:
        return False


def _trimmed(lines: list[str]) -> str:
    while lines and (not lines[-1].strip() or re.match(r"^\.\. _|^<a |^-{3,}$|^\[\S+\]: ", lines[-1])):
        lines = lines[:-1]
    # An anchor or a date below a heading says nothing of the change.
    body = [line for line in lines if not _NOTHING.match(line)]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in body)).strip("\n")
    return text if re.search(r"[^\W\d_]{2,}", text) else ""
