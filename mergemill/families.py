"""Families of tasks: tasks of one repository, and tasks that share a change, belong to one family."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from taskdb.records import Task


def group_families(tasks: Iterable[Task]) -> list[tuple[Task, ...]]:
    """Return the tasks in families, by repository and by every candidate they are derived from.

    Families and their tasks are sorted by name.
    """
    groups: list[tuple[set[str], list[Task]]] = []
    for task in sorted(tasks, key=lambda task: (task.name, task.id)):
        keys = {f"repo {task.repo.lower()}", *task.family}
        overlapping = [group for group in groups if group[0] & keys]
        groups = [group for group in groups if not group[0] & keys]
        groups.append(
            (keys.union(*(group[0] for group in overlapping)), [t for g in overlapping for t in g[1]] + [task])
        )
    merged = (tuple(sorted(members, key=lambda task: (task.name, task.id))) for _, members in groups)
    return sorted(merged, key=lambda members: members[0].name)


def split_families(tasks: Iterable[Task], shares: Sequence[float], seed: str = "") -> list[list[Task]]:
    """Split tasks by shares that sum to 1, each family on one side; the order of the tasks does not matter.

    The side depends on a hash of the names of the family's repositories, so later tasks move no other family.
    """
    sides: list[list[Task]] = [[] for _ in shares]
    for members in group_families(tasks):
        key = f"{seed} {min(task.repo.lower() for task in members)}"
        point = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) / 2**64
        reached = 0.0
        for side, share in enumerate(shares):
            reached += share
            if point < reached or side == len(shares) - 1:
                sides[side] += members
                break
    return sides
