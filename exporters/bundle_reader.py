"""Reader of bundles: records, tasks, artifacts and base trees from a bundle's own files.

A bundle may come from anyone. Everything is checked against its hash, sizes are bounded before anything is read, and no
name or path of a bundle decides where something is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backends.base_trees import open_pack
from backends.clones import CloneStore
from backends.git import GitError, list_patch_paths
from core.errors import InputError
from exporters import manifest, task_files
from exporters.bundle_records import RECORDS_FILE, TREE_FOLDER, TREES_FILE, list_artifacts, make_artifact_path
from exporters.item import make_folder_name
from exporters.tree import TREE_ARCHIVE, read_tree
from taskdb.artifacts import Artifacts
from taskdb.queries.lineages import LINEAGE_RECORDS
from taskdb.records import Candidate, Certificate, PullRequest, Record, Task
from taskdb.schema import schema_0006

MAX_LINE_BYTES = 256 << 20
"""Size of a record in a bundle."""
MAX_ARTIFACT_BYTES = 1 << 30
"""Size of an artifact in a bundle."""
_IMAGE = re.compile(r"[a-z0-9][a-z0-9./:_@-]{0,254}")
_REFERENCE = re.compile(r"[a-z0-9][a-z0-9./:_-]{0,254}@sha256:[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, kw_only=True)
class BundledTask:
    """A task of a bundle.

    `artifacts`: its patches and its script; `tree_archive`: archive of its base tree, None where the bundle holds the
    tree as git objects; `registry_image`: reference of its image in a registry, `HOST/PREFIX/env@sha256:...`, or None;
    `image_digest`: digest of the certified image.
    """

    task: Task
    registry_image: str | None
    artifacts: tuple[bytes, ...]
    tree_archive: Path | None
    image_digest: str

    def read_files(self) -> Iterator[tuple[str, bytes]] | None:
        """Yield (path, content) of the regular files of the base tree; None where it is not in an archive."""
        return read_tree(self.tree_archive) if self.tree_archive else None


def has_records(folder: Path) -> bool:
    """Return whether a bundle holds the records of its tasks; those of earlier versions don't."""
    return (folder / RECORDS_FILE).is_file()


def require_bundle(folder: Path) -> dict[str, Any]:
    """Return the manifest of a bundle.

    Raises:
        InputError: there is no bundle, or its manifest is malformed.
    """
    content = manifest.read_manifest(folder)
    if content is None:
        raise InputError(f"{folder} holds no {manifest.MANIFEST_NAME} of mergemill")
    return content


def read_records(folder: Path, *, need_parents: bool = True) -> Iterator[Record]:
    """Yield the records of a bundle, parents first, each with the id that its content gives.

    Args:
        folder: folder of the bundle.
        need_parents: whether every record's parents must be there; a bundle that is only graded has tasks alone.

    Raises:
        InputError: a line is not a record, has another id, is there twice, or names a parent that is not before it.
    """
    with (folder / RECORDS_FILE).open("rb") as file:
        # A bundle may come from anyone, so the length of a line is limited before it is in memory.
        lines = iter(partial(file.readline, MAX_LINE_BYTES), b"")
        yield from parse_records(lines, str(folder / RECORDS_FILE), need_parents=need_parents)


def parse_records(lines: Iterable[bytes], place: str, *, need_parents: bool = True) -> Iterator[Record]:
    """Yield the records of lines as `RecordWriter` writes them.

    Args:
        lines: lines of records.
        place: name of their file, for messages.
        need_parents: whether the parent of each record must be before it.

    Raises:
        InputError: as of `read_records`.
    """
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        try:
            record = _parse_record(line)
            if need_parents:
                _check_parents(record, seen)
            _check_words(record, seen)
        except (ValueError, RecursionError, InputError) as error:
            # JSON that is nested too deeply raises RecursionError.
            problem = str(error) if isinstance(error, InputError) else "it is not a record"
            raise InputError(f"{place}:{number}: {problem}") from error
        seen.add(record.id)
        yield record


def _parse_record(line: bytes) -> Record:
    if len(line) == MAX_LINE_BYTES:
        raise InputError(f"it has more than {MAX_LINE_BYTES} bytes")
    data = json.loads(line)
    if not isinstance(data, dict) or set(data) != {"id", "record", "body"} or data["record"] not in LINEAGE_RECORDS:
        raise InputError("it is not a record")
    try:
        record = LINEAGE_RECORDS[data["record"]].model_validate(data["body"])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise InputError(f"the {data['record']} is malformed: {where!r}: {first['msg'][:200].lower()}") from error
    # The id is a hash of the content: a changed record cannot keep the id of another.
    if record.id != data["id"]:
        raise InputError(f"the {data['record']} has another id than {str(data['id'])[:12]!r}")
    return record


