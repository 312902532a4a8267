"""What detectors find: facts, each with the file and line it stands in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from languages.tree import Tree


class Kind(StrEnum):
    """What a fact speaks of."""

    PYTHON = "python"
    """A version the project says it is tested on, such as `3.8`."""
    REQUIRES_PYTHON = "requires-python"
    """A version specifier."""
    REQUIREMENT = "requirement"
    """A PEP 508 requirement that the tests' set-up installs."""
    REQUIREMENTS_FILE = "requirements-file"
    EXTRA = "extra"
    """An extra of the project that the tests' set-up installs."""
    GROUP = "group"
    """A dependency group (PEP 735, poetry, pdm, hatch) that the tests' set-up installs."""
    SYSTEM = "system"
    """A Debian package."""
    TEST_LINE = "test-line"
    """A command line that runs the tests."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One finding. `line` is 1-based, 0 when the whole file speaks."""

    kind: Kind
    value: str
    path: str
    line: int = 0


Detector = Callable[[Tree], Iterator[Fact]]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A requirement with its place. `text` is a PEP 508 requirement or, for sets of them, their common name."""

    text: str
    path: str
    line: int = 0

    @property
    def name(self) -> str:
        """The distribution's canonical name."""
        return distribution(self.text)


def line_of(text: str, needle: str, start: int = 0) -> int:
    """The 1-based line in which `needle` first stands from offset `start` on; 0 when it doesn't."""
    at = text.find(needle, start)
    return text.count("\n", 0, at) + 1 if at >= 0 else 0


def requirement(text: str) -> str | None:
    """`text` as a requirement (comments and pip's per-requirement options cut off), or None when it is none."""
    text = re.split(r"\s+#|\s+--|\s+\\$", text.strip(), maxsplit=1)[0].strip().rstrip("\\").strip()
    try:
        parsed = Requirement(text)
    except InvalidRequirement:
        return None
    # A direct reference points to some forge; the released package of that name is what the date gives.
    return parsed.name if parsed.url else text


def distribution(text: str) -> str:
    """Canonical name of a requirement's distribution; the text itself when it is none."""
    try:
        return str(canonicalize_name(Requirement(text).name))
    except InvalidRequirement:
        return text
