"""The rule that held-out subjects and their families are no training data: exports refuse or mark them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from core.errors import InputError
from core.settings.storage import StorageSettings
from core.text import format_count
from taskdb.queries import tasks as queries
from taskdb.queries.bench import HeldOut, find_held_out, find_held_out_sources
from taskdb.queries.task_filters import TaskFilters
from taskdb.schema.database import database_exists
from taskdb.store import Store

if TYPE_CHECKING:
    from simulators.seeds.seed import Seed

T = TypeVar("T")
HELD_OUT = "held-out"
"""Name under which refused subjects are counted."""
REFUSED = f"{HELD_OUT}: in a family of a frozen set that no training data may have; --with-held-out has it, too"
MARK = f"{HELD_OUT}: in a family of a frozen set, so that its measures are void for models trained on this"
"""Note in the manifest and the card of data that has held-out subjects."""
WITH_OPTION = "--with-held-out"
WITH_HELP = "Include subjects that a frozen set holds out, too; manifest and card are marked."


def refuse_held_out(filters: TaskFilters, storage: StorageSettings) -> tuple[TaskFilters, int]:
    """Return resolved filters without the tasks that sets hold out, and how many these are."""
    with Store.open(storage.db, create=False) as store:
        held_out = find_held_out(store)
        if not held_out.ids:
            return filters, 0
        kept = replace(filters, excluded_ids=(*filters.excluded_ids, *sorted(held_out.ids)))
        return kept, queries.count_tasks(store, filters) - queries.count_tasks(store, kept)


def split_held_out(
    items: Iterable[T], get_keys: Callable[[T], tuple[str, str]], held_out: HeldOut
) -> tuple[list[T], int]:
    """Return the items that are not held out, and how many are; `get_keys` returns id and name of an item's subject."""
    listed = list(items)
    kept = [item for item in listed if not held_out.covers(*get_keys(item))]
    return kept, len(listed) - len(kept)


def refuse_seeds(
    seeds: Sequence[Seed], storage: StorageSettings, report: Callable[[str], None], *, with_held_out: bool
) -> tuple[list[Seed], int]:
    """Return the seeds that may be used, and how many of these are conversations on held-out subjects.

    Args:
        seeds: reference conversations, of which those whose source names no task or scenario are not held out.
        storage: database with the sets; without one nothing is held out.
        report: function that receives the line about refused seeds.
        with_held_out: whether held-out seeds may be used.

    Raises:
        InputError: all are held out.
    """
    if not database_exists(storage.db):
        return list(seeds), 0
    with Store.open(storage.db, create=False) as store:
        held_out = find_held_out_sources(store, [seed.origin for seed in seeds])
    kept = [seed for seed, is_held_out in zip(seeds, held_out, strict=True) if not is_held_out]
    n_held_out = len(seeds) - len(kept)
    if with_held_out:
        return list(seeds), n_held_out
    if n_held_out:
        report(describe_refused(n_held_out, "seed"))
        if not kept:
            raise InputError("every seed is held out", advice="--with-held-out uses them anyway")
    return kept, 0


def get_row_keys(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return id and name of the task or scenario of a listed trajectory."""
    return row["task"], row["name"]


def describe_refused(number: int, noun: str) -> str:
    """Return the line of refused subjects for people."""
    return f"{format_count(number, noun)} left out: {REFUSED}"
