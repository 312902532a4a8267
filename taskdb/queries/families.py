"""Families of tasks and scenarios: those that share a change, or a world, are not independent of each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskdb.records import Task
from taskdb.records.worlds import Scenario
from taskdb.store import Store


def find_families(store: Store, subjects: Sequence[str]) -> dict[str, str]:
    """Return task or scenario (id) -> its family, which is the first id in it; see `unite_families`.

    Args:
        store: the database.
        subjects: ids of tasks and scenarios; an id that is neither is a family of its own.
    """
    keys = list(dict.fromkeys(subjects))
    tasks = store.get_many(Task, keys)
    scenarios = store.get_many(Scenario, [key for key in keys if key not in tasks])
    return unite_families({key: get_family_keys(key, tasks, scenarios) for key in keys})


def get_family_keys(subject: str, tasks: Mapping[str, Task], scenarios: Mapping[str, Scenario]) -> frozenset[str]:
    """Return the key a subject (id) shares with its family: candidates of a task, the world of a scenario."""
    if subject in tasks:
        return tasks[subject].family
    return frozenset({scenarios[subject].parent if subject in scenarios else subject})


def unite_families(keys: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return name -> its family's first name; names that share a key, or a name between them does, are a family."""
    parents: dict[str, str] = {}

    def find_root(key: str) -> str:
        while parents.setdefault(key, key) != key:
            parents[key] = parents[parents[key]]
            key = parents[key]
        return key

    for own in keys.values():
        roots = [find_root(key) for key in own]
        parents.update(dict.fromkeys(roots, roots[0]))
    names: dict[str, str] = {}
    root_of = {name: find_root(min(own)) for name, own in keys.items()}
    for name, root in root_of.items():
        names[root] = min(name, names.get(root, name))
    return {name: names[root] for name, root in root_of.items()}
