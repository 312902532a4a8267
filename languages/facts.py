"""Facts that detectors extract from a source tree, each with its file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from languages.source_tree import SourceTree


class FactKind(StrEnum):
    """Kind of a fact."""

    PYTHON = "python"
    """A version on which the project is tested, such as `3.8`."""
    REQUIRES_PYTHON = "requires-python"
    """A version specifier."""
    REQUIREMENT = "requirement"
    """A PEP 508 requirement that the test set-up installs."""
    REQUIREMENTS_FILE = "requirements-file"
    EXTRA = "extra"
    """An extra of the project that the test set-up installs."""
    GROUP = "group"
    """A dependency group (PEP 735, poetry, pdm, hatch) that the test set-up installs."""
    SYSTEM = "system"
    """A Debian package."""
    TEST_LINE = "test-line"
    """A command line that runs the tests."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A value found in a file. `line` is 1-based; 0 refers to the whole file."""

    kind: FactKind
    value: str
    path: str
    line: int = 0


Detector = Callable[[SourceTree], Iterator[Fact]]


@dataclass(frozen=True, kw_only=True)
class SourcedValue:
    """A value with its file and line: a PEP 508 requirement, or the name of a set, package, image or version."""

    text: str
    path: str
    line: int = 0

    @property
    def distribution_name(self) -> str:
        """Canonical name of the distribution that `text` requires."""
        return parse_distribution_name(self.text)


def find_line(text: str, needle: str, start: int = 0) -> int:
    """Return the 1-based line of the first occurrence of `needle` at or after offset `start`; 0 if there is none."""
    at = text.find(needle, start)
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def parse_requirement(text: str) -> str | None:
    """Return `text` as a requirement without comments and per-requirement options; None if it is invalid."""
    text = re.split(r"\s+#|\s+--|\s+\\$", text.strip(), maxsplit=1)[0].strip().rstrip("\\").strip()
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        return None
    # A direct reference points to a forge; the package index serves the released package of that name by date.
    return parsed.name if parsed.url else text


def strip_version(text: str) -> str:
    """Return a package's name without its version, for `@scope/name@1`, `name>=1`, `name 1`."""
    return re.split(r"(?<=.)@|[\s<>=~!^;\[]", text, maxsplit=1)[0]


def parse_distribution_name(text: str) -> str:
    """Return the canonical distribution name of a requirement; `text` itself if it is not a requirement."""
    try:
        return str(canonicalize_name(Requirement(text).name))
    except InvalidRequirement:
        return text
