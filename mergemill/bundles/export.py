"""Exports of the database's tasks: one bundle, or one per split, streamed task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import exporters
from backends.sandbox.image_registry import parse_registry
from core.config import Settings
from core.errors import InputError, UsageError
from core.settings.storage import StorageSettings
from exporters.item import ExportItem
from mergemill.bench.held_out import MARK
from mergemill.bundles.families import FamilyIndex
from mergemill.execution.images import copies
from mergemill.execution.progress import CountProgress
from mergemill.execution.services import make_services
from taskdb.queries import tasks as queries
from taskdb.queries.bench import find_held_out
from taskdb.queries.evidence import count_with_evidence
from taskdb.queries.images import load_image_copies
from taskdb.queries.lineages import load_lineages
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Kind, Record, Task
from taskdb.records.images import ImageCopy
from taskdb.schema.task_columns import Range
from taskdb.store import Store

BATCH = 200
"""Tasks that are read at once."""

TORN = "made after a change of a repository in another split"
"""Reason for which a mirrored task is in no split."""
IsWanted = Callable[[Mapping[str, Any]], bool]
"""Whether a row of the view `tasks` is in a split."""


def export_splits(
    format_name: str,
    out: Path,
    splits: Sequence[str] | None,
    filters: TaskFilters,
    settings: Settings,
    *,
    with_images: bool = False,
    with_parquet: bool = False,
    push_to: str | None = None,
    make_progress: Callable[[str, int], CountProgress] = CountProgress,
) -> Iterator[exporters.ExportResult]:
    """Write a bundle per split and record it; yield each when it is complete.

    Tasks are read in batches and written in sequence, once per split: memory does not grow with their number.

    Args:
        format_name: a key of `exporters.FORMATS`.
        out: folder of the bundle, or of the splits' folders.
        splits: `NAME=SHARE` each; None for a bundle.
        filters: selection of the tasks.
        settings: database and store.
        with_images: whether the bundles hold the images.
        with_parquet: whether the bundles hold the tasks packed in parquet.
        push_to: registry, `HOST/PREFIX`, to which the images are pushed first.
        make_progress: function that makes the progress of a bundle, of a noun and the number of tasks.

    Raises:
        UsageError: the format is unknown, the registry is not `HOST/PREFIX`, or the shares do not sum to 1.
        InputError: no task matches, two tasks have the same name, or the folder holds something else.
        Transient: the disk is full or not writable.
    """
    services = make_services(settings, engine=with_images)
    with Store.open(settings.storage.db, create=False) as store:
        _check_unique_names(store, filters)
        if push_to is not None:
            _push_images(filters, push_to, store, settings)
        known = load_image_copies(store)
        planned, torn = _plan_splits(store, filters, out, splits)
        for folder, n_tasks, is_wanted in planned:
            reader = ItemReader(store, filters, is_wanted, known)
            with make_progress("task", n_tasks) as progress, closing(reader.iterate(progress)) as items:
                result = exporters.export_items(
                    format_name,
                    items,
                    folder,
                    services,
                    with_images=with_images,
                    with_parquet=with_parquet,
                    load_lineage=reader.get_lineage,
                )
            # An archive is exported and stays as it is.
            if not store.is_read_only:
                store.add(result.bundle)
            # Counted once for all splits, with the first.
            if torn:
                result.excluded[(Kind.MIRRORED.value, TORN)] += torn
                torn = 0
            yield result


def count_left_out(filters: TaskFilters, storage: StorageSettings) -> dict[str, int]:
    """Return how many tasks resolved filters leave out by each of LIMITS; a task counts for the first that applies."""
    left_out = {}
    with Store.open(storage.db, create=False) as store:
        kept = replace(filters, **LIMITS)
        left = queries.count_tasks(store, kept)
        for name in LIMITS:
            kept = replace(kept, **{name: getattr(filters, name)})
            before, left = left, queries.count_tasks(store, kept)
            left_out[name] = before - left
    return left_out


LIMITS: Mapping[str, Any] = MappingProxyType({"controlled": False, "max_underspecified": None, "max_unfair": None})
"""Filters of exports, with the value that leaves nothing out."""


def count_doubtful(filters: TaskFilters, storage: StorageSettings) -> dict[str, int]:
    """Return how many of the tasks that resolved filters select need a look, by reason; reasons of none are missing.

    Reasons about which the filters already decide are left out.
    """
    has_limit = filters.max_unfair is not None or filters.max_underspecified is not None

    def count(**narrower: Any) -> int:
        return queries.count_tasks(store, replace(filters, **narrower))

    with Store.open(storage.db, create=False) as store:
        doubts: list[tuple[str, bool, Callable[[], int]]] = [
            ("findings in the newest audit", filters.audited is None, lambda: count(audited="findings")),
            (
                f"tests that detect at most {WEAK:g} of the faults in the gold patch",
                filters.strength is None,
                lambda: count(strength=Range(None, WEAK)),
            ),
            # A probability that rests on no finding is the base rate of the labelled rows: most tasks have a high one.
            (
                "tests that require what the statement lacks, by findings of the judge",
                filters.max_unfair is None and filters.unfair_tests is None,
                lambda: count_with_evidence(store, filters, "unfair_tests", LIKELY),
            ),
            (
                "a statement that leaves open what to do, by findings of the judge",
                filters.max_underspecified is None and filters.underspecified is None,
                lambda: count_with_evidence(store, filters, "underspecified", LIKELY),
            ),
            (
                "controls that rest on copies of tests, whose odds do not hold; `mergemill verify --again` renews them",
                filters.control_bound is None and filters.where is None,
                lambda: count(where=OLD_CONTROLS),
            ),
            (
                f"control_bound of {HIGH_ODDS:g} or more: a submission that only reads the tests is likely to pass",
                filters.control_bound is None,
                lambda: count(control_bound=Range(HIGH_ODDS, None)),
            ),
            (
                "not judged, so that no probability leaves them out",
                has_limit and filters.where is None,
                lambda: count(where=NOT_JUDGED),
            ),
        ]
        return {reason: number for reason, is_open, count_doubt in doubts if is_open and (number := count_doubt())}


WEAK, LIKELY = 0.5, 0.5
"""Strength up to which, and the judge's probability from which, an export warns; of the latter only with a finding."""
HIGH_ODDS = 0.5
"""Odds from which an export warns, of a submission that reads the tests and solves nothing."""
OLD_CONTROLS = "rests_on_copies = 1"
NOT_JUDGED = "unfair_tests IS NULL"


