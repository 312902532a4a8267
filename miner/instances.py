"""`instances:` sources: published tasks in SWE-bench's fields, one JSON object a line, to be verified again.

A file whose name ends in `.gz` is unpacked as it is read.

Gold and test patch are taken as published. A line that cannot be used is named by its number, and the others go on.
Multi-SWE-bench's rows have fields of their own (`miner.multi_swe_bench`); they tell no date, so the base commit's is
taken.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from backends.tree import Tree
from languages.registry import all_languages, language_of
from mergemill.errors import InputError, Transient
from miner import multi_swe_bench
from miner.changes import Change, FileChange, Reason, Split, Unparsable, within
from miner.licenses import Licenses
from miner.patches import Section, cut, split_published
from miner.scratch import Scratch, scratch
from taskdb.records import Published, PullRequest, Shape

if TYPE_CHECKING:
    from backends.git import Repository
    from backends.services import Services

_MAY_BE_ID = re.compile(r"[0-9a-f]+")


def _listed(value: Any) -> Any:
    """A list, also where it was published as a JSON text."""
    return json.loads(value) if isinstance(value, str) else value


_TestIds = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Row(BaseModel):
    """The fields of SWE-bench that are read; others are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    instance_id: str
    repo: str
    base_commit: str
    patch: str
    test_patch: str
    problem_statement: str
    FAIL_TO_PASS: _TestIds
    PASS_TO_PASS: _TestIds = ()
    hints_text: str | None = ""
    created_at: str | int | None = ""
    version: str | float | None = ""

    @property
    def created(self) -> str:
        """The day of the change, ISO 8601 in UTC; the text as it is when it is no date."""
        try:
            when = (
                datetime.fromtimestamp(self.created_at / (1000 if self.created_at > 1 << 36 else 1), UTC)
                if isinstance(self.created_at, int)
                else datetime.fromisoformat(self.created_at or "")
            )
        except ValueError:
            return str(self.created_at)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")


class Bench:
    """The clones that the rows of one file need, each opened once, with a scratch beside it."""

    def __init__(self, source: str, services: Services, stack: ExitStack) -> None:
        self.source = source
        self.services = services
        self.stack = stack
        self._open: dict[str, tuple[Scratch, Licenses]] = {}
        self._failed: dict[str, InputError | Transient] = {}

    def of(self, repo: str) -> tuple[Scratch, Licenses]:
        """Scratch and licences of `owner/name`.

        Raises:
            InputError: there is no usable clone.
            Transient: it could not be made this time; tried once a run, however many lines need it.
        """
        if failure := self._failed.get(repo):
            raise type(failure)(str(failure), advice=failure.advice)
        if repo not in self._open:
            try:
                repository = self.services.clones.open(self.source, repo)
            except (InputError, Transient) as error:
                self._failed[repo] = error
                raise
            self._open[repo] = (self.stack.enter_context(scratch(repository)), Licenses(repository))
        return self._open[repo]


def changes_of_instances(source: str, services: Services, only: Sequence[str] = ()) -> Iterator[Change | InputError]:
    """The published tasks of a file, in its order; for a line that cannot be used, the error that names it.

    No repository is looked for on behalf of a task that is not meant, by its name or its date.

    Args:
        source: `instances:FILE`.
        services: settings, clones and artifacts are used.
        only: names of tasks, or ids of records; empty for all. An id is known only when the whole task was read, so
            where one is among them all tasks are.

    Raises:
        InputError: the file cannot be read.
        Transient: after all others, when a clone could not be made this time.
    """
    path = Path(source.partition(":")[2])
    waiting: list[Transient] = []
    seen: dict[str, int] = {}
    with ExitStack() as stack:
        bench = Bench(source, services, stack)
        for number, line in lines(path):
            try:
                row = read(line)
                once(row, number, seen)
                if _meant(row, only, services):
                    yield _change(row, source, bench, services)
            except InputError as error:
                yield InputError(f"{path}:{number}: {error}", advice=error.advice)
            except Transient as error:
                waiting.append(error)
    if waiting:
        raise Transient(f"{waiting[0]}; lines of {path} that wait: {len(waiting)}", advice=waiting[0].advice)


