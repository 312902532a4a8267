"""What the miner holds of one change while it decides: its record, the files it touches, and its patches on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from mergemill.config import Settings
from taskdb.records import PullRequest


class Reason(StrEnum):
    """Why a change is no candidate. Stored and counted; the words are public."""

    NO_BASE = "no-base"
    BRANCH_MERGE = "branch-merge"
    UNREADABLE_SDIST = "unreadable-sdist"
    EMPTY = "empty"
    BOT = "bot"
    NOT_A_CHANGE = "not-a-change"
    SUBMODULE = "submodule"
    NO_TESTS = "no-tests"
    GENERATED = "vendored-or-generated"
    LANGUAGE = "language-not-supported"
    NO_SOURCE = "no-source"
    TOO_MANY_FILES = "too-many-files"
    NO_STATEMENT = "no-statement"
    UNPARSABLE = "unparsable-patch"
    TOO_LARGE = "too-large"
    VERSION_BUMP = "version-bump"
    LICENSE = "license"
    ROUND_TRIP = "round-trip"


def within(settings: Settings, when: str) -> bool:
    """Whether a date (ISO 8601) lies between `since` and `until`, both included."""
    first, last = settings.since, settings.until
    return (first is None or first.isoformat() <= when[:10]) and (last is None or when[:10] <= last.isoformat())


class FileChange(NamedTuple):
    """One row of a raw diff. `status` is git's letter (A, D, M, R, T); modes are such as `100644`, `000000`: none."""

    status: str
    old_mode: str
    new_mode: str
    old_path: str
    new_path: str
    blobs: str = ""
    """Old and new blob, parted by a space."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Old and new name, once when they are the same."""
        return (self.old_path,) if self.old_path == self.new_path else (self.old_path, self.new_path)


@dataclass(frozen=True, slots=True)
class Patch:
    """One side of a change as text that git applies; always valid UTF-8, what is not text travels as git's base 85."""

    text: str
    files: tuple[str, ...]
    """Paths touched (new names of renames), sorted."""
    left: tuple[str, ...]
    """Those of `files` that are there afterwards."""
    lines: int
    """Added and removed lines; a binary file counts none."""
    changed: tuple[tuple[str, str], ...]
    """Every added or removed line with its file: `(path, text)`."""


@dataclass(frozen=True, slots=True)
class Split:
    """A change in its two parts. `fault` says why applying them does not give the merge's tree; empty when it does."""

    gold: Patch
    test: Patch
    fault: str = ""


class Unparsable(Exception):  # noqa: N818 - a finding on a patch, turned into a rejection by the rules
    """A patch cannot be taken apart; the message says where."""


@dataclass(kw_only=True)
class Change:
    """A change under decision. Patches and licence cost git processes, so they are made when a rule first asks."""

    pull_request: PullRequest
    files: tuple[FileChange, ...]
    make_split: Callable[[], Split]
    find_license: Callable[[], str]
    settled: tuple[Reason, str] | None = None
    """A reason and detail found while reading the source; no rule is asked then."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """All paths touched, old and new names, sorted."""
        return tuple(sorted({path for file in self.files for path in file.paths}))

    @cached_property
    def split(self) -> Split:
        """Gold and test patch.

        Raises:
            Unparsable: the patch cannot be taken apart.
        """
        return self.make_split()

    @cached_property
    def license(self) -> str:
        """SPDX expression of the tree at the base commit."""
        return self.find_license()
