"""Records, artifacts and base trees in a bundle, of any format, from which its tasks can be read back.

::

    .mergemill/records.jsonl      the records of every task, parents first: {"id", "record", "body"} a line
    .mergemill/artifacts/AB/CD..  patches, scripts and oracles that the records name, by sha256
    .mergemill/trees/N.pack       base commits of a repository, without history; trees.json lists them

The folder is hidden, so that tools that look at every folder or data file of a bundle do not find it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from exporters.bundle_writer import BundleWriter, write_file
from taskdb.records import Candidate, PullRequest, Record, Task

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

RECORD_FOLDER = ".mergemill"
RECORDS_FILE = f"{RECORD_FOLDER}/records.jsonl"
ARTIFACT_FOLDER = f"{RECORD_FOLDER}/artifacts"
TREE_FOLDER = f"{RECORD_FOLDER}/trees"
TREES_FILE = f"{RECORD_FOLDER}/trees.json"

LoadLineage = Callable[[Task], Sequence[Record]]
"""Function that returns the records that a task descends from, parents first."""

_HASH = re.compile(r"[0-9a-f]{64}")


class RecordWriter:
    """Writer of the folder RECORD_FOLDER, beside the writer of a format, which takes its items from `record`.

    The data that it keeps in memory is 16 bytes for each record of a change, and the commits.
    """

    def __init__(self, folder: Path, load_lineage: LoadLineage, services: Services, file: IO[str]) -> None:
        self._folder = folder
        self._load_lineage = load_lineage
        self._services = services
        self._file = file
        self._written: set[bytes] = set()
        self._commits: dict[str, set[str]] = {}

    def record(self, items: Iterable[ExportItem]) -> Iterator[ExportItem]:
        """Yield the items; the records and artifacts of each are written before it is yielded.

        Raises:
            InputError: the base tree of a task is neither kept nor in a clone, or an artifact is missing.
        """
        for item in items:
            task = item.task
            for record in self._load_lineage(task):
                key = bytes.fromhex(record.id)[:16]
                if key not in self._written:  # siblings share their change
                    self._written.add(key)
                    self._write(record)
            self._write(task)
            if item.certificate:
                self._write(item.certificate)
            # A task as it was published may have no clone that has its tree.
            if task.environment != "imported":
                self._keep_trees(task)
            yield item

    def _keep_trees(self, task: Task) -> None:
        commits = self._commits.setdefault(task.repo.lower(), set())
        for commit in task.list_tree_commits():
            if commit not in commits:
                self._services.clones.keep_tree(task.source, task.repo, commit)
                commits.add(commit)

    def finish(self) -> None:
        """Write the base trees."""
        listed = {}
        (self._folder / TREE_FOLDER).mkdir()
        for number, (repo, wanted) in enumerate(sorted(self._commits.items())):
            path = self._folder / TREE_FOLDER / f"{number}.pack"
            self._services.clones.trees.write_pack(repo, sorted(wanted), path)
            path.chmod(0o644)
            listed[path.name] = {"repo": repo, "commits": sorted(wanted)}
        write_file(self._folder / TREES_FILE, json.dumps(listed, indent=1, sort_keys=True) + "\n")

    def _write(self, record: Record) -> None:
        self._file.write(json.dumps(describe_record(record), sort_keys=True) + "\n")
        if isinstance(record, PullRequest | Candidate | Task):
            for digest in list_artifacts(record):
                path = self._folder / make_artifact_path(digest)
                if not path.exists():
                    write_file(path, self._services.artifacts.get(digest))


def describe_record(record: Record) -> dict[str, Any]:
    """Return a record as JSON data, from which `exporters.bundle_reader.parse_records` reads it."""
    return {"id": record.id, "record": type(record).__name__, "body": record.model_dump(mode="json")}


def add_records(writer: BundleWriter, load_lineage: LoadLineage) -> BundleWriter:
    """Return a writer that also writes the records, artifacts and base trees of the tasks."""

    def write(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
        with open_record_writer(folder, load_lineage, services) as records:
            writer(records.record(items), folder, services)

    return write


@contextmanager
def open_record_writer(folder: Path, load_lineage: LoadLineage, services: Services) -> Iterator[RecordWriter]:
    """Open a writer of the records of the bundle in `folder`; base trees are written at the end."""
    path = folder / RECORDS_FILE
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="ascii") as file:
        writer = RecordWriter(folder, load_lineage, services, file)
        yield writer
    path.chmod(0o644)
    writer.finish()


def make_artifact_path(digest: str) -> str:
    """Return the path of an artifact in a bundle."""
    return f"{ARTIFACT_FOLDER}/{digest[:2]}/{digest[2:]}"


ARTIFACT_FIELDS = (
    "patch",
    "gold_patch",
    "test_patch",
    "control_patch",
    "blind_controls",
    "setup_patch",
    "eval_script",
    "discussion",
)
"""Fields of records that hold the hash of an artifact."""


def list_artifacts(record: PullRequest | Candidate | Task) -> list[str]:
    """Return the artifacts that a record names: patches, discussion, script, and the files of an oracle."""
    hashes = [value for name in ARTIFACT_FIELDS if isinstance(value := getattr(record, name, None), str)]
    if isinstance(record, Task) and record.oracle is not None:
        # The commit of a review's tree is not an artifact, but may look like one.
        hashes += _find_hashes(record.oracle.model_dump(mode="json", exclude={"tree"}))
    return sorted(set(hashes))


def _find_hashes(value: Any) -> Iterator[str]:
    """Yield the texts of an oracle that are hashes: an oracle names nothing by hash but artifacts."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _find_hashes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _find_hashes(inner)
    elif isinstance(value, str) and _HASH.fullmatch(value):
        yield value