class ItemReader:
    """Reader of the tasks of a bundle, with the records that they descend from, in batches of BATCH."""

    def __init__(
        self,
        store: Store,
        filters: TaskFilters,
        is_wanted: IsWanted,
        known_copies: Mapping[str, tuple[ImageCopy, ...]],
        canary: str = "",
    ) -> None:
        self._store, self._filters, self._is_wanted, self._known_copies = store, filters, is_wanted, known_copies
        self._canary = canary
        self._lineages: Mapping[str, Sequence[Record]] = {}
        self._held_out = find_held_out(store)

    def iterate(self, progress: CountProgress) -> Generator[ExportItem]:
        """Yield the tasks as items, by name, and count each when it is written."""
        tasks = queries.iter_tasks(self._store, self._filters, BATCH, self._is_wanted)
        while batch := list(islice(tasks, BATCH)):
            self._lineages = load_lineages(self._store, [task for task, _, _ in batch])
            for task, certificate, row in batch:
                copy = copies.find_certified_copy(task, certificate, self._known_copies)
                notes = [MARK] if self._held_out.covers(task.id, task.name) else []
                yield ExportItem(
                    task=task,
                    certificate=certificate,
                    registry_image=copy,
                    facts=row,
                    canary=self._canary,
                    notes=notes,
                )
                progress.advance()

    def get_lineage(self, task: Task) -> Sequence[Record]:
        """Return the records that a task of the present batch descends from, parents first."""
        return self._lineages[task.id]


def _push_images(filters: TaskFilters, registry: str, store: Store, settings: Settings) -> None:
    """Push the images of tasks that have an image, and record the copies.

    Raises:
        MergemillError: an image could not be pushed.
    """
    chosen = ((task, certificate) for task, certificate, _ in queries.iter_tasks(store, filters) if task.image)
    images = copies.collect_images(chosen)
    services = make_services(settings, engine=True)
    for _, outcome in copies.push_images(services.images, images, parse_registry(registry), services.clock):
        if not isinstance(outcome, ImageCopy):
            raise outcome
        store.add(outcome)


def _plan_splits(
    store: Store, filters: TaskFilters, out: Path, splits: Sequence[str] | None
) -> tuple[list[tuple[Path, int, IsWanted]], int]:
    """Return the folders to write, and how many mirrored tasks are in none of them.

    Each folder has the number of its tasks and which they are; an empty split has none. A mirrored task would be on one
    side and the change that it makes again on the other.
    """
    if splits is None:
        return [(out, queries.count_tasks(store, filters), lambda _: True)], 0
    shares = _parse_shares(splits)
    index, numbers = FamilyIndex(), Counter[str]()
    for repo, candidates in queries.iter_families(store, filters):
        index.add(repo, candidates)
        numbers[repo] += 1

    def choose_side(repo: str) -> int:
        return index.choose_side(repo, list(shares.values()))

    # Their repositories are not united to a family: with many mirrored tasks all would be a single one.
    torn = {
        task: repo
        for task, repo, other in queries.iter_mirrors(store, filters)
        if choose_side(repo) != choose_side(other)
    }
    numbers.subtract(torn.values())
    planned = []
    for side, name in enumerate(shares):
        n_tasks = sum(number for repo, number in numbers.items() if choose_side(repo) == side)
        if n_tasks:
            planned.append((out / name, n_tasks, _select_side(choose_side, side, torn)))
    if not planned:
        raise InputError("there are no tasks to export", advice="`mergemill tasks list` shows the tasks")
    return planned, len(torn)


def _select_side(choose_side: Callable[[str], int], side: int, torn: Collection[str]) -> IsWanted:
    return lambda row: choose_side(row["repo"]) == side and row["id"] not in torn


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


def _check_unique_names(store: Store, filters: TaskFilters) -> None:
    """Raise InputError when two tasks have the same name: no format could distinguish them."""
    if shared_name := queries.find_shared_name(store, filters):
        name, sources = shared_name
        raise InputError(
            f"{len(sources)} tasks are named {name}: of {', '.join(sources)}", advice="choose one with --source"
        )
