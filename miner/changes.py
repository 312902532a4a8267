"""Change under examination by the rules: its record, the files it touches, and its patches on demand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, Protocol

from core.settings.mining import SourceSettings
from miner.git.messages import is_branch_merge_title
from miner.similarity import PatchSketch, build_sketch
from taskdb.records import Candidate, PullRequest, Shape, work
from taskdb.records.tags import Tags


class Reason(StrEnum):
    """Why the miner rejects a change. The values are stored and part of the public interface."""

    NO_BASE = "no-base"
    NO_MERGE_COMMIT = "no-merge-commit"
    BRANCH_MERGE = "branch-merge"
    NOT_ON_DEFAULT_BRANCH = "not-on-default-branch"
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
    AWAITS_CLONE = work.AWAITS_CLONE


def is_in_date_range(source: SourceSettings, date: str) -> bool:
    """Return whether an ISO 8601 date lies between `since` and `until`, both included."""
    first, last = source.since, source.until
    # ISO dates have the same order as text.
    return (first is None or first.isoformat() <= date[:10]) and (last is None or date[:10] <= last.isoformat())


class FileChange(NamedTuple):
    """A row of a raw diff. `status` is git's letter (A, D, M, R, T); a mode is `100644`, or `000000` for no file."""

    status: str
    old_mode: str
    new_mode: str
    old_path: str
    new_path: str
    blobs: str = ""
    """Old and new blob id, separated by a space."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Old and new path; a path where both are the same."""
        return (self.old_path,) if self.old_path == self.new_path else (self.old_path, self.new_path)


class PatchLine(NamedTuple):
    """An added or removed line of a patch, with its file."""

    path: str
    text: str
    added: bool


@dataclass(frozen=True, slots=True)
class Patch:
    """Gold or test patch in git's format. Always valid UTF-8: other content is encoded as a git binary patch."""

    text: str
    files: tuple[str, ...]
    """Changed paths (new names of renames), sorted."""
    remaining_files: tuple[str, ...]
    """Those `files` that exist after the change."""
    line_count: int
    """Added and removed lines; a binary file counts none."""
    changed_lines: tuple[PatchLine, ...]
    """Every added or removed line, in the order of the patch."""


@dataclass(frozen=True, slots=True)
class PatchSplit:
    """Gold and test patch of a change. `fault`: why applying both does not give the merged tree; empty if it does."""

    gold: Patch
    test: Patch
    fault: str = ""


class UnparsablePatchError(Exception):
    """A patch cannot be split; the message names the place."""


FindSimilar = Callable[[PullRequest, Sequence[int]], Iterable[Candidate]]
"""Return stored candidates that share a similarity key with a change, of changes stored before it."""


class ChangeSource(Protocol):
    """Reader of the facts that rules need of a change besides its record, each when a rule first needs it.

    A source without trees inherits the methods that return nothing.
    """

    @abstractmethod
    def make_split(self) -> PatchSplit:
        """Return gold and test patch.

        Raises:
            UnparsablePatchError: the patch cannot be split.
        """

    @abstractmethod
    def find_license(self) -> str:
        """Return the SPDX expression of the tree at the base commit."""

    def read_blobs(self, oids: Sequence[str]) -> Iterable[bytes]:
        """Return the contents of git blobs in the given order."""
        del oids
        return ()

    def find_marked_paths(self, paths: Sequence[str]) -> Collection[str]:
        """Return those paths that .gitattributes at the base commit marks as vendored or generated."""
        del paths
        return ()

    def list_tree(self) -> Iterable[str]:
        """Return the paths of the base tree."""
        return ()


@dataclass(kw_only=True)
class Change:
    """A change under examination. Patches, licence and tags are computed when a rule first needs them."""

    pull_request: PullRequest
    files: tuple[FileChange, ...]
    source: ChangeSource
    source_rejection: tuple[Reason, str] | None = None
    """Reason and detail found while the source was read; the rules that need `RuleInput.SOURCE` report it."""
    make_tags: Callable[[], Tags] | None = None
    """Tag the change, given that no rule before has rejected it."""
    find_similar: Callable[[PatchSketch], Iterable[tuple[Candidate, PatchSketch]]] | None = None
    """Return stored candidates that may be near duplicates; None where there is no database."""
    awaits_tests: bool = False
    """Whether the change has no tests, and a model is to write them."""
    lacks_test_writer: bool = False
    """Whether a model is to write missing tests, but there is none."""
    _contents: dict[str, bytes] = field(default_factory=dict, repr=False)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """All changed paths, old and new names, sorted."""
        return tuple(sorted({path for file in self.files for path in file.paths}))

    @cached_property
    def split(self) -> PatchSplit:
        """Gold and test patch.

        Raises:
            UnparsablePatchError: the patch cannot be split.
        """
        return self.source.make_split()

    @cached_property
    def license(self) -> str:
        """SPDX expression of the tree at the base commit."""
        return self.source.find_license()

    @cached_property
    def tree_paths(self) -> tuple[str, ...]:
        """Paths of all files of the base tree; empty where the source has no trees."""
        return tuple(self.source.list_tree())

    @cached_property
    def tags(self) -> Tags | None:
        """Tags of a change that passed the rules so far; None where no tags are made."""
        return self.make_tags() if self.make_tags else None

    @cached_property
    def problem_statement(self) -> str:
        """Problem statement of the source, or title and text of the change where the source has none."""
        request = self.pull_request
        if request.problem_statement or request.shape is Shape.RELEASE:
            return request.problem_statement.strip()
        # The title of such a merge names branches and describes no change.
        title = "" if is_branch_merge_title(request.title) else request.title
        return f"{title}\n\n{request.body}".strip()

    @cached_property
    def sketch(self) -> PatchSketch:
        """Features of patches and problem statement, by which near duplicates are found."""
        return build_sketch(self.split.gold.text, self.split.test.text, self.problem_statement)

    def read_content(self, file: FileChange, *, before: bool = False) -> bytes:
        """Return a file's content after (or before) the change; empty where there is no file or no tree."""
        old, _, new = file.blobs.partition(" ")
        oid = old if before else new
        # The id of a submodule is a commit of another repository, and zeros stand for no file.
        if not oid.strip("0") or "160000" in (file.old_mode, file.new_mode):
            return b""
        if oid not in self._contents:
            self._contents[oid] = next(iter(self.source.read_blobs([oid])), b"")
        return self._contents[oid]

    def find_generated_paths(self, paths: Sequence[str]) -> Collection[str]:
        """Return those `paths` that .gitattributes at the base commit marks as vendored or generated."""
        return self.source.find_marked_paths(paths) if paths else ()
