"""A database whose `tasks` is a plain table: rows with any values, without the records behind them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Column, MetaData, String, Table, create_engine, insert, select

from taskdb.queries.task_filters import TASK_COLUMNS, TASKS, TaskFilters
from taskdb.schema.task_columns import VALUE_TYPES, Range
from taskdb.store import Store

_METADATA = MetaData()
TASK_TABLE = Table("tasks", _METADATA, *(Column(name, TASKS.c[name].type) for name in TASK_COLUMNS))
TAG_TABLE = Table("tags", _METADATA, Column("candidate", String), Column("change_kind", String))


def make_row(number: int, **changes: Any) -> dict[str, Any]:
    """Return a row of `tasks`; its numbers follow from `number`."""
    name = f"ada__greet-{number}"
    row = {
        "id": f"{number:064x}",
        "name": f"{name}.bugfix",
        "kind": "bugfix",
        "repo": "Ada/Greet",
        "language": "python",
        "language_version": "3.11",
        "license": "MIT",
        "source": "git:greet",
        "status": "certified",
        "base_commit": "b" * 40,
        "n_fail_to_pass": number % 5 + 1,
        "n_pass_to_pass": number * 3,
        "created_at": f"20{20 + number % 4}-{number % 12 + 1:02d}-{number % 28 + 1:02d}T12:00:00+00:00",
        "published": None,
        "environment": "verified",
        "image": f"mergemill/{name}:1",
        "image_digest": "sha256:0",
        "change_name": name,
        "change_kind": "bugfix",
        "candidate": f"c{number}",
        "verification": f"v{number}",
        "certificate": f"k{number}",
        "strength": number % 11 / 10 if number % 7 else None,
        "untested_hunks": "a.py:3" if number % 7 and number % 2 else None,
        "control_bound": 0.25 if number % 7 else None,
        "worst_block_bound": 0.5 if number % 7 else None,
        "flaky_bound": 0.5 / (number % 9 + 1),
        "underspecified": number % 10 / 10,
        "unfair_tests": number % 8 / 8,
        "set_aside": None if number % 6 else "url-only",
        "test_seconds": number * 0.5,
        "statement_tokens": number * 7,
        "changed_files": number % 4 + 1,
        "changed_lines": number * 2,
        "family": name,
        "split": "train" if number % 10 else "test",
        "difficulty": "{}",
        "audited": (None, "clean", "findings")[number % 3],
        "added_at": "2026-01-01T00:00:00+00:00",
        "tests": "human",
    }
    further = {name: make_value(name, number) for name in TASK_COLUMNS if name not in row}
    return row | further | changes


def make_value(name: str, number: int) -> str | float:
    """Return a value of a column for which `make_row` has none of its own."""
    kind = VALUE_TYPES[name]
    return f"{name}-{number % 3}" if kind is str else kind(number * 3)


def find_middle(rows: Iterable[Mapping[str, Any]], name: str) -> Range:
    """Return a range of a column's values that selects about half of the rows."""
    values = sorted(row[name] for row in rows if row[name] is not None)
    return Range(values[len(values) // 4], values[len(values) * 3 // 4])


def make_varied_rows(count: int) -> list[dict[str, Any]]:
    """Return rows of several repositories, languages, kinds and licences."""
    rows = []
    for number in range(1, count + 1):
        rate = {"n": 10, "c": number % 11}
        changes: dict[str, Any] = {
            "repo": ("Ada/Greet", "grace/cobol", "linus/git", "Guido/snake")[number % 4],
            "language": ("python", "go", "rust")[number % 3],
            "license": ("MIT", "Apache-2.0", "BSD-3-Clause")[number % 3],
            "status": ("certified", "derived", "rejected", "certified")[number % 4],
            "family": f"change-{number // 3}",
            "tests": "human" if number % 13 else "model-written",
            "difficulty": json.dumps({"acme/Big/react": rate, "tiny/react": {"n": 0, "c": 0}} if number % 2 else {}),
        }
        if number % 5 == 0:
            changes |= {"kind": "simulated", "environment": "simulated", "name": f"ada__greet-{number}.simulated"}
        rows.append(make_row(number, **changes))
    return rows


def is_listed(row: Mapping[str, Any]) -> bool:
    """Return whether empty filters select a row."""
    return bool(row["environment"] != "simulated" and row["tests"] == "human")


def make_listing(url: str, rows: Iterable[Mapping[str, Any]], tags: Mapping[str, str] | None = None) -> Store:
    """Return an open database of rows; `tags`: candidate -> a further kind of its change."""
    store = Store(url, create_engine(url), lambda: "")
    _METADATA.create_all(store.engine)
    listed = list(rows)
    kinds = [{"candidate": row["candidate"], "change_kind": row["change_kind"]} for row in listed]
    kinds += [{"candidate": candidate, "change_kind": kind} for candidate, kind in (tags or {}).items()]
    with store.engine.begin() as connection:
        connection.execute(insert(TASK_TABLE), listed)
        connection.execute(insert(TAG_TABLE), kinds)
    return store


def select_numbers(store: Store, filters: TaskFilters) -> list[int]:
    """Return the numbers of the rows that filters select."""
    with store.engine.connect() as connection:
        query = filters.apply(select(TASKS.c.id).order_by(TASKS.c.id))
        return [int(key, 16) for key in connection.execute(query).scalars()]
