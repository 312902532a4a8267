"""`instances:` sources: published tasks in SWE-bench's fields, in files of `miner.row_files`, to be verified again.

Gold and test patch are used as published. An unusable row is reported with its number, and the others are read. Rows of
Multi-SWE-bench have fields of their own (`miner.multi_swe_bench`) and no date; the date of the base commit is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from backends.scratch import ScratchRepository, open_scratch
from backends.tree import CommitTree
from core.errors import InputError, Transient
from core.validation import describe_invalid
from languages.registry import LANGUAGES, detect_language
from miner import multi_swe_bench
from miner.changes import Change, ChangeSource, FileChange, PatchSplit, Reason, UnparsablePatchError, is_in_date_range
from miner.licenses import LicenseFinder
from miner.patches import DiffSection, parse_published_patches, split_sections
from miner.row_files import read_row_file
from miner.test_lists import LIST_NAMES, read_test_list
from taskdb.records import Candidate, PublishedLists, PullRequest, Shape

if TYPE_CHECKING:
    from backends.git import GitRepository
    from backends.services import Services

MAX_UNREACHABLE = 3
"""Consecutive repositories that cannot be reached, after which no other is tried."""
_NAME = re.compile(r"(?!\.)[^/\\]{1,250}")
"""Name of a task, which is shown, and names files of exports."""
_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}/(?!\.{1,2}$)[\w.-]{1,99}", re.ASCII)
_MAY_BE_ID = re.compile(r"[0-9a-f]+")
_MAY_BE_NULL = ("test_patch", "problem_statement")
"""Fields that are empty texts where they are null; the rules reject such a task with its reason."""


class InstanceRow(BaseModel):
    """Fields of SWE-bench that are read; others are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    instance_id: str
    repo: str
    base_commit: str
    patch: str
    test_patch: str
    problem_statement: str
    FAIL_TO_PASS: tuple[str, ...] = ()
    PASS_TO_PASS: tuple[str, ...] = ()
    hints_text: str | None = ""
    created_at: str | int | float | None = ""
    version: str | float | None = ""

    @property
    def created_date(self) -> str:
        """Date of the change, ISO 8601 in UTC; the original text where it is no date."""
        try:
            when = (
                datetime.fromtimestamp(self.created_at / (1000 if self.created_at > 1 << 36 else 1), UTC)
                if isinstance(self.created_at, int | float)
                else datetime.fromisoformat(self.created_at or "")
            )
        except (ValueError, OverflowError, OSError):
            # A number may be out of the range of dates, and a text may hold no date.
            return str(self.created_at)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")


class PublishedClones:
    """Clones of the repositories of published tasks; each is made at most once, and none where no forge answers."""

    def __init__(self, services: Services) -> None:
        self._clones = services.clones
        self._failed: dict[str, InputError | Transient] = {}
        self._n_unreachable = 0

    def open(self, repo: str) -> GitRepository:
        """Open the clone of `owner/name`.

        Raises:
            InputError: there is no usable clone.
            Transient: cloning failed, now or before; or the last MAX_UNREACHABLE repositories could not be reached.
        """
        if failure := self._failed.get(repo):
            raise type(failure)(str(failure), advice=failure.advice)
        source = "instances:"
        if self._n_unreachable >= MAX_UNREACHABLE and self._clones.find_existing(source, repo) is None:
            raise Transient(f"{repo} was not cloned: no forge answers", advice="run the same command again later")
        try:
            repository = self._clones.open(source, repo)
        except (InputError, Transient) as error:
            self._failed[repo] = error
            self._n_unreachable += isinstance(error, Transient)
            raise
        self._n_unreachable = 0
        return repository


class InstanceClones:
    """Clones for the rows of a file, each opened once, with a scratch repository."""

    def __init__(self, services: Services, stack: ExitStack) -> None:
        self.services = services
        self.stack = stack
        self._clones = PublishedClones(services)
        self._open: dict[str, tuple[ScratchRepository, LicenseFinder]] = {}

    def open(self, repo: str, commit: str) -> tuple[ScratchRepository, LicenseFinder]:
        """Open scratch repository and licences of `owner/name`; of its base trees in the store for a commit made there.

        Raises:
            InputError: there is no usable clone.
            Transient: cloning failed; it is tried once per run, however many lines need the clone.
        """
        kept = self.services.clones.trees.find(repo, commit)
        try:
            opened = self._open_once(repo, lambda: self._clones.open(repo))
        except (InputError, Transient):
            if kept is None:
                raise
            return self._open_once(f"kept {repo}", lambda: kept)
        if kept is None or opened[1].repository.has_commit(commit):
            return opened
        return self._open_once(f"kept {repo}", lambda: kept)

    def _open_once(
        self, key: str, open_repository: Callable[[], GitRepository]
    ) -> tuple[ScratchRepository, LicenseFinder]:
        if key not in self._open:
            repository = open_repository()
            self._open[key] = (self.stack.enter_context(open_scratch(repository)), LicenseFinder(repository))
        return self._open[key]


