"""Columns of the maintained listings, apart from the classes of tables: a command that only reads need not make those.

Making the classes takes longer than everything else in the start of such a command.
"""

from __future__ import annotations

from typing import Any, get_type_hints

from sqlalchemy import Float, Integer, String, TableClause, column, table
from sqlalchemy.types import TypeEngine

from taskdb.schema.task_columns import TaskColumns, get_value_type


class ChangeColumns:
    """Columns of the view `changes`, in order."""

    source: str
    name: str
    repo: str
    number: int | None
    shape: str
    title: str
    author: str
    merged_at: str
    status: str
    rejected_by: str | None
    reason: str | None
    detail: str | None
    language: str | None
    license: str | None
    change_kind: str | None
    size: str | None
    pull_request: str
    candidate: str | None
    environment: str | None
    verification: str | None
    verdict: str | None
    task: str | None
    certificate: str | None
    rejection: str | None
    tags: str | None


class DerivationColumns:
    """Columns of the view `derivations`, in order."""

    source: str
    name: str
    repo: str
    merged_at: str
    change_kind: str | None
    candidate: str
    verification: str | None
    kind: str
    status: str
    rejected_by: str | None
    reason: str | None
    detail: str | None
    task: str | None
    task_name: str | None
    certificate: str | None
    rejection: str | None


CHANGE_COLUMNS = tuple(ChangeColumns.__annotations__)
DERIVATION_COLUMNS = tuple(DerivationColumns.__annotations__)
TASK_COLUMNS = tuple(TaskColumns.__annotations__)
COLUMN_TYPES: dict[type, TypeEngine[Any]] = {int: Integer(), float: Float(), str: String()}
"""Type of a value -> type of its column."""


def build_clause(name: str, columns: type, **hidden: type) -> TableClause:
    """Return a listing or its view for queries that read it; `hidden`: name and type of columns that no view shows."""
    types = {**hidden, **get_type_hints(columns)}
    return table(name, *(column(key, COLUMN_TYPES[get_value_type(kind)]) for key, kind in types.items()))


CHANGE_LISTING = build_clause("change_listing", ChangeColumns, change=int, set_aside=str, test_lines=int, state=int)
DERIVATION_LISTING = build_clause("derivation_listing", DerivationColumns, change=int)
TASK_LISTING = build_clause("task_listing", TaskColumns, task=int, change=int)
