"""What benchmarks hold, read from files, so that no task made here is one of theirs (decontamination).

A list is a file of JSON lines, JSON, CSV or plain text; a folder stands for the lists in it, a name without a slash for
a list that comes with mergemill (`SHIPPED`). A row names a repository (`repo`, or `org` and `repo`), and of it one pull
request (`number`, or the end of an `instance_id`) or base commit; without either it means the whole repository. A row
may bring a patch and a statement, by which copies are found. Field names are those of SWE-bench and Multi-SWE-bench.
"""

from __future__ import annotations

import csv
import io
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from mergemill.config import Settings
from mergemill.errors import InputError
from miner.near import Sketch, sketch

SHIPPED = Path(__file__).parent / "data"
"""Names of repositories that well-known benchmarks are made of; nothing of the benchmarks themselves."""
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".txt")

_INSTANCE = re.compile(r"(?P<owner>[^/\s]+?)__(?P<name>[^/\s]+)-(?P<number>\d+)")
_PLAIN = re.compile(
    r"(?:https?://[^/\s]+/)?(?P<owner>[\w.-]+)/(?P<name>[\w.-]+?)(?:\.git)?(?:(?:#|/pull/|/issues/)(?P<number>\d+))?/?"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a list."""

    place: str
    """`FILE:LINE`, for people."""
    label: str
    """Its instance id, else repository and number."""
    repo: str
    """`owner/name` in lower case; empty when the row does not say."""
    number: int | None = None
    commit: str = ""
    sketch: Sketch | None = None

    def __str__(self) -> str:
        return f"{self.label} ({self.place})"


@dataclass
class Benchmarks:
    """All rows of all lists, ready to be asked."""

    repositories: dict[str, Entry] = field(default_factory=dict)
    numbers: dict[tuple[str, int], Entry] = field(default_factory=dict)
    commits: dict[tuple[str, str], Entry] = field(default_factory=dict)
    sketched: list[tuple[Entry, array[int], array[int]]] = field(default_factory=list)
    """Rows with patch or statement, and these as sorted numbers: a set takes ten times the memory."""
    keyed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, entry: Entry) -> None:
        """Take in a row; of two that mean the same the first counts."""
        if entry.number is not None:
            self.numbers.setdefault((entry.repo, entry.number), entry)
        elif entry.commit:
            self.commits.setdefault((entry.repo, entry.commit), entry)
        elif entry.repo and entry.sketch is None:
            self.repositories.setdefault(entry.repo, entry)
        if entry.sketch is not None:
            for key in entry.sketch.keys:
                self.keyed[key].append(len(self.sketched))
            bare = Entry(entry.place, entry.label, entry.repo, entry.number, entry.commit)
            made = entry.sketch
            self.sketched.append((bare, array("q", sorted(made.patch)), array("q", sorted(made.statement))))

    def naming(self, repo: str, number: int | None, base: str) -> Entry | None:
        """The row that names a pull request, its base commit or its whole repository."""
        repo = repo.lower()
        found = self.numbers.get((repo, number)) if number is not None else None
        return found or self.commits.get((repo, base)) or self.repositories.get(repo)

    def near(self, ours: Sketch, settings: Settings) -> tuple[Entry, str] | None:
        """The first row whose patch or statement is nearly ours, and in what."""
        for at in sorted({at for key in ours.keys for at in self.keyed.get(key, ())}):
            entry, patch, statement = self.sketched[at]
            if said := ours.likeness(Sketch(frozenset(patch), frozenset(statement)), settings):
                return entry, said
        return None


def benchmarks_of(settings: Settings) -> Benchmarks:
    """The lists that the settings name; read once.

    Raises:
        InputError: a list is not there, or a row of it cannot be read; names file and line.
    """
    files = [file for word in settings.benchmarks for file in _files(word)]
    return _read(tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files))


@lru_cache(maxsize=4)
def _read(files: tuple[tuple[str, int, int], ...]) -> Benchmarks:
    found = Benchmarks()
    for name, _, _ in files:
        for entry in rows(Path(name)):
            found.add(entry)
    return found


def _files(word: str) -> list[Path]:
    path = Path(word)
    if path.is_dir():
        if found := sorted(file for file in path.iterdir() if file.suffix in ENDINGS):
            return found
        raise InputError(f"no list of a benchmark lies in {path}", advice=f"they end in {', '.join(ENDINGS)}")
    if path.is_file():
        return [path]
    if (shipped := SHIPPED / f"{word}.csv").is_file() and "/" not in word:
        return [shipped]
    names = ", ".join(sorted(file.stem for file in SHIPPED.glob("*.csv")))
    raise InputError(f"there is no list of a benchmark {word}", advice=f"name a file or a folder, or one of {names}")


def rows(path: Path) -> Iterator[Entry]:
    """The rows of one list.

    Raises:
        InputError: it cannot be read; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the list {path}: {error}") from error
    for line, row in _parsed(path, text):
        place = f"{path.name}:{line}"
        entry = _plain(row, place) if isinstance(row, str) else _entry(row, place)
        if entry is None:
            raise InputError(f"{path}:{line}: neither a repository nor a pull request is named")
        yield entry


def _parsed(path: Path, text: str) -> Iterator[tuple[int, str | Mapping[str, Any]]]:
    """Line (or place in the list) and content of each row."""
    if path.suffix == ".csv":
        csv.field_size_limit(1 << 30)
        reader = csv.DictReader(io.StringIO(text))
        yield from ((reader.line_num, row) for row in reader)
        return
    lines: Iterable[tuple[int, Any]] = enumerate(text.split("\n"), 1)
    if path.suffix in (".jsonl", ".ndjson"):
        yield from ((n, _json(line, path, n)) for n, line in lines if line.strip())
    elif path.suffix == ".json":
        whole = json.loads(text) if text.strip()[:1] == "[" else None
        if not isinstance(whole, list):
            raise InputError(f"{path}: not a list of rows", advice="JSON lines are read from .jsonl")
        yield from ((n, row if isinstance(row, dict) else str(row)) for n, row in enumerate(whole, 1))
    else:
        yield from ((n, said) for n, line in lines if (said := line.partition(" #")[0].strip()) and said[0] != "#")


def _json(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"{path}:{number}: not a JSON object")
    return row


def _plain(text: str, place: str) -> Entry | None:
    """`owner/name`, `owner/name#12`, an address of either, or `owner__name-12`."""
    found = _INSTANCE.fullmatch(text) or _PLAIN.fullmatch(text)
    if not found:
        return None
    number = found["number"]
    return Entry(place, text, f"{found['owner']}/{found['name']}".lower(), int(number) if number else None)


def _entry(row: Mapping[str, Any], place: str) -> Entry | None:
    """A row with fields; None when it names nothing."""

    def said(*names: str) -> str:
        return next((str(row[name]) for name in names if row.get(name) not in (None, "")), "")

    instance = _INSTANCE.fullmatch(said("instance_id"))
    repo = f"{row['org']}/{said('repo')}" if row.get("org") else said("repo", "repo_name", "repository")
    repo = repo or (f"{instance['owner']}/{instance['name']}" if instance else "")
    number = said("number", "pull_number", "pr_number", "pull_request") or (instance["number"] if instance else "")
    base = row.get("base")
    commit = said("base_commit", "base_sha") or (str(base.get("sha", "")) if isinstance(base, dict) else "")
    issues = [issue for issue in row.get("resolved_issues") or () if isinstance(issue, dict)]
    statement = said("problem_statement") or "\n".join(f"{i.get('title')}\n{i.get('body')}" for i in issues)
    patch = said("patch", "fix_patch", "gold_patch")
    made = sketch(patch, said("test_patch"), statement) if patch or statement else None
    if not (repo or made):
        return None
    label = said("instance_id") or (f"{repo}#{number}" if number else repo) or place
    return Entry(place, label, repo.lower(), int(number) if number.isdigit() else None, commit, made)
