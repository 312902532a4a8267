"""Options of `derive` and `run` for tasks from environments, and the request made of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.errors import UsageError
from mergemill.cli.options import CommandFunction, replace_parameter
from taskdb.records import Kind
from taskdb.records.kinds import ENVIRONMENT_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.settings.tasks import DeriveSettings
    from mergemill.pipeline.environment_tasks import EnvironmentTaskRequest

PANEL = "Tasks from environments"


class TaskSource(StrEnum):
    """Values of `--from`."""

    CHANGES = "changes"
    ENVIRONMENTS = "environments"


_OPTIONS: Mapping[str, Any] = {
    "context": typer.Context,
    "task_source": Annotated[
        TaskSource | None,
        typer.Option(
            "--from",
            help="Derive from changes, or any number of tasks from each environment, those of rejected changes too. "
            "Default: changes.",
            rich_help_panel=PANEL,
        ),
    ],
    "per_repository": Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="At most N tasks of each kind of a repository.", rich_help_panel=PANEL),
    ],
    "per_family": Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="At most N tasks of each kind of the environments of a repository that have the same plan.",
            rich_help_panel=PANEL,
        ),
    ],
    "seed": Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the order of environments. Default: 0.", rich_help_panel=PANEL),
    ],
}


def with_environments(command: CommandFunction) -> CommandFunction:
    """Give a command the options of tasks from environments in place of `given`, their values by name."""
    return replace_parameter("given", _OPTIONS, dict, command)


def make_request(
    given: Mapping[str, Any], derive: DeriveSettings, *, total: int | None = None
) -> EnvironmentTaskRequest | None:
    """Return the tasks that are wanted from environments; None for tasks of changes.

    Args:
        given: values of the options.
        derive: settings, for the number of tasks of an environment.
        total: tasks that are derived by this call at most.

    Raises:
        UsageError: an option is for environments alone, or the number of tasks of an environment is missing.
    """
    if given["task_source"] is not TaskSource.ENVIRONMENTS:
        _reject_options(given, total)
        return None
    if not derive.per_environment:
        raise UsageError(
            "--from environments: how many tasks of each?", advice="name them by --per-environment N, 1 or more"
        )
    from mergemill.pipeline.environment_tasks import EnvironmentTaskRequest  # noqa: PLC0415 - loads the builders

    return EnvironmentTaskRequest(
        per_environment=derive.per_environment,
        per_repository=given["per_repository"],
        per_family=given["per_family"],
        total=total,
        seed=given["seed"] or 0,
    )


def _reject_options(given: Mapping[str, Any], total: int | None) -> None:
    """Raise UsageError where an option of tasks from environments was given for those of changes."""
    values = {name: value for name, value in given.items() if name not in ("context", "task_source")}
    # A number in mergemill.toml is for the calls that derive from environments.
    source = given["context"].get_parameter_source("per_environment")
    values |= {"tasks": total, "per_environment": True if source and source.name == "COMMANDLINE" else None}
    if name := next((name for name, value in values.items() if value is not None), None):
        raise UsageError(f"--{name.replace('_', '-')} is for tasks from environments", advice="add --from environments")


def select_kinds(kinds: Sequence[Kind] | None, *, has_model: bool) -> tuple[Kind, ...]:
    """Return the kinds of tasks to derive from environments.

    Args:
        kinds: those that were named; all kinds, for all that environments give; None, for those that can be made.
        has_model: whether a model is configured, without which no issue can be mirrored.

    Raises:
        UsageError: a kind needs more than an environment.
    """
    if kinds is None and not has_model:
        # A search without a model would be remembered as one that found nothing.
        return tuple(kind for kind in ENVIRONMENT_KINDS if kind is not Kind.MIRRORED)
    if kinds is None or set(kinds) == set(Kind):
        return ENVIRONMENT_KINDS
    if other := next((kind for kind in kinds if kind not in ENVIRONMENT_KINDS), None):
        advice = f"one of {', '.join(ENVIRONMENT_KINDS)}"
        raise UsageError(f"--kind {other}: an environment alone gives no such task", advice=advice)
    return tuple(kinds)
