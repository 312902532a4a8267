"""Variety of tasks: how many repositories, functions, operators and sets of tests they are really made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from taskdb.queries.task_filters import TASKS, TaskFilters
from taskdb.store import Store

ALL_KINDS = "(all)"
"""Name of the row of all kinds together."""
_COLUMNS = ("kind", "repo", "functions", "operators", "edit_group", "failing_set")


@dataclass(frozen=True, kw_only=True)
class KindDiversity:
    """Variety of the tasks of a kind. Numbers of functions, operators and sets are None where no task has any.

    An effective number is the exponential of Shannon's entropy (Hill's number of order 1): that of equally frequent
    values with the same entropy. A task with several functions or operators counts once for each.
    """

    kind: str
    tasks: int
    repos: int
    functions: int | None
    effective_functions: float | None
    operators: int | None
    effective_operators: float | None
    failing_sets: int | None
    largest_group: float
    """Share of the tasks that are in the largest group of near duplicates, 0..1."""
    near_duplicates: float
    """Share of the tasks that a group of near duplicates has beyond its first, 0..1."""


def compute_diversity(store: Store, filters: TaskFilters) -> list[KindDiversity]:
    """Return the variety of the selected tasks of each kind, by name, and of all together where there are several.

    Tasks are near duplicates that share an `edit_group` or a `failing_set`, also by way of others.
    """
    columns = [TASKS.c[name] for name in _COLUMNS]
    query = filters.apply(select(*columns, func.count().label("n")).group_by(*columns))
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    with store.read_transaction() as connection:
        for row in connection.execute(query).mappings():
            kinds.setdefault(row["kind"], []).append(dict(row))
    counted = [summarize_kind(kind, rows) for kind, rows in sorted(kinds.items())]
    every = [row for rows in kinds.values() for row in rows]
    return [*counted, summarize_kind(ALL_KINDS, every)] if len(counted) > 1 else counted


def summarize_kind(kind: str, rows: Sequence[Mapping[str, Any]]) -> KindDiversity:
    """Return the variety of some tasks.

    Args:
        kind: name of the row.
        rows: values of the columns repo, functions, operators, edit_group and failing_set, and `n`, the number of tasks
            with these values; at least one.
    """
    functions, operators = Counter[str](), Counter[str]()
    for row in rows:
        repo = row["repo"].lower()
        functions.update({f"{repo} {name}": row["n"] for name in _split_list(row["functions"])})
        operators.update(dict.fromkeys(_split_list(row["operators"]), row["n"]))
    total = sum(row["n"] for row in rows)
    groups = _count_near_duplicates(rows)
    return KindDiversity(
        kind=kind,
        tasks=total,
        repos=len({row["repo"].lower() for row in rows}),
        functions=len(functions) or None,
        effective_functions=compute_effective_number(functions.values()),
        operators=len(operators) or None,
        effective_operators=compute_effective_number(operators.values()),
        failing_sets=len({row["failing_set"] for row in rows} - {None}) or None,
        largest_group=max(groups) / total,
        near_duplicates=1 - len(groups) / total,
    )


def compute_effective_number(counts: Iterable[int]) -> float | None:
    """Return the effective number of values, from the count of each, all above 0; None for no values."""
    listed = list(counts)
    total = sum(listed)
    if not total:
        return None
    return math.exp(-math.fsum(count / total * math.log(count / total) for count in listed))


def _split_list(words: str | None) -> list[str]:
    return words.split(",") if words else []


def _count_near_duplicates(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the sizes of the groups of near duplicates. A task with neither key is alone."""
    groups, alone = _KeyGroups(), 0
    for row in rows:
        keys = [f"{name} {row[name]}" for name in ("edit_group", "failing_set") if row[name] is not None]
        if keys:
            groups.add(keys, row["n"])
        else:
            alone += row["n"]
    return [*groups.count(), *[1] * alone]


@dataclass
class _KeyGroups:
    """Disjoint sets of keys (Galler and Fischer 1964), with the number of tasks that have them."""

    parents: dict[str, str] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)

    def add(self, keys: Sequence[str], number: int) -> None:
        """Unite the groups of the keys of some tasks."""
        first, *others = (self._find(key) for key in keys)
        for other in others:
            self.parents[other] = first
        self.sizes[keys[0]] += number

    def count(self) -> list[int]:
        """Return the number of tasks of each group."""
        numbers = Counter[str]()
        for key, number in self.sizes.items():
            numbers[self._find(key)] += number
        return list(numbers.values())

    def _find(self, key: str) -> str:
        """Return the representative of a key's group."""
        root = key
        while (parent := self.parents.setdefault(root, root)) != root:
            root = parent
        # Later searches are short, as each key on the way refers to the representative.
        while key != root:
            self.parents[key], key = root, self.parents[key]
        return root