def read_instances(source: str, services: Services, only: Sequence[str] = ()) -> Iterator[Change | InputError]:
    """Yield the published tasks of a file, in its order; an error for each unusable line.

    No repository is opened for a task that is not selected by name and date.

    Args:
        source: `instances:FILE`.
        services: settings, clones and artifacts are used.
        only: names of tasks, or ids of records; empty for all. With an id among them all tasks are read, since an id is
            computed from the whole task.

    Raises:
        InputError: the file cannot be read.
        Transient: after all others, if a clone could not be made.
    """
    path = Path(source.partition(":")[2])
    waiting: list[Transient] = []
    # With an id, every task is read.
    names = None if not only or any(map(_MAY_BE_ID.fullmatch, only)) else frozenset(only)
    with ExitStack() as stack:
        clones = InstanceClones(services, stack)
        for number, row in read_instance_rows(path):
            if isinstance(row, InputError):
                yield row
                continue
            try:
                if _is_selected(row, names, services):
                    yield _build_change(row, source, clones, services)
            except InputError as error:
                yield InputError(f"{path}:{number}: {error}", advice=error.advice)
            except Transient as error:
                waiting.append(error)
    if waiting:
        raise Transient(f"{waiting[0]}; lines of {path} not read: {len(waiting)}", advice=waiting[0].advice)


def read_instance_rows(path: Path) -> Iterator[tuple[int, InstanceRow | InputError]]:
    """Yield number and content of each row of a file; an error for an unusable row, or one with an earlier row's name.

    Raises:
        InputError: the file cannot be read.
    """
    seen: dict[str, int] = {}
    for row in read_row_file(path):
        if row.problem:
            yield row.number, InputError(f"{path}:{row.number}: {row.problem}")
            continue
        try:
            instance = build_instance(row.value)
            _check_unique(instance, row.number, seen)
        except InputError as error:
            yield row.number, InputError(f"{path}:{row.number}: {error}", advice=error.advice)
        else:
            yield row.number, instance


def parse_instance(line: str) -> InstanceRow:
    """Parse a row of JSON lines.

    Raises:
        InputError: it is not JSON, or a field is missing or malformed.
    """
    try:
        return build_instance(json.loads(line))
    except ValueError as error:
        raise InputError(f"it is not JSON: {error}") from error


def build_instance(data: object) -> InstanceRow:
    """Return a row of JSON as a published task.

    Raises:
        InputError: a field is missing or malformed.
    """
    if not isinstance(data, Mapping):
        raise InputError("it is not a JSON object")
    if "instance_id" in data and "fix_patch" in data and "base" in data:
        data = multi_swe_bench.convert_row(dict(data))
    lists = {name: read_test_list(data, name) for name in LIST_NAMES}
    texts = {name: "" for name in _MAY_BE_NULL if name in data and data[name] is None}
    try:
        row = InstanceRow.model_validate({**data, **texts, **lists})
    except ValidationError as error:
        raise InputError(describe_invalid(error.errors())) from error
    if not row.instance_id or row.repo.count("/") != 1 or not row.base_commit:
        raise InputError("instance_id, repo (owner/name) and base_commit must not be empty")
    if not _NAME.fullmatch(row.instance_id) or not row.instance_id.isprintable():
        raise InputError(f"instance_id {row.instance_id[:60]!a} is not a name")
    if not _REPOSITORY.fullmatch(row.repo):
        raise InputError(f"repo {row.repo[:60]!a} is not owner/name")
    return row


def _is_selected(row: InstanceRow, names: Collection[str] | None, services: Services) -> bool:
    """Return whether a task is selected by name (None: any) and date; a task without a date passes."""
    named = names is None or row.instance_id in names
    return named and (row.created_at is None or is_in_date_range(services.settings.source, row.created_date))


def _check_unique(row: InstanceRow, number: int, seen: dict[str, int]) -> None:
    """Reject a name that an earlier row has; `seen`: name -> number of the row that has it.

    Raises:
        InputError: the name is in use.
    """
    if (first := seen.setdefault(row.instance_id, number)) != number:
        raise InputError(f"{row.instance_id} is also in line {first}")


