"""Options by which commands on rollouts select environments: simulated and synthetic ones by their names alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from core.errors import UsageError
from core.settings.storage import StorageSettings
from mergemill.cli.options import complete_words, resolve_filters, split_words
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.trajectories import ENVIRONMENTS, SYNTHETIC, TRUSTED_ENVIRONMENTS
from taskdb.queries.worlds import find_scenario_ids
from taskdb.store import Store

EnvironmentOption = Annotated[
    str | None,
    typer.Option(
        "--environment",
        metavar="|".join(ENVIRONMENTS),
        autocompletion=complete_words(ENVIRONMENTS),
        show_default=False,
        help="Select by environment; that of worlds is synthetic. Default: verified,none.",
    ),
]
WorldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--world", metavar="NAME[,NAME]", show_default=False, help="Select scenarios of these worlds (names or ids)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class EnvironmentChoice:
    """Environments that a command names, None for none, and worlds."""

    words: tuple[str, ...] | None
    worlds: tuple[str, ...] = ()

    @property
    def has_scenarios(self) -> bool:
        """Whether rollouts of scenarios are selected."""
        return SYNTHETIC in (self.words or ())


@dataclass(frozen=True, kw_only=True)
class SubjectSelection:
    """Environments of rollouts, and ids of their tasks and scenarios; None for all."""

    environments: tuple[str, ...] | None
    ids: frozenset[str] | None


def parse_environment(environment: str | None, world: Sequence[str] | None) -> EnvironmentChoice:
    """Return the subjects that the options name.

    Raises:
        UsageError: an environment is unknown, or worlds are named without theirs.
    """
    words = None if environment is None else tuple(word.lower() for word in split_words(environment))
    for word in words or ():
        if word not in ENVIRONMENTS:
            raise UsageError(f"--environment: {word} is unknown", advice=f"one of {', '.join(ENVIRONMENTS)}")
    worlds = tuple(split_words(world))
    if worlds and words not in (None, (SYNTHETIC,)):
        raise UsageError(f"--world selects {SYNTHETIC} environments alone", advice="leave --environment out")
    return EnvironmentChoice(words=(SYNTHETIC,) if worlds else words, worlds=worlds)


def refuse_task_filters(choice: EnvironmentChoice, filters: TaskFilters) -> None:
    """Raise UsageError where filters of tasks are to select scenarios."""
    if choice.has_scenarios and filters != TaskFilters():
        raise UsageError("filters of tasks select no scenarios", advice="--world NAME selects those of a world")


def select_subjects(storage: StorageSettings, filters: TaskFilters, choice: EnvironmentChoice) -> SubjectSelection:
    """Return which rollouts filters and environments select.

    Simulated and synthetic environments are selected by their name alone, as by the filters of tasks.

    Raises:
        InputError: there is no database or no such world.
        UsageError: filters of tasks are to select scenarios.
    """
    refuse_task_filters(choice, filters)
    if choice.worlds:
        with Store.open(storage.db, create=False) as store:
            ids = frozenset(find_scenario_ids(store, choice.worlds))
        return SubjectSelection(environments=choice.words, ids=ids)
    if filters == TaskFilters():
        return SubjectSelection(environments=choice.words or TRUSTED_ENVIRONMENTS, ids=None)
    wanted = filters if choice.words is None else replace(filters, environment=choice.words)
    with Store.open(storage.db, create=False) as store:
        tasks = queries.list_tasks(store, resolve_filters(wanted, storage), columns=("id",))
    return SubjectSelection(environments=choice.words, ids=frozenset(row["id"] for row in tasks))
