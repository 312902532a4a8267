"""Tasks of benchmarks, read from files, so that mergemill produces no copy of them (decontamination).

A list is a file of JSON lines, JSON, CSV or plain text; a folder contains lists; a name without a slash is a list that
is part of mergemill (`DATA_FOLDER`). A row names a repository (`repo`, or `org` and `repo`), and in it a pull request
(`number`, or the end of an `instance_id`) or base commit; without either it names the whole repository. A row may have
a patch and a statement, by which copies are found. Field names are those of SWE-bench and Multi-SWE-bench.

A frozen set of `mergemill bench` (its file, or the folder of `mergemill bench export`) is a list as it is: each of its
tasks names the change that it is made of.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import read_input
from core.settings.mining import MiningSettings
from miner.similarity import PatchSketch, build_sketch
from taskdb.records import Kind

DATA_FOLDER = Path(__file__).parent / "data"
"""Lists with the names of the repositories of well-known benchmarks; they contain no tasks."""
SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".txt")

SET_NAME = "set.json"
"""File of an exported set, which is all that a folder with it contains for a list."""
SCENARIO = "scenario"
"""Kind of the subjects of a set that come from no change."""

_CHANGE = re.compile(r"(?P<owner>[^/\s]+?)__(?P<name>[^/\s]+)-(?P<version>[^-/\s]+)")
"""Name of a change: of a pull request by its number, else by a commit or a release."""
_VERSION = re.compile(r"[0-9a-f]{7,40}|\d[\w.+!]*", re.ASCII)
_KINDS = re.compile(rf"(?:\.(?:{'|'.join(map(re.escape, Kind))})(?:-\d+)?)+\Z")
"""End of the name of a task, or of a variant of one: kinds, with numbers where a change gives several."""
_PLAIN_LINE = re.compile(
    r"(?:https?://[^/\s]+/)?(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?(?:(?:#|/pull/|/issues/)(?P<number>\d+))?/?"
)


@dataclass(frozen=True, slots=True)
class BenchmarkEntry:
    """Row of a list."""

    place: str
    """`FILE:LINE`, for messages."""
    label: str
    """Its instance id, else repository and number."""
    repo: str
    """`owner/name` in lower case; empty where the row names none."""
    number: int | None = None
    commit: str = ""
    sketch: PatchSketch | None = None
    change: str = ""
    """Name of the change, where the list is a frozen set."""

    def __str__(self) -> str:
        return f"{self.label} ({self.place})"


@dataclass
class BenchmarkIndex:
    """All rows of all lists, indexed by name and by similarity key."""

    repositories: dict[str, BenchmarkEntry] = field(default_factory=dict)
    numbers: dict[tuple[str, int], BenchmarkEntry] = field(default_factory=dict)
    commits: dict[tuple[str, str], BenchmarkEntry] = field(default_factory=dict)
    sketches: list[tuple[BenchmarkEntry, array[int], array[int]]] = field(default_factory=list)
    """Rows with patch or statement, and their sketches as sorted numbers: a set takes ten times the memory."""
    changes: dict[str, BenchmarkEntry] = field(default_factory=dict)
    """Changes of frozen sets by name."""
    by_key: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, entry: BenchmarkEntry) -> None:
        """Add a row; of two rows with the same name the first is kept."""
        if entry.change:
            self.changes.setdefault(entry.change, entry)
        if entry.number is not None:
            self.numbers.setdefault((entry.repo, entry.number), entry)
        elif entry.commit:
            self.commits.setdefault((entry.repo, entry.commit), entry)
        elif entry.repo and entry.sketch is None and not entry.change:
            self.repositories.setdefault(entry.repo, entry)
        if entry.sketch is not None:
            for key in entry.sketch.keys:
                self.by_key[key].append(len(self.sketches))
            bare = BenchmarkEntry(entry.place, entry.label, entry.repo, entry.number, entry.commit)
            made = entry.sketch
            self.sketches.append((bare, array("q", sorted(made.patch)), array("q", sorted(made.statement))))

    @property
    def repos(self) -> set[str]:
        """Repositories that a row names, whole or in part, in lower case."""
        partly = (*self.numbers, *self.commits)
        return {*self.repositories, *(repo for repo, _ in partly), *(entry.repo for entry in self.changes.values())}

    def find_by_name(self, repo: str, number: int | None, base: str, change: str = "") -> BenchmarkEntry | None:
        """Return the row that names a pull request or change, its base commit or its whole repository."""
        repo = repo.lower()
        entry = self.numbers.get((repo, number)) if number is not None else None
        return entry or self.changes.get(change) or self.commits.get((repo, base)) or self.repositories.get(repo)

    def find_near_duplicate(self, sketch: PatchSketch, mining: MiningSettings) -> tuple[BenchmarkEntry, str] | None:
        """Return the first row whose patch or statement is a near duplicate, and which of them it is."""
        for at in sorted({at for key in sketch.keys for at in self.by_key.get(key, ())}):
            entry, patch, statement = self.sketches[at]
            if similarity := sketch.describe_similarity(PatchSketch(frozenset(patch), frozenset(statement)), mining):
                return entry, similarity
        return None


def load_benchmarks(lists: Sequence[str]) -> BenchmarkIndex:
    """Load lists: files, folders, or names of built-in ones; cached.

    Raises:
        InputError: a list is missing or a row cannot be read; the message names file and line.
    """
    files = [file for word in lists for file in _list_files(word)]
    # Date and size are part of the cache's key, so that a list that was changed is read again.
    return _load_files(tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=4)
def _load_files(files: tuple[tuple[str, int, int], ...]) -> BenchmarkIndex:
    index = BenchmarkIndex()
    for name, _, _ in files:
        for entry in read_rows(Path(name)):
            index.add(entry)
    return index


def _list_files(word: str) -> list[Path]:
    path = Path(word)
    if path.is_dir():
        if (exported := path / SET_NAME).is_file():
            return [exported]
        if files := sorted(file for file in path.iterdir() if file.suffix in SUFFIXES):
            return files
        raise InputError(f"there is no benchmark list in {path}", advice=f"use {', '.join(SUFFIXES)}")
    if path.is_file():
        return [path]
    if (shipped := DATA_FOLDER / f"{word}.csv").is_file() and "/" not in word:
        return [shipped]
    names = ", ".join(sorted(file.stem for file in DATA_FOLDER.glob("*.csv")))
    raise InputError(f"there is no benchmark list {word}", advice=f"name a file or a folder, or one of {names}")


def read_rows(path: Path) -> Iterator[BenchmarkEntry]:
    """Yield the rows of a list.

    Raises:
        InputError: it cannot be read; the message names the line.
    """
    try:
        # Files from spreadsheets may begin with a byte order mark.
        text = read_input(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list {path}: {error}") from error
    if path.suffix == ".json" and text.strip()[:1] == "{":
        yield from _read_set(path, text)
        return
    for line, row in _parse_rows(path, text):
        place = f"{path.name}:{line}"
        entry = _parse_plain_line(row, place) if isinstance(row, str) else _build_entry(row, place)
        if entry is None:
            raise InputError(f"{path}:{line}: neither a repository nor a pull request is named")
        yield entry


def _read_set(path: Path, text: str) -> Iterator[BenchmarkEntry]:
    """Yield the tasks of a frozen set; its scenarios come from no change.

    Raises:
        InputError: it is no set.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    subjects = document.get("subjects")
    if "canary" not in document or not isinstance(subjects, list):
        raise InputError(f"{path}: not a list of rows, nor a set", advice="JSON lines are read from .jsonl")
    for number, subject in enumerate(subjects, 1):
        named = subject.get("name") if isinstance(subject, dict) else None
        if not isinstance(named, str) or not named:
            raise InputError(f"{path}:{number}: a subject has no name")
        if subject.get("kind") == SCENARIO:
            continue
        change = _KINDS.sub("", named)
        match = _CHANGE.fullmatch(change)
        repo, pull = (_read_repo(match), _read_number(match)) if match else ("", None)
        yield BenchmarkEntry(f"{path.name}:{number}", named, repo, pull, change=change)


