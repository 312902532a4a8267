"""Choice of the tasks of a set by a rule: as many of each kind, spread over repositories, in an order by hash."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError


def choose_of_each_kind(rows: Sequence[Mapping[str, Any]], kinds: Sequence[str], number: int, seed: str) -> list[str]:
    """Return the ids of as many tasks of each kind, by kind.

    The order is by a hash of seed and name, so that the choice is the same in any database with the same tasks. The
    first task of each repository comes before the second of any.

    Args:
        rows: tasks with `id`, `name`, `kind` and `repo`.
        kinds: the kinds, each once.
        number: tasks of each kind.
        seed: seed of the order.

    Raises:
        InputError: there are fewer of a kind; all such kinds are named.
    """
    ordered = sorted(rows, key=lambda row: (hashlib.sha256(f"{seed} {row['name']}".encode()).hexdigest(), row["id"]))
    places = Counter[tuple[str, str]]()
    numbered: dict[str, list[tuple[int, int, str]]] = {kind: [] for kind in kinds}
    for rank, row in enumerate(ordered):
        group = (row["kind"], row["repo"].lower())
        places[group] += 1
        if row["kind"] in numbered:
            numbered[row["kind"]].append((places[group], rank, row["id"]))
    if short := [f"{kind} {len(tasks)}" for kind, tasks in numbered.items() if len(tasks) < number]:
        raise InputError(f"--of-each-kind {number}: there are fewer tasks of {', '.join(short)}")
    return [key for tasks in numbered.values() for _, _, key in sorted(tasks)[:number]]
