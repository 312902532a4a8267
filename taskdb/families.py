"""Which tasks belong together: those of one repository, and those that share a change, however far apart they stand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from taskdb.records import Task


def families(tasks: Iterable[Task]) -> list[tuple[Task, ...]]:
    """The tasks in groups that no split may part: by repository, and by every candidate that tasks are made of.

    Groups and their tasks are sorted by name.
    """
    groups: list[tuple[set[str], list[Task]]] = []
    for task in sorted(tasks, key=lambda task: (task.name, task.id)):
        keys = {f"repo {task.repo.lower()}", *task.family}
        touching = [group for group in groups if group[0] & keys]
        groups = [group for group in groups if not group[0] & keys]
        groups.append((keys.union(*(group[0] for group in touching)), [t for g in touching for t in g[1]] + [task]))
    merged = (tuple(sorted(members, key=lambda task: (task.name, task.id))) for _, members in groups)
    return sorted(merged, key=lambda members: members[0].name)


def split(tasks: Iterable[Task], shares: Sequence[float], seed: str = "") -> list[list[Task]]:
    """Tasks on as many sides as there are shares (which sum to 1), each family on one side; the same for every order.

    A family falls by a hash of its repositories' names, so tasks that are added later move no other family.
    """
    sides: list[list[Task]] = [[] for _ in shares]
    for members in families(tasks):
        key = f"{seed} {min(task.repo.lower() for task in members)}"
        point = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) / 2**64
        reached = 0.0
        for side, share in enumerate(shares):
            reached += share
            if point < reached or side == len(shares) - 1:
                sides[side] += members
                break
    return sides
