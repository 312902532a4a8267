"""Exports of the database's tasks: one bundle, or one per split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import exporters
from core.config import Settings
from core.errors import InputError, UsageError
from mergemill import families
from mergemill.images.copies import find_certified_copies
from mergemill.services import make_services
from taskdb import queries
from taskdb.image_queries import load_image_copies
from taskdb.queries import TaskFilters
from taskdb.records import Bundle, Task
from taskdb.store import Store


def export_splits(
    format_name: str, out: Path, splits: Sequence[str] | None, filters: TaskFilters, settings: Settings
) -> Iterator[tuple[Bundle, list[Task]]]:
    """Write a bundle per split and record it; yield each with the tasks that the format cannot represent.

    Args:
        format_name: a key of `exporters.FORMATS`.
        out: folder of the bundle, or of the splits' folders.
        splits: `NAME=SHARE` each; None for one bundle.
        filters: which tasks.
        settings: database and store.

    Raises:
        UsageError: the format is unknown, or the shares do not sum to 1.
        InputError: no task matches, two tasks have one name, or the folder holds something else.
        Transient: the disk is full or not writable.
    """
    services = make_services(settings, engine=False)
    with Store.open(settings.db, create=False) as store:
        chosen = queries.load_tasks(store, filters)
        tasks = [task for task, _ in chosen]
        _check_unique_names(tasks)
        certificates = {task.id: certificate for task, certificate in chosen if certificate}
        registry = find_certified_copies(tasks, certificates, load_image_copies(store))
        for folder, members in _split_tasks(tasks, out, splits):
            bundle = exporters.export_tasks(format_name, members, certificates, folder, services, registry=registry)
            store.add(bundle)
            yield bundle, [task for task in members if task.id not in bundle.tasks]


def _split_tasks(tasks: Sequence[Task], out: Path, splits: Sequence[str] | None) -> list[tuple[Path, Sequence[Task]]]:
    """Return the folders to write, each with its tasks; a split without tasks has none."""
    if splits is None:
        return [(out, tasks)]
    shares = _parse_shares(splits)
    sides = zip(shares, families.split_families(tasks, list(shares.values())), strict=True)
    return [(out / name, members) for name, members in sides if members]


def _parse_shares(splits: Sequence[str]) -> dict[str, float]:
    named = [word.partition("=") for word in splits]
    try:
        shares = {name: float(share) for name, _, share in named}
    except ValueError:
        shares = {}
    is_valid = len(shares) == len(named) and all(shares) and not any("/" in name for name in shares)
    if not shares or not is_valid or min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > 1e-6:
        raise UsageError(
            f"--split: the shares of {','.join(splits)!r} do not sum to 1", advice="such as train=0.9,test=0.1"
        )
    return shares


def _check_unique_names(tasks: Sequence[Task]) -> None:
    """Raise InputError when two tasks have one name: no format could distinguish them."""
    sources: dict[str, list[str]] = {}
    for task in tasks:
        sources.setdefault(task.name, []).append(task.source)
    for name, found in sources.items():
        if len(found) > 1:
            raise InputError(
                f"{len(found)} tasks are named {name}: of {', '.join(found)}", advice="choose one with --source"
            )
