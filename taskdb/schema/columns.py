"""Columns of the maintained listings, apart from the classes of tables: a command that only reads need not make those.

Making the classes takes longer than everything else in the start of such a command.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Float, Integer, String, TableClause, column, table
from sqlalchemy.types import TypeEngine


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


class TaskColumns:
    """Columns of the view `tasks`, in order."""

    id: str
    name: str
    kind: str
    repo: str
    language: str
    language_version: str
    license: str
    source: str
    status: str
    base_commit: str
    n_fail_to_pass: int
    n_pass_to_pass: int
    created_at: str
    published: str | None
    environment: str
    image: str
    change_name: str
    change_kind: str | None
    candidate: str
    verification: str | None
    certificate: str | None
    strength: float | None
    untested_hunks: str | None
    control_bound: float | None
    flaky_bound: float | None
    underspecified: float | None
    unfair_tests: float | None
    set_aside: str | None
    test_seconds: float
    statement_tokens: int
    changed_files: int
    changed_lines: int
    family: str
    split: str
    difficulty: str
    audited: str | None
    image_digest: str
    added_at: str
    tests: str


CHANGE_COLUMNS = tuple(ChangeColumns.__annotations__)
DERIVATION_COLUMNS = tuple(DerivationColumns.__annotations__)
TASK_COLUMNS = tuple(TaskColumns.__annotations__)
_TYPES: dict[str, TypeEngine[Any]] = {"int": Integer(), "float": Float(), "str": String()}


def build_clause(name: str, columns: type, **hidden: str) -> TableClause:
    """Return a listing or its view for queries that read it; `hidden`: name and type of columns that no view shows."""
    types = {**hidden, **columns.__annotations__}
    return table(name, *(column(key, _TYPES[kind.partition(" ")[0]]) for key, kind in types.items()))


CHANGE_LISTING = build_clause(
    "change_listing", ChangeColumns, change="int", set_aside="str", test_lines="int", state="int"
)
DERIVATION_LISTING = build_clause("derivation_listing", DerivationColumns, change="int")
TASK_LISTING = build_clause("task_listing", TaskColumns, task="int", change="int")