@dataclass(frozen=True)
class InstanceSource(ChangeSource):
    """Source of a published instance: its own patches, and the tree of its base commit in a clone."""

    row: InstanceRow
    clones: InstanceClones

    def make_split(self) -> PatchSplit:
        """See ChangeSource."""
        scratch, _ = self.clones.open(self.row.repo, self.row.base_commit)
        return parse_published_patches(scratch, self.row.base_commit, self.row.patch, self.row.test_patch)

    def find_license(self) -> str:
        """See ChangeSource."""
        _, licenses = self.clones.open(self.row.repo, self.row.base_commit)
        return licenses.find_license(self.row.base_commit)

    def list_tree(self) -> Iterable[str]:
        """See ChangeSource."""
        _, licenses = self.clones.open(self.row.repo, self.row.base_commit)
        return CommitTree(licenses.repository, self.row.base_commit).entries


def _build_change(row: InstanceRow, source: str, clones: InstanceClones, services: Services) -> Change:
    files, rejection = _list_files(row)
    date = "" if row.created_at is None else row.created_date
    # Only a task that passes so far is worth a clone.
    if rejection is None:
        repository = clones.open(row.repo, row.base_commit)[1].repository
        if not repository.has_commit(row.base_commit):
            raise InputError(f"{repository.path} does not contain commit {row.base_commit}", advice="fetch it there")
        date = date or _read_commit_date(repository, row.base_commit)

    return Change(
        pull_request=build_pull_request(row, source, date, services),
        files=files,
        source=InstanceSource(row, clones),
        source_rejection=rejection,
    )


def build_pull_request(row: InstanceRow, source: str, date: str, services: Services) -> PullRequest:
    """Return the record of a row, whose patches are stored; `date`: ISO 8601 in UTC, empty where it is not known."""
    store_text = services.artifacts.put_text
    return PullRequest(
        source=source,
        repo=row.repo,
        name=row.instance_id,
        number=None,
        shape=Shape.INSTANCE,
        title=row.problem_statement.strip().partition("\n")[0].strip(),
        body="",
        author="",
        merged_at=date,
        base_commit=row.base_commit,
        merge_commit=row.base_commit,
        problem_statement=row.problem_statement,
        hints=row.hints_text or "",
        patch=store_text(row.patch),
        test_patch=store_text(row.test_patch),
        version=str(row.version or ""),
        published=PublishedLists(FAIL_TO_PASS=row.FAIL_TO_PASS, PASS_TO_PASS=row.PASS_TO_PASS),
    )


def build_unread_candidate(row: InstanceRow, pull: PullRequest, services: Services) -> Candidate:
    """Return a row as a candidate without a clone: the licence is not known, the patches are those of the row."""
    try:
        split = parse_published_patches(None, row.base_commit, row.patch, row.test_patch)
        gold, test = split.gold, split.test
        paths = (gold.files, test.remaining_files)
        lines = (gold.line_count, test.line_count)
    except UnparsablePatchError:
        paths, lines = ((), ()), (0, 0)
    return Candidate(
        parent=pull.id,
        source=pull.source,
        repo=pull.repo,
        name=pull.name,
        language=detect_language(paths[0]) or "unknown",
        base_commit=pull.base_commit,
        merge_commit=pull.merge_commit,
        created_at=pull.merged_at,
        version=pull.version,
        problem_statement=pull.problem_statement,
        hints=pull.hints,
        license="NOASSERTION",
        gold_patch=services.artifacts.put_text(row.patch),
        test_patch=services.artifacts.put_text(row.test_patch),
        gold_files=paths[0],
        test_files=paths[1],
        gold_lines=lines[0],
        test_lines=lines[1],
        published=pull.published,
    )


def _list_files(row: InstanceRow) -> tuple[tuple[FileChange, ...], tuple[Reason, str] | None]:
    """Return the files of both patches, and the rejection that the patches alone give."""
    try:
        split = parse_published_patches(None, row.base_commit, row.patch, row.test_patch)
        sections = [section for text in (row.patch, row.test_patch) for section in split_sections(text.encode())]
    except UnparsablePatchError as fault:
        return (), (Reason.UNPARSABLE, str(fault))
    language = detect_language(split.gold.files)
    rejection = None
    if language and language not in LANGUAGES:
        rejection = (Reason.LANGUAGE, f"{language} is not supported yet")
    elif not split.test.files:
        rejection = (Reason.NO_TESTS, "the test patch is empty")
    return tuple(map(_build_file_change, sections)), rejection


def _read_commit_date(repository: GitRepository, commit: str) -> str:
    """Read the date of a commit, ISO 8601 in UTC."""
    seconds = int(repository.run_git("log", "-1", "--format=%ct", commit))
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _build_file_change(section: DiffSection) -> FileChange:
    status = "A" if section.old is None else "D" if section.new is None else "M" if section.old == section.new else "R"
    submodule = b"Subproject commit" in section.body and b" 160000" in section.body
    mode = "160000" if submodule else "100644"
    return FileChange(status, mode, mode, section.old or section.path, section.path)
