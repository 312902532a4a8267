"""Check of the files that the consumers of a bundle read: rows of JSON and Parquet, task.toml."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from core.toml import as_table, parse_toml
from exporters.bundle_records import RECORD_FOLDER
from exporters.harbor_dataset import ORGANIZATION, compute_digest
from exporters.item import make_folder_name

MAX_ROW_BYTES = 1 << 30
"""Size of a row that is read."""
_SWEBENCH_TEXTS = ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement")
_SWEBENCH_LISTS = ("FAIL_TO_PASS", "PASS_TO_PASS")


def check_rows(folder: Path, content: Mapping[str, Any]) -> list[str]:
    """Return the problems of the rows of a bundle whose files match its manifest, a line each."""
    problems: list[str] = []
    for path in sorted(content["files"]):
        parts = PurePosixPath(path)
        check = _CHECKS.get(parts.name) or _CHECKS.get(parts.suffix)
        if check and parts.parts[0] != RECORD_FOLDER:
            problems += [f"{path}: {problem}" for problem in check(folder / path)]
    check_whole = _WHOLE_CHECKS.get(str(content.get("format")))
    return [*problems, *check_whole(folder, content)] if check_whole else problems


def _read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number, row) of a file of JSON lines; a row that is not JSON is None."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_ROW_BYTES):
            number += 1
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, None


def _check_json_lines(path: Path) -> Iterator[str]:
    for number, row in _read_rows(path):
        if not isinstance(row, dict):
            yield f"row {number} is not a JSON object"


def _check_parquet(path: Path) -> Iterator[str]:
    import pyarrow as pa  # noqa: PLC0415 - few bundles have such files
    from pyarrow import parquet  # noqa: PLC0415 - as above

    try:
        parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        yield f"it is no Parquet file: {str(error)[:200]!r}"


def _check_task_toml(path: Path) -> Iterator[str]:
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        yield f"it is not TOML: {str(error)[:200]!r}"
        return
    if missing := [key for key in ("schema_version", "task", "environment", "verifier") if key not in data]:
        yield f"it has no {', '.join(missing)}"


def _check_swebench(folder: Path, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield problems of the fields that SWE-bench's harness reads."""
    if "tasks.jsonl" not in content["files"]:
        yield "tasks.jsonl: it is not in the manifest"
        return
    names = {make_folder_name(row["name"]) for row in content["tasks"]}
    seen: set[str] = set()
    for number, row in _read_rows(folder / "tasks.jsonl"):
        if not isinstance(row, dict):
            continue
        name = str(row.get("instance_id"))
        missing = [key for key in (*_SWEBENCH_TEXTS, *_SWEBENCH_LISTS) if not isinstance(row.get(key), str)]
        if missing:
            yield f"tasks.jsonl: row {number} has no text {missing[0]}"
        elif name in seen or name not in names:
            yield f"tasks.jsonl: row {number} is of no task of the manifest, or of one that has a row: {name[:200]!r}"
        elif not all(_is_list_of_texts(row[key]) for key in _SWEBENCH_LISTS):
            yield f"tasks.jsonl: row {number} has a list of tests that is no JSON list of texts"
        seen.add(name)


def _check_harbor(folder: Path, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield where the files from which Harbor learns of the tasks differ from the tasks of the manifest."""
    folders = [make_folder_name(row["name"]) for row in content["tasks"]]
    hashes = dict[str, list[tuple[str, str]]]()
    for path, digest in sorted(content["files"].items()):
        name, _, rest = path.partition("/")
        hashes.setdefault(name, []).append((rest, digest))
    digests = {f"{ORGANIZATION}/{name}": f"sha256:{compute_digest(hashes.get(name, ()))}" for name in folders}
    yield from _compare(folder / "dataset.toml", "digest", digests, _read_dataset)
    paths = {f"{ORGANIZATION}/{name}": name for name in folders}
    yield from _compare(folder / "registry.json", "path", paths, _read_registry)


def _compare(path: Path, key: str, expected: Mapping[str, str], read: Callable[[Path], Iterator[Any]]) -> Iterator[str]:
    """Yield where the tables of tasks in a file (`name` and `key`) differ from name -> value."""
    file = path.name
    try:
        tables = [as_table(table) for table in read(path)]
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        yield f"{file}: it cannot be read: {str(error)[:200]!r}"
        return
    seen = set[str]()
    for table in tables:
        name, value = str(table.get("name")), str(table.get(key))
        if name in seen or name not in expected:
            yield f"{file}: {name[:200]!r} is no task of the manifest, or is named twice"
        elif value != expected[name]:
            yield f"{file}: the {key} of {name} is {value[:200]!r}, not {expected[name]!r}"
        seen.add(name)
    yield from (f"{file}: {name} is missing" for name in expected if name not in seen)


def _read_dataset(path: Path) -> Iterator[Any]:
    """Yield the tasks of dataset.toml.

    Each is a document of its own: those of a million are too large for a single document.
    """
    for part in path.read_text(encoding="utf-8").split(_TASK_HEAD)[1:]:
        yield parse_toml(part)


_TASK_HEAD = "\n[[tasks]]\n"


def _read_registry(path: Path) -> Iterator[Any]:
    [dataset] = json.loads(path.read_bytes())
    yield from dataset["tasks"]


def _is_list_of_texts(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_CHECKS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    ".jsonl": _check_json_lines,
    ".parquet": _check_parquet,
    "task.toml": _check_task_toml,
}
"""Suffix or name of a file -> its check."""
_WHOLE_CHECKS: Mapping[str, Callable[[Path, Mapping[str, Any]], Iterator[str]]] = {
    "swebench": _check_swebench,
    "harbor": _check_harbor,
}
"""Format -> check of its files against each other another."""