def _check_parents(record: Record, seen: set[str]) -> None:
    """Raise InputError for a parent that is not among the ids of the records before it."""
    parents = [getattr(record, name) for name in ("parent", "candidate") if hasattr(record, name)]
    if missing := [parent for parent in parents if parent not in seen]:
        raise InputError(f"its parent {str(missing[0])[:12]!r} is not before it")


def _check_words(record: Record, seen: set[str]) -> None:
    """Raise InputError for an unusable id, name or commit; `seen`: ids of the records before it."""
    if record.id in seen:
        raise InputError(f"{record.id[:12]} is there twice")
    for name in ("name", "repo", "source", "language", "version", "license"):
        value = getattr(record, name, "")
        if isinstance(value, str) and (_CONTROL.search(value) or len(value) > 1000):
            raise InputError(f"{name} has control characters or is too long")
    # The task that it names need not be in the bundle, so nothing else checks the name.
    for name in ("exploits_of", "gold_of") if isinstance(record, Certificate) else ():
        reference = getattr(record, name)
        if reference and (_CONTROL.search(reference.name) or len(reference.name) > 1000):
            raise InputError(f"{name} has control characters or is too long")
    if isinstance(record, PullRequest | Candidate | Task) and not _COMMIT.fullmatch(record.base_commit):
        raise InputError("base_commit is not the id of a commit")
    if isinstance(record, Task) and not all(map(_COMMIT.fullmatch, record.list_tree_commits())):
        raise InputError("the tree of a review is not the id of a commit")
    if isinstance(record, Task) and record.image and not _IMAGE.fullmatch(record.image):
        raise InputError("image is not the name of an image")


def check_content(folder: Path) -> list[str]:
    """Return the problems of the records of a bundle whose files match its manifest, a line each."""
    try:
        tasks = {record.id: record for record in read_records(folder) if isinstance(record, Task)}
        trees = _read_tree_list(folder)
    except InputError as error:
        return [str(error)]
    problems = [f"{key[:12]} is in the records and not in the manifest" for key in tasks.keys() - _list_ids(folder)]
    problems += [f"{key[:12]} is in the manifest and not in the records" for key in _list_ids(folder) - tasks.keys()]
    for task in tasks.values():
        problems += _check_task(task, folder)
        kept = trees.get(task.repo.lower(), ())
        missing = [] if task.environment == "imported" else [c for c in task.list_tree_commits() if c not in kept]
        problems += [f"{task.name}: the base tree {commit[:12]} is not in the bundle" for commit in missing]
    return sorted(problems)


def _list_ids(folder: Path) -> set[str]:
    return {row["id"] for row in require_bundle(folder)["tasks"]}


def _check_task(task: Task, folder: Path) -> Iterator[str]:
    for digest in list_artifacts(task):
        path = folder / make_artifact_path(digest)
        if not path.is_file() or path.stat().st_size > MAX_ARTIFACT_BYTES or manifest.hash_file(path) != digest:
            yield f"{task.name}: the artifact {digest[:12]} is missing, changed or too large"
            return
    for name in ("gold_patch", "test_patch", "control_patch", "setup_patch"):
        if digest := getattr(task, name):
            try:
                paths = list_patch_paths((folder / make_artifact_path(digest)).read_bytes())
            except GitError:
                yield f"{task.name}: {name} is not a patch"
                continue
            yield from (
                f"{task.name}: {name} changes {path[:200]!r}, which is not a file of the tree"
                for path in paths
                if {"", ".", "..", ".git"} & set(path.lower().split("/"))
            )


def _read_tree_list(folder: Path) -> dict[str, list[str]]:
    """Return repository -> commits whose trees a bundle holds.

    Raises:
        InputError: the list is malformed.
    """
    return {row["repo"]: row["commits"] for _, row in _iterate_packs(folder)}


