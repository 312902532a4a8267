"""Lists of tasks from the parameters of an address: filters, search, paging, and the links that change them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from core.errors import UsageError
from mergemill.bundles.filter_resolution import resolve_filters
from mergemill.web.context import WebContext
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters, parse_filters

MAX_ROWS = 1000
FACETS = ("kind", "status", "language", "change_kind", "license", "split", "audited", "repo")
"""Columns whose values are offered beside the list, in order."""
MAX_FACET_VALUES = 8
MAX_FOUND = 200
"""Tasks that a search finds, the best matches; more words find fewer."""
_PAGING = ("q", "after", "limit")


@dataclass(frozen=True)
class TaskListing:
    """A page of a list.

    Attributes:
        rows: the tasks.
        next: name of the last where another page follows, else None.
        filters: the selection that was selected.
        every: all selected tasks where they are known, else None.
    """

    rows: Sequence[Mapping[str, Any]]
    next: str | None
    filters: TaskFilters
    every: Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet. `link`: the list with this value added, or removed where it is chosen."""

    value: str
    count: int | None
    is_chosen: bool
    link: str


def read_parameters(request: Request) -> dict[str, str]:
    """Return the parameters of an address; several values of one name are joined by commas, as on the command line."""
    given = request.query_params
    return {name: ",".join(value for value in given.getlist(name) if value) for name in given}


def load_listing(
    context: WebContext, parameters: Mapping[str, str], limit: int, columns: Sequence[str] = queries.LIST_KEYS
) -> TaskListing:
    """Return a page of tasks.

    Raises:
        UsageError: a parameter is not a filter, or has a value it cannot have.
        InputError: there is no task to continue after.
    """
    filters = read_filters(context, parameters)
    after = parameters.get("after") or None
    every: Sequence[dict[str, Any]] | None
    if words := parameters.get("q", "").split():
        every = queries.search_tasks(context.store, words, filters, MAX_FOUND)
        rows = _continue_after(every, after)[: limit + 1]
    else:
        rows = queries.list_tasks(context.store, filters, limit + 1, after, columns=columns)
        every = rows if after is None and len(rows) <= limit else None
    return TaskListing(rows[:limit], rows[limit - 1]["name"] if len(rows) > limit else None, filters, every)


def count_values(rows: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Return facet -> value -> number of rows, for the facets that the rows have."""
    columns = [column for column in FACETS if rows and column in rows[0]]
    return {column: Counter(row[column] for row in rows if row[column] is not None) for column in columns}


def read_filters(context: WebContext, parameters: Mapping[str, str]) -> TaskFilters:
    """Return the filters among the parameters of an address.

    Raises:
        UsageError: a parameter is unknown or has a wrong value.
        InputError: a parameter names something that is not there.
    """
    given = {name: value for name, value in parameters.items() if name not in _PAGING and value}
    if "decontaminated" in given:  # it names files of this machine
        raise UsageError("decontaminated is a filter of the command line alone")
    return resolve_filters(parse_filters(given), context.storage, context.store)


def _continue_after(rows: Sequence[dict[str, Any]], name: str | None) -> Sequence[dict[str, Any]]:
    names = [row["name"] for row in rows] if name else []
    return rows[names.index(name) + 1 :] if name in names else rows


def build_facets(
    parameters: Mapping[str, str], counts: Mapping[str, Mapping[str, int | None]]
) -> dict[str, list[FacetValue]]:
    """Return the values of each facet, most frequent first; chosen values are listed whatever their number.

    Args:
        parameters: those of the address.
        counts: column -> value -> number of tasks, None where it is unknown.
    """
    facets = {}
    for column in FACETS:
        chosen = [word for word in _get_parameter(parameters, column).split(",") if word]
        of_column = counts.get(column, {})
        values = dict.fromkeys([*chosen, *sorted(of_column, key=lambda value: (-(of_column[value] or 0), value))])
        shown = list(values)[: max(MAX_FACET_VALUES, len(chosen))]
        if shown:
            facets[column] = [
                FacetValue(value, of_column.get(value), value in chosen, _toggle(parameters, column, chosen, value))
                for value in shown
            ]
    return facets


def build_link(parameters: Mapping[str, str], **changes: str | None) -> str:
    """Return the address of the list with some parameters changed; None removes it."""
    kept = {name: value for name, value in {**parameters, **changes}.items() if value}
    return f"/tasks?{urlencode(kept)}" if kept else "/tasks"


def _toggle(parameters: Mapping[str, str], column: str, chosen: Sequence[str], value: str) -> str:
    remaining = [other for other in chosen if other != value] if value in chosen else [*chosen, value]
    others = {name: given for name, given in parameters.items() if name.replace("-", "_") not in (column, "after")}
    return build_link(others, **{column.replace("_", "-"): ",".join(remaining)})


def _get_parameter(parameters: Mapping[str, str], column: str) -> str:
    return parameters.get(column.replace("_", "-")) or parameters.get(column) or ""