@dataclass(frozen=True, kw_only=True)
class _Instance:
    """Change that an instance id names. `change` is its name, empty where a number names it."""

    repo: str
    number: int | None
    change: str


def _parse_instance(text: str) -> _Instance | None:
    """Parse `owner__name-12`, or the name of a task of ours, which is that of its change and its kind.

    A task has a version before its kind: `ada__greet-3.review-1` is of the third pull request, and `ada__code.review-1`
    the first one of a repository `code.review`.
    """
    change = _KINDS.sub("", text)
    match = _CHANGE.fullmatch(change)
    if change == text or match is None or not _VERSION.fullmatch(match["version"]):
        match, change = _CHANGE.fullmatch(text), ""
    if match is None or not (change or match["version"].isdecimal()):
        return None
    number = _read_number(match)
    return _Instance(repo=_read_repo(match), number=number, change="" if number is not None else change)


def _read_repo(match: re.Match[str]) -> str:
    return f"{match['owner']}/{match['name']}".lower()


def _read_number(match: re.Match[str]) -> int | None:
    return int(match["version"]) if match["version"].isdecimal() else None


def _parse_rows(path: Path, text: str) -> Iterator[tuple[int, str | Mapping[str, Any]]]:
    """Yield line (or position in the list) and content of each row."""
    if path.suffix == ".csv":
        # Patches and statements exceed the module's limit of 128 KiB.
        csv.field_size_limit(1 << 30)
        reader = csv.DictReader(io.StringIO(text))
        yield from ((reader.line_num, row) for row in reader)
        return
    lines: Iterable[tuple[int, Any]] = enumerate(text.split("\n"), 1)
    if path.suffix in (".jsonl", ".ndjson"):
        yield from ((n, _parse_json(line, path, n)) for n, line in lines if line.strip())
    elif path.suffix == ".json":
        whole = json.loads(text) if text.strip()[:1] == "[" else None
        if not isinstance(whole, list):
            raise InputError(f"{path}: not a list of rows", advice="JSON lines are read from .jsonl")
        yield from ((n, row if isinstance(row, dict) else str(row)) for n, row in enumerate(whole, 1))
    else:
        yield from ((n, text) for n, line in lines if (text := line.partition(" #")[0].strip()) and text[0] != "#")


