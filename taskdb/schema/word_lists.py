"""Lists of any length as a single parameter, so that no statement grows with the number of names, ids or sources.

SQLite ends at an expression of 1,000 levels or 32,766 parameters, PostgreSQL at 65,535 parameters.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, String, cast, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

MAX_LISTED = 16
"""Words up to which a condition lists them, so that the planner knows how many rows they select."""


class JsonList(FunctionElement[Any]):
    """Rows of a JSON list, as column `value`."""

    name = "json_list"
    inherit_cache = True


@compiles(JsonList)
def _compile_json_list(element: JsonList, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(JsonList, "postgresql")
def _compile_json_list_postgresql(element: JsonList, compiler: Any, **options: Any) -> str:
    return f"jsonb_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS jsonb))"


def select_words(words: Iterable[str]) -> Select[Any]:
    """Return a query of the words: a single parameter, however many there are."""
    rows = JsonList(literal(json.dumps(list(words)), String())).table_valued("value")
    return select(rows.c.value)


def match_words(column: ColumnElement[Any], words: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a column has any of some words."""
    if len(words) == 1:
        return column == next(iter(words))
    return column.in_(list(words) if len(words) <= MAX_LISTED else select_words(words))


def match_numbers(column: ColumnElement[Any], numbers: Collection[int]) -> ColumnElement[bool]:
    """Return the condition that a column has any of some whole numbers."""
    if len(numbers) <= MAX_LISTED:
        return column.in_(sorted(numbers))
    rows = JsonList(literal(json.dumps(sorted(numbers)), String())).table_valued("value")
    return column.in_(select(cast(rows.c.value, BigInteger)))
