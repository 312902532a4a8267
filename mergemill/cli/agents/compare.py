"""`mergemill trajectories compare`: the win rate of a model and scaffold against another."""

from __future__ import annotations

from typing import Annotated

import typer

from core.settings.storage import StorageSettings
from mergemill.cli import output
from mergemill.cli.agents.environments import EnvironmentOption, WorldOption, parse_environment, select_subjects
from mergemill.cli.options import JsonOption, with_filters, with_settings
from mergemill.cli.win_rates import print_win_rates
from taskdb.queries.task_filters import TaskFilters
from taskdb.store import Store

AgentArgument = Annotated[
    str, typer.Argument(metavar="AGENT", help="MODEL/SCAFFOLD, MODEL@CHECKPOINT/SCAFFOLD, or an unambiguous part.")
]


@with_settings(StorageSettings)
@with_filters
def compare_command(
    first: AgentArgument,
    second: AgentArgument,
    *,
    environment: EnvironmentOption = None,
    world: WorldOption = None,
    as_json: JsonOption = False,
    storage: StorageSettings,
    filters: TaskFilters,
) -> None:
    """Compare two agents, such as teachers: how often the first earns more at the same task, ties counted half.

    Bounds have everything that is missing as lost, and as won.

    Example: mergemill trajectories compare M1/react M2/react --kind bugfix
    """
    from mergemill.agents.agent_comparison import compare_agents  # noqa: PLC0415 - a wrong option does not need it

    subjects = select_subjects(storage, filters, parse_environment(environment, world))
    with Store.open(storage.db, create=False) as store:
        comparison = compare_agents(store, (first, second), environments=subjects.environments, tasks=subjects.ids)
    for remark in comparison.remarks:
        output.print_note(remark)
    print_win_rates(comparison.rows, as_lines=as_json)
