"""Saved selections: filters under a name, kept in the database, so that all who read it share them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from sqlalchemy import String, column, delete, insert, select, table

from core.errors import InputError, UsageError
from taskdb.queries.task_filters import TaskFilters, format_filters, parse_filters
from taskdb.store import Store

_META = table("meta", column("key", String()), column("value", String()))
_PREFIX = "selection "
_NAME = re.compile(r"[\w.-]{1,100}")


def save_selection(store: Store, name: str, filters: TaskFilters) -> None:
    """Save filters under a name; an earlier selection of that name is replaced.

    Raises:
        UsageError: the name has other characters than letters, digits, `.`, `_` and `-`.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:80]!r} is no name of a selection", advice="letters, digits, '.', '_' and '-'")
    with store.write_transaction() as connection:
        connection.execute(delete(_META).where(_META.c.key == _PREFIX + name))
        connection.execute(insert(_META), {"key": _PREFIX + name, "value": json.dumps(format_filters(filters))})


def load_selection(store: Store, name: str) -> TaskFilters:
    """Return the filters of a saved selection.

    Raises:
        InputError: there is none of that name.
    """
    saved = list_selections(store)
    if name not in saved:
        names = f"saved selections: {', '.join(saved)}" if saved else "mergemill tasks select NAME saves one"
        raise InputError(f"there is no selection {name}", advice=names)
    return parse_filters(saved[name])


def list_selections(store: Store) -> dict[str, Mapping[str, str]]:
    """Return name -> filters as text, by name."""
    query = select(_META.c.key, _META.c.value).where(_META.c.key.startswith(_PREFIX)).order_by(_META.c.key)
    with store.read_transaction() as connection:
        return {row.key.removeprefix(_PREFIX): json.loads(row.value) for row in connection.execute(query)}


def delete_selection(store: Store, name: str) -> None:
    """Delete a saved selection; errors as in `load_selection`."""
    load_selection(store, name)
    with store.write_transaction() as connection:
        connection.execute(delete(_META).where(_META.c.key == _PREFIX + name))
