"""Tasks of a bundle's folder: of its manifest, which is the same in all formats, or of parquet files without one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mergemill_client.columns import TASK_COLUMNS
from mergemill_client.errors import ClientError
from mergemill_client.sql import BUNDLE
from mergemill_client.sqlite import SqliteSource

MANIFEST_NAME = "manifest.json"
MANIFEST_KIND = "mergemill-bundle"
_DEFAULTS = {"tests": "human"}
"""Values of columns that earlier versions did not write."""
_SQL_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL"}


def open_bundle(folder: Path) -> SqliteSource:
    """Return the tasks of a bundle, or of all bundles in a folder of splits, as a database in memory.

    Raises:
        ClientError: the folder holds neither a manifest of mergemill nor parquet files with tasks.
    """
    manifests = [
        path for path in (folder / MANIFEST_NAME, *sorted(folder.glob(f"*/{MANIFEST_NAME}"))) if path.is_file()
    ]
    rows = [row for path in manifests[:1] if path.parent == folder for row in _read_manifest(path)]
    if not rows:
        rows = [row for path in manifests for row in _read_manifest(path)]
    if not manifests:
        rows = list(_read_parquet(folder))
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    columns = ", ".join(f"{name} {_SQL_TYPES[kind]}" for name, kind in TASK_COLUMNS.items())
    connection.execute(f"CREATE TABLE tasks ({columns})")
    marks = ", ".join("?" * len(TASK_COLUMNS))
    connection.executemany(
        f"INSERT INTO tasks VALUES ({marks})",  # noqa: S608 - placeholders alone
        [[_make_plain(row.get(name, _DEFAULTS.get(name))) for name in TASK_COLUMNS] for row in rows],
    )
    connection.commit()
    return SqliteSource(connection, BUNDLE)


def _read_manifest(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ClientError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != MANIFEST_KIND:
        raise ClientError(f"{path} is not mergemill's")
    for task in data.get("tasks", ()):
        if not task.get("row"):
            raise ClientError(f"{path} has no rows of tasks: an earlier mergemill wrote it; export it again")
        yield {**task, **task["row"]}


def _read_parquet(folder: Path) -> Iterator[Mapping[str, Any]]:
    files = sorted(folder.rglob("*.parquet"))
    if not files:
        raise ClientError(f"{folder} is no bundle: it has neither {MANIFEST_NAME} nor parquet files")
    try:
        from pyarrow import parquet  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ClientError("pyarrow is not installed: pip install 'mergemill-client[arrow]'") from error
    for path in files:
        names = set(parquet.read_schema(path).names)
        name = "name" if "name" in names else "instance_id"
        if name not in names:
            raise ClientError(f"{path} has no column name or instance_id")
        wanted = sorted((names & set(TASK_COLUMNS)) | {name})
        for row in parquet.read_table(path, columns=wanted).to_pylist():
            yield {"id": row[name], "environment": "verified", **row, "name": row[name]}


def _make_plain(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else value
