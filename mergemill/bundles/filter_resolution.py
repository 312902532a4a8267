"""Resolution of filters that need more than a condition: names, benchmark lists, saved selections and samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from core.errors import InputError
from core.files import read_input
from core.settings.storage import StorageSettings
from taskdb.queries import saved_selections
from taskdb.queries.sampling import sample_tasks
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.task_names import list_origins, resolve_names
from taskdb.queries.tasks import count_tasks
from taskdb.store import Store

SHOWN_NAMES = 10
"""Unknown names that a message lists."""


def resolve_filters(
    filters: TaskFilters, storage: StorageSettings, store: Store | None = None, *, default_status: str | None = None
) -> TaskFilters:
    """Return filters that are a condition on view `tasks` and nothing else.

    Args:
        filters: filters as given by a user.
        storage: place of the database, and of the clones.
        store: the database, if it is open already.
        default_status: status to select where none is given.

    Raises:
        InputError: a name, a saved selection or a benchmark list does not exist.
    """
    if filters.is_resolved and filters.source is None:
        return replace(filters, status=filters.status or default_status)
    with _open_store(storage, store) as opened:
        if filters.selection is not None:
            saved = saved_selections.load_selection(opened, filters.selection)
            filters = saved.merge(replace(filters, selection=None))
        filters = replace(filters, status=filters.status or default_status)
        if filters.source is not None:
            filters = replace(filters, source=_resolve_sources(filters.source, storage, opened))
        if filters.named is not None:
            filters = replace(filters, ids=_require_ids(opened, filters.named), named=None)
        if filters.decontaminated:
            excluded = _find_contaminated(opened, filters)
            filters = replace(filters, excluded_ids=(*filters.excluded_ids, *excluded), decontaminated=())
        if filters.is_sampled:
            filters = TaskFilters(ids=sample_tasks(opened, filters))
    return filters


def has_rollouts(storage: StorageSettings) -> bool:
    """Return whether any task has a pass rate."""
    with Store.open(storage.db, create=False) as store:
        return bool(count_tasks(store, TaskFilters(where="difficulty <> '{}'")))


@contextmanager
def _open_store(storage: StorageSettings, store: Store | None) -> Iterator[Store]:
    with nullcontext(store) if store is not None else Store.open(storage.db, create=False) as opened:
        yield opened


def _resolve_sources(sources: Sequence[str] | str, storage: StorageSettings, store: Store) -> tuple[str, ...]:
    """Return sources as records have them: with absolute paths, and a renamed repository's first name."""
    from mergemill.execution.sources import resolve_source  # noqa: PLC0415 - few commands name a source

    words = (sources,) if isinstance(sources, str) else sources
    return tuple(resolve_source(word, storage, store) for word in words)


def _require_ids(store: Store, words: Sequence[str]) -> tuple[str, ...]:
    resolved, problems = resolve_names(store, words)
    if problems:
        more = f" and {len(problems) - SHOWN_NAMES} more" if len(problems) > SHOWN_NAMES else ""
        raise InputError(
            f"{len(problems)} of {len(words)} tasks are not found: {', '.join(problems[:SHOWN_NAMES])}{more}",
            advice="mergemill tasks list lists the tasks",
        )
    return resolved


def _find_contaminated(store: Store, filters: TaskFilters) -> list[str]:
    """Return the ids of tasks whose change, or whose repository, a benchmark list names."""
    from miner.benchmarks import load_benchmarks  # noqa: PLC0415 - few commands read the lists

    index = load_benchmarks(filters.decontaminated)
    return [
        origin.id
        for origin in list_origins(store, index.repos)
        if index.find_by_name(origin.repo, origin.number, origin.base_commit, origin.change) is not None
    ]


def read_names(path: str, stdin: Iterator[str]) -> tuple[str, ...]:
    """Return the ids or names of a file, a line each; blank lines and lines that begin with `#` are skipped.

    Args:
        path: the file; `-` for standard input.
        stdin: lines of standard input.

    Raises:
        InputError: the file cannot be read or holds none.
    """
    try:
        lines = list(stdin) if path == "-" else read_input(Path(path)).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--ids: cannot read {path}: {getattr(error, 'strerror', None) or 'it is no text'}") from error
    words = tuple(dict.fromkeys(word for line in lines if (word := line.strip()) and not word.startswith("#")))
    if not words:
        raise InputError(f"--ids: {path} holds no id", advice="one id, beginning of an id or name a line")
    return words