def read(line: str) -> Row:
    """One line as a task.

    Raises:
        InputError: it is not JSON, or a field is missing or malformed.
    """
    try:
        data = json.loads(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise InputError("not a JSON object")
    if "instance_id" in data and "fix_patch" in data and "base" in data:
        data = multi_swe_bench.fields(data)
    try:
        row = Row.model_validate(data)
    except (ValidationError, ValueError) as error:
        raise InputError(_first_fault(error)) from error
    if not row.instance_id or row.repo.count("/") != 1 or not row.base_commit:
        raise InputError("instance_id, repo (owner/name) and base_commit must not be empty")
    return row


def _meant(row: Row, only: Sequence[str], services: Services) -> bool:
    """Whether a task is asked for, by name and date; one without a date is."""
    named = not only or row.instance_id in only or any(map(_MAY_BE_ID.fullmatch, only))
    return named and (row.created_at is None or within(services.settings, row.created))


def once(row: Row, number: int, seen: dict[str, int]) -> None:
    """Refuse a name that an earlier line has; `seen`: name -> number of the line that has it.

    Raises:
        InputError: it stands there already.
    """
    if (first := seen.setdefault(row.instance_id, number)) != number:
        raise InputError(f"{row.instance_id} stands in line {first} already")


def _first_fault(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"field {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that hold something. A byte that is not UTF-8 makes its own line fail, not the file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if text := raw.decode(errors="replace").strip().lstrip("\ufeff"):
                    yield number, text
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def _change(row: Row, source: str, bench: Bench, services: Services) -> Change:
    title = row.problem_statement.strip().partition("\n")[0].strip()
    files, settled = _files(row)
    created = "" if row.created_at is None else row.created
    if settled is None:  # only a task that can go further is worth a clone
        repository = bench.of(row.repo)[1].repository
        if not repository.has_commit(row.base_commit):
            raise InputError(f"{repository.path} does not hold commit {row.base_commit}", advice="fetch it there")
        created = created or _committed(repository, row.base_commit)
    put = services.artifacts.put_text
    request = PullRequest(
        source=source, repo=row.repo, name=row.instance_id, number=None, shape=Shape.INSTANCE, title=title, body="",
        author="", merged_at=created, base_commit=row.base_commit, merge_commit=row.base_commit,
        problem_statement=row.problem_statement, hints=row.hints_text or "", patch=put(row.patch),
        test_patch=put(row.test_patch), version=str(row.version or ""),
        published=Published(fail_to_pass=row.FAIL_TO_PASS, pass_to_pass=row.PASS_TO_PASS),
    )  # fmt: skip

    def split() -> Split:
        return split_published(bench.of(row.repo)[0], row.base_commit, row.patch, row.test_patch)

    def license_() -> str:
        return bench.of(row.repo)[1].of(row.base_commit)

    def tree() -> Iterable[str]:
        return Tree(bench.of(row.repo)[1].repository, row.base_commit).entries

    return Change(
        pull_request=request, files=files, make_split=split, find_license=license_, settled=settled, list_tree=tree
    )


def _files(row: Row) -> tuple[tuple[FileChange, ...], tuple[Reason, str] | None]:
    """The files of both patches, and what these alone say against the task."""
    try:
        split = split_published(None, row.base_commit, row.patch, row.test_patch)
        sections = [section for text in (row.patch, row.test_patch) for section in cut(text.encode())]
    except Unparsable as fault:
        return (), (Reason.UNPARSABLE, str(fault))
    language = language_of(split.gold.files)
    settled = None
    if language and language not in all_languages():
        settled = (Reason.LANGUAGE, f"{language} is not supported yet")
    elif not split.test.files:
        settled = (Reason.NO_TESTS, "the test patch is empty")
    return tuple(map(_file, sections)), settled


def _committed(repository: Repository, commit: str) -> str:
    """When a commit was made, ISO 8601 in UTC."""
    seconds = int(repository.git("log", "-1", "--format=%ct", commit))
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _file(section: Section) -> FileChange:
    status = "A" if section.old is None else "D" if section.new is None else "M" if section.old == section.new else "R"
    submodule = b"Subproject commit" in section.body and b" 160000" in section.body
    mode = "160000" if submodule else "100644"
    return FileChange(status, mode, mode, section.old or section.path, section.path)