def _parse_json(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"{path}:{number}: not a JSON object")
    return row


def _parse_plain_line(text: str, place: str) -> BenchmarkEntry | None:
    """Parse `owner/name`, `owner/name#12`, an address of either, or an instance id."""
    if instance := _parse_instance(text):
        return BenchmarkEntry(place, text, instance.repo, instance.number, change=instance.change)
    match = _PLAIN_LINE.fullmatch(text)
    if not match:
        return None
    number = match["number"]
    return BenchmarkEntry(place, text, f"{match['owner']}/{match['name']}".lower(), int(number) if number else None)


def _build_entry(row: Mapping[str, Any], place: str) -> BenchmarkEntry | None:
    """Build an entry from a row with fields; None when it names nothing."""

    def read_field(*names: str) -> str:
        return next((str(row[name]) for name in names if row.get(name) not in (None, "")), "")

    instance = _parse_instance(read_field("instance_id"))
    repo = f"{row['org']}/{read_field('repo')}" if row.get("org") else read_field("repo", "repo_name", "repository")
    repo = repo or (instance.repo if instance else "")
    number = read_field("number", "pull_number", "pr_number", "pull_request")
    number = number or (str(instance.number) if instance and instance.number is not None else "")
    base = row.get("base")
    commit = read_field("base_commit", "base_sha") or (str(base.get("sha", "")) if isinstance(base, dict) else "")
    issues = [issue for issue in row.get("resolved_issues") or () if isinstance(issue, dict)]
    statement = read_field("problem_statement") or "\n".join(f"{i.get('title')}\n{i.get('body')}" for i in issues)
    patch = read_field("patch", "fix_patch", "gold_patch")
    made = build_sketch(patch, read_field("test_patch"), statement) if patch or statement else None
    if not (repo or made):
        return None
    label = read_field("instance_id") or (f"{repo}#{number}" if number else repo) or place
    pull = int(number) if number.isdigit() else None
    change = instance.change if instance and pull is None else ""
    return BenchmarkEntry(place, label, repo.lower(), pull, commit, made, change)