def _iterate_packs(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    try:
        listed = json.loads((folder / TREES_FILE).read_bytes())
        rows = [(folder / TREE_FOLDER / name, row) for name, row in listed.items() if re.fullmatch(r"\d+\.pack", name)]
        sound = all(
            isinstance(row["repo"], str) and all(_COMMIT.fullmatch(commit) for commit in row["commits"])
            for _, row in rows
        )
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{folder / TREES_FILE} cannot be read") from error
    if not sound or len(rows) < len(listed) or not all(path.is_file() for path, _ in rows):
        raise InputError(f"{folder / TREES_FILE} is malformed")
    yield from rows


def unpack_content(folder: Path, artifacts: Artifacts, clones: CloneStore) -> None:
    """Put the artifacts and base trees of a checked bundle into a store; no tree is, unless all are sound.

    Raises:
        InputError: a base tree is damaged.
        Transient: the disk is full or not writable.
    """
    with ExitStack() as stack:
        # All packs are checked before the first tree is kept, so that a damaged bundle leaves nothing behind.
        packs = [(stack.enter_context(open_pack(path, row["commits"])), row) for path, row in _iterate_packs(folder)]
        for repository, row in packs:
            for commit in row["commits"]:
                clones.trees.keep(row["repo"], commit, repository)
    for record in read_records(folder, need_parents=False):
        if isinstance(record, PullRequest | Candidate | Task):
            for digest in list_artifacts(record):
                path = folder / make_artifact_path(digest)
                if path.is_file() and path.stat().st_size <= MAX_ARTIFACT_BYTES:
                    artifacts.put(path.read_bytes())


def read_bundle(folder: Path) -> Iterator[BundledTask]:
    """Yield the tasks of a complete bundle (see `exporters.manifest.check_manifest`) in its order.

    Raises:
        InputError: there is no bundle, a task differs from the manifest, or any of its files is missing.
    """
    content = require_bundle(folder)
    if has_records(folder):
        rows = {row["id"]: row for row in content["tasks"]}
        records = read_records(folder, need_parents=False)
        digests = {record.parent: record.image_digest for record in records if isinstance(record, Certificate)}
        for record in read_records(folder, need_parents=False):
            if isinstance(record, Task) and record.id in rows:
                yield BundledTask(
                    task=record,
                    registry_image=_read_reference(rows[record.id]),
                    artifacts=(),
                    tree_archive=None,
                    image_digest=digests.get(record.id, record.image_digest),
                )
        return
    by_hash = {digest: folder / path for path, digest in content["files"].items()}
    for row in content["tasks"]:
        yield _read_task(folder, row, content["files"], by_hash)


def _read_reference(row: Mapping[str, Any]) -> str | None:
    """Return the reference of a task's image in a registry, if the manifest has a reference."""
    reference = row.get("registry")
    return reference if isinstance(reference, str) and _REFERENCE.fullmatch(reference) else None


def _read_task(
    folder: Path, row: Mapping[str, Any], files: Mapping[str, str], by_hash: Mapping[str, Path]
) -> BundledTask:
    name = row.get("name")
    wrong = partial(_make_error, folder, name)
    below = make_folder_name(str(name))
    placed = {Path(path).name: folder / path for path in files if path.startswith(f"{below}/")}
    if task_files.RECORD_FILE not in placed or TREE_ARCHIVE not in placed:
        missing_name = task_files.RECORD_FILE if task_files.RECORD_FILE not in placed else TREE_ARCHIVE
        raise wrong(f"has no {missing_name}", advice="export it again, with this version of mergemill")
    try:
        key, task = _parse_task(json.loads(placed[task_files.RECORD_FILE].read_bytes()))
    except (ValueError, ValidationError, RecursionError) as error:
        raise wrong("has a record that cannot be read") from error
    if key != row.get("id"):
        raise wrong("is not the task whose id the manifest has")
    references = [task.gold_patch, task.test_patch, task.eval_script, task.blind_controls]
    hashes = [digest for digest in references if digest]
    if missing := [digest for digest in hashes if digest not in by_hash]:
        raise wrong(f"lacks the file {missing[0][:16]}...")
    return BundledTask(
        task=task,
        artifacts=tuple(by_hash[digest].read_bytes() for digest in hashes),
        tree_archive=placed[TREE_ARCHIVE],
        registry_image=_read_reference(row),
        image_digest=task.image_digest,
    )


def _parse_task(body: dict[str, Any]) -> tuple[str, Task]:
    """Return the id under which a bundle lists a task, and the task; bundles of schema 0006 have other names.

    Raises:
        ValueError, ValidationError: the JSON is not that of a task.
    """
    if schema_0006.is_task(body):
        key, body = schema_0006.upgrade_task(body)
        return key, Task.model_validate(body)
    task = Task.model_validate(body)
    return task.id, task


def _make_error(folder: Path, name: object, what: str, *, advice: str = "") -> InputError:
    return InputError(f"{name} in {folder} {what}", advice=advice)
