"""Import of task sets of others: their rows become changes, whose environments are built and verified here.

All imported rows lie in a single file of the store, `imports/tasks.jsonl`, in SWE-bench's fields. It is the source
`instances:<that file>`, so that equal tasks of several sets are a single change.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backends.index import ScratchIndex
from backends.overlay import open_patched_commit
from backends.scratch import DIFF_OPTIONS
from core.errors import InputError, Transient, make_write_error
from core.text import escape_line
from mergemill.execution.services import make_services
from miner.datasets import read_rows
from miner.instances import InstanceRow, PublishedClones, build_instance
from miner.row_files import read_row_file

if TYPE_CHECKING:
    from backends.services import Services
    from core.config import Settings
    from core.settings.storage import StorageSettings

log = logging.getLogger(__name__)

BUG_FORMATS = ("swe-smith",)
"""Formats whose patches inject bugs."""
_WHOLE_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_COMMIT_EXPRESSION = re.compile(r"[0-9a-f]{7,64}\^?")
_TaskKey = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class ForeignRow:
    """Result for a row. `place`: its file and line, or folder; `duplicate_of`: name of an equal task."""

    place: str
    name: str
    new: bool
    duplicate_of: str | None = None
    problem: str | None = None
    waits: bool = False
    """Whether the problem is that its repository cannot be cloned now, without which the row cannot be read."""


def locate_imports(storage: StorageSettings) -> Path:
    """Return the file of all imported rows."""
    return (storage.store_dir / "imports" / "tasks.jsonl").absolute()


def import_rows(path: Path, format_name: str, settings: Settings) -> Iterator[ForeignRow]:
    """Add the rows of a task set to the file of all imported rows; yield a result for each, unusable rows included.

    Args:
        path: a file or folder.
        format_name: a key of `miner.datasets.FORMATS`.
        settings: names the store, and the folder of local clones.

    Raises:
        UsageError: there is no such format.
        InputError: the file cannot be read.
        Transient: the disk is full or not writable.
    """
    services = make_services(settings, engine=False)
    clones = PublishedClones(services)
    with _open_imports(locate_imports(settings.storage)) as imports:
        for place, row in read_rows(path, format_name):
            if isinstance(row, InputError):
                yield ForeignRow(place=place, name="", new=False, problem=str(row))
                continue
            try:
                whole = resolve_base_commit(row, clones)
                if format_name in BUG_FORMATS:
                    whole = make_bug_commit(whole, clones, services)
                yield imports.add(place, whole)
            except (InputError, Transient) as error:
                yield ForeignRow(
                    place=place,
                    name=row.instance_id,
                    new=False,
                    problem=f"{place}: {error}",
                    waits=isinstance(error, Transient),
                )


class _ImportFile:
    """File of all imported rows, open for appending; the caller holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names: dict[str, _TaskKey] = {}
        self._tasks: dict[_TaskKey, str] = {}
        if path.exists():
            _remove_half_line(path)
            for row in read_row_file(path):
                self._remember(build_instance(row.value))

    def add(self, place: str, row: InstanceRow) -> ForeignRow:
        """Append a row unless the same task is there.

        Raises:
            InputError: another task has its name.
            Transient: the disk is full or not writable.
        """
        key = _make_key(row)
        if key in self._tasks:
            same = self._tasks[key]
            return ForeignRow(place=place, name=same, new=False, duplicate_of=None if same == row.instance_id else same)
        if row.instance_id in self._names:
            raise InputError(f"another task is named {row.instance_id[:200]!r}")
        try:
            with self.path.open("a", encoding="ascii") as file:
                file.write(json.dumps(row.model_dump()) + "\n")
        except OSError as error:
            raise make_write_error(f"cannot write {self.path}", error, advice="free some space") from error
        self._remember(row)
        return ForeignRow(place=place, name=row.instance_id, new=True)

    def _remember(self, row: InstanceRow) -> None:
        self._names[row.instance_id] = _make_key(row)
        self._tasks.setdefault(_make_key(row), row.instance_id)


def _make_key(row: InstanceRow) -> _TaskKey:
    patches = f"{row.patch.strip()}\0{row.test_patch.strip()}".encode(errors="surrogateescape")
    # GitHub ignores the case of repositories' names.
    return row.repo.lower(), row.base_commit, hashlib.sha256(patches).hexdigest()


@contextmanager
def _open_imports(path: Path) -> Iterator[_ImportFile]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_suffix(".lock").open("w")
    except OSError as error:
        raise make_write_error(f"cannot write {path.parent}", error, advice="free some space") from error
    with lock:
        # Tried without waiting first, so that a command that has to wait shows why.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("waiting for another import into %s", escape_line(str(path)))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield _ImportFile(path)


def _remove_half_line(path: Path) -> None:
    """Remove the end of a file whose writer was killed within a line."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end and (file.seek(end - 1), file.read(1))[1] != b"\n":
            end -= 1
        if end < size:
            file.truncate(end)


def resolve_base_commit(row: InstanceRow, clones: PublishedClones) -> InstanceRow:
    """Return a row whose base commit is a whole id; a commit that is abbreviated, or a parent (`COMMIT^`), is resolved.

    Raises:
        InputError: there is no clone with that commit, or the base commit is not such an expression.
        Transient: cloning failed.
    """
    if _WHOLE_COMMIT.fullmatch(row.base_commit):
        return row
    if not _COMMIT_EXPRESSION.fullmatch(row.base_commit):
        raise InputError(f"base_commit {row.base_commit[:100]!r} is not a commit")
    history = clones.open(row.repo)
    if not history.has_commit(row.base_commit):
        raise InputError(f"base_commit {row.base_commit} is not in {history.path}", advice="fetch it there")
    commit = history.resolve(row.base_commit)
    return row.model_copy(update={"base_commit": commit})


def make_bug_commit(row: InstanceRow, clones: PublishedClones, services: Services) -> InstanceRow:
    """Return a row whose base commit has the bug and lacks the tests that detect it; the commit is kept in the store.

    Args:
        row: `base_commit` without the bug, `patch` injects it, and the FAIL_TO_PASS tests are in the tree.
        clones: clones of the repositories.
        services: services that keep the commit.

    Raises:
        InputError: there is no clone with that commit, or the patch does not apply.
        Transient: cloning failed.
    """
    history = clones.open(row.repo)
    original, bug = history.resolve(row.base_commit), row.patch.encode(errors="surrogateescape")
    files = {test.partition("::")[0] for test in row.FAIL_TO_PASS}
    with ScratchIndex(history, original) as index:
        index.apply(bug)
        buggy = index.write_tree()
        removed = "".join(f"0 {'0' * len(original)}\t{path}\0" for path in sorted(files))
        index.run_git("update-index", "-z", "--index-info", data=removed.encode(errors="surrogateescape"))
        start = index.write_tree()

        def diff(commit: str, other: str) -> bytes:
            return index.run_git("diff-tree", "-r", "-p", *DIFF_OPTIONS, commit, other)

        gold, tests, removal = diff(buggy, f"{original}^{{tree}}"), diff(start, buggy), diff(buggy, start)
    with open_patched_commit(history, original, bug, removal) as (overlay, commit):
        services.clones.trees.keep(row.repo, commit, overlay)
    patches = {"patch": gold, "test_patch": tests}
    texts = {name: patch.decode(errors="surrogateescape") for name, patch in patches.items()}
    return row.model_copy(update={**texts, "base_commit": commit})
