"""What the miner holds of one change while it decides: its record, the files it touches, and its patches on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from mergemill.config import Settings
from taskdb.records import PullRequest


class Reason(StrEnum):
    """Why a change is no candidate. Stored and counted; the words are public."""

    NO_BASE = "no-base"
    NO_MERGE_COMMIT = "no-merge-commit"
    BRANCH_MERGE = "branch-merge"
    NOT_IN_DEFAULT_LINE = "not-in-default-line"
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
    CONFLICT_MARKERS = "conflict-markers"
    LANGUAGE_SHARE = "language-share"
    VERSION_BUMP = "version-bump"
    MOVES_ONLY = "moves-only"
    FORMATTING_ONLY = "formatting-only"
    DOCSTRINGS_ONLY = "docstrings-only"
    TESTS_UNCHANGED = "tests-unchanged"
    TESTS_REMOVED = "tests-removed"
    LICENSE = "license"
    IN_BENCHMARK = "in-benchmark"
    NEAR_DUPLICATE = "near-duplicate"
    ROUND_TRIP = "round-trip"
    NOT_ROUTED = "not-routed"


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


class Line(NamedTuple):
    """An added or removed line of a patch, with its file."""

    path: str
    text: str
    added: bool


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
    changed: tuple[Line, ...]
    """Every added or removed line, in the patch's order."""


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
    read_blobs: Callable[[Sequence[str]], Iterable[bytes]] | None = None
    """Contents of git objects, in the order asked for; None where the source has no trees."""
    find_marked: Callable[[Sequence[str]], Collection[str]] | None = None
    """Those of some paths that .gitattributes at the base marks as vendored or generated."""
    list_tree: Callable[[], Iterable[str]] | None = None
    """Paths of all files of the base tree; None where the source has no trees."""
    _contents: dict[str, bytes] = field(default_factory=dict, repr=False)

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

    @cached_property
    def tree(self) -> tuple[str, ...]:
        """Paths of all files of the base tree; none where the source has no trees."""
        return tuple(self.list_tree()) if self.list_tree else ()

    def content(self, file: FileChange, *, before: bool = False) -> bytes:
        """A file as it is afterwards (or was before); empty where there is none, and where the source has no trees."""
        old, _, new = file.blobs.partition(" ")
        oid = old if before else new
        if self.read_blobs is None or not oid.strip("0") or "160000" in (file.old_mode, file.new_mode):
            return b""
        if oid not in self._contents:
            self._contents[oid] = next(iter(self.read_blobs([oid])))
        return self._contents[oid]

    def marked(self, paths: Sequence[str]) -> Collection[str]:
        """Those of `paths` that .gitattributes at the base marks as vendored or generated."""
        return self.find_marked(paths) if self.find_marked and paths else ()
