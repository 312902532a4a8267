"""A run of the steps from seed tasks to certified scenarios. The database is the queue, the ledger keeps every answer.

`STORE/worlds/calls.jsonl` has the answers of all runs with this store (`backends.llm.ledger`). A run that ended early,
by whatever cause, is continued by the same command: the work that it had stored is not pending any more, the work that
it was doing is done again with the answers of the ledger, so that the same records come out and no call is paid twice.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from backends.llm.ledger import CallLedger, Pacer
from core.errors import InputError, MergemillError, UsageError
from core.settings.models import OFF
from mergemill.execution.reporter import Reporter
from mergemill.execution.services import make_services
from mergemill.worlds.containers import open_world_container
from mergemill.worlds.making.assessing import AssessStep
from mergemill.worlds.making.building import BuildStep
from mergemill.worlds.making.discovering import DiscoverStep, read_tasks
from mergemill.worlds.making.models import ModelPool
from mergemill.worlds.making.scenarios import ScenarioStep
from mergemill.worlds.making.work import MakingCount, MakingRequest, WorkBench
from taskdb.artifacts import require_writable_store
from taskdb.records.worlds import WorldStep
from taskdb.store import Store
from worlds.discovery.seed_tasks import SeedTasks
from worlds.model_requests import RoleModels
from worlds.options import apply_defaults

if TYPE_CHECKING:
    from core.config import Settings
    from core.settings.mining import MiningSettings

LEDGER_FOLDER = "worlds"
"""Folder of the ledger in the store."""
ENVIRONMENT = "synthetic"


def run_making(request: MakingRequest, settings: Settings, reporter: Reporter) -> tuple[dict[str, Any], int]:
    """Run steps over the items that are pending for them; return the summary and the exit code.

    Raises:
        InputError: seed tasks or database are not usable, or the endpoint rejects key or model.
        UsageError: no model is set.
        MachineError: a step needs an engine or a base image, and there is none.
        Transient: the disk is full, engine or endpoint failed.
    """
    settings = apply_defaults(settings)
    options = settings.worlds
    discovers = WorldStep.DISCOVER in request.steps
    tasks = read_tasks(request.tasks) if discovers else SeedTasks(tasks=())
    if settings.llm.url == OFF:
        raise UsageError("a model is needed", advice="set --llm URL and --model NAME")
    require_writable_store(settings.storage)
    services = make_services(settings, engine=False)
    for problem in tasks.problems:
        reporter.message(problem.format_line())
    with (
        Store.open(settings.storage.db, create=discovers, writes=True) as store,
        CallLedger(settings.storage.store_dir / LEDGER_FOLDER, "mergemill worlds") as ledger,
        ModelPool(settings.llm, settings.host, options) as pool,
    ):
        models = RoleModels(
            open_model=pool.open,
            names=pool.names,
            ledger=ledger,
            pacer=Pacer(0),
            answer_tokens=settings.llm.answer_tokens,
            draw=options.draw,
        )
        bench = WorkBench(
            request=request,
            options=options,
            workers=settings.cluster.workers,
            store=store,
            services=services,
            models=models,
            pool=pool,
            reporter=reporter,
        )
        summary, code = _run_steps(bench, settings.mining, tasks)
        if code:
            store.discard_if_empty()
        return summary, code


def _run_steps(bench: WorkBench, mining: MiningSettings, tasks: SeedTasks) -> tuple[dict[str, Any], int]:
    started = time.monotonic()
    open_server = functools.partial(open_world_container, bench.services)
    steps: dict[WorldStep, Callable[[], MakingCount]] = {
        WorldStep.DISCOVER: DiscoverStep(bench=bench, mining=mining, tasks=tasks).run,
        WorldStep.BUILD: BuildStep(bench=bench).run,
        WorldStep.ASSESS: AssessStep(bench=bench, open_server=open_server).run,
        WorldStep.SCENARIOS: ScenarioStep(bench=bench, open_server=open_server).run,
    }
    counts = []
    for step in bench.request.steps:
        step_started = time.monotonic()
        counts.append(steps[step]())
        counts[-1].seconds = time.monotonic() - step_started
    for line in describe_failures(bench.failures):
        bench.reporter.message(line)
    summary = {
        "event": "summary",
        "environment": ENVIRONMENT,
        "steps": [count.to_json() for count in counts],
        "unread": len(tasks.problems),
        **asdict(bench.totals),
        "cost": round(bench.totals.cost, 6),
        "seconds": round(time.monotonic() - started, 3),
    }
    code = bench.failures[0].exit_code if bench.failures else 0
    return summary, code or (InputError.exit_code if tasks.problems else 0)


def describe_failures(failures: Sequence[MergemillError]) -> list[str]:
    """Return a line for each kind of failure, with how often it came."""
    counts = Counter(error.format_line() for error in failures)
    return [f"{number} failed: {line}; the same command continues" for line, number in counts.most_common(3)]
