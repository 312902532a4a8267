"""Run the pending rollouts of tasks.

Rollouts that a killed driver left behind begin again; the answers of their models are read from the
gateway's log instead of being paid again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from backends.sandbox.registry import find_host_image
from core.config import Settings
from core.errors import UsageError
from core.settings.machine import SandboxSettings
from mergemill.agents.sampling.driver import RolloutDriver, open_threads, run_events, run_on_nodes
from mergemill.agents.sampling.nodes import NodeTaskRollouts
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest, list_pending, select_tasks
from mergemill.agents.sampling.task_sampler import forget_exchanges, open_sampler
from mergemill.execution.clusters import LOCAL, check_cluster_settings
from mergemill.execution.nodes import share_settings
from mergemill.simulation.tasks import check_simulator
from samplers.gateway.process import Upstream
from samplers.rollouts.environment import SIMULATED
from samplers.scaffolds.base import CommandScaffold, Scaffold
from taskdb.artifacts import require_writable_store
from taskdb.records import Task
from taskdb.store import Store


def run_sampling(request: SampleRequest, settings: Settings, progress: SamplingProgress) -> int:
    """Sample with the progress shown; arguments, result and errors as of `sample`."""
    with progress:
        return sample(request, settings, progress)


def sample(request: SampleRequest, settings: Settings, progress: SamplingProgress) -> int:
    """Run the pending rollouts of a request and store them; return the exit code.

    Raises:
        InputError: there is no database or no such task, or a task is not certified.
        MachineError: no engine answers, or a program cannot be installed.
        Transient: the model cannot be reached, or database or disk fail.
        UsageError: a scaffold needs a model and none is given.
    """
    check_cluster_settings(settings.cluster)
    require_writable_store(settings.storage)
    with Store.open(settings.storage.db, create=False, writes=True) as store:
        tasks = select_tasks(store, request)
        find_pending = partial(list_pending, store, tasks, request.scaffolds, request)
        planned, pending = find_pending()
        progress.set_work(n_planned=planned, n_pending=len(pending))
        if not pending:
            return progress.end()
        check_machine(tasks, request.scaffolds, settings.sandbox)
        if is_simulated := any(task.environment == SIMULATED for task in tasks):
            check_simulator(settings.llm)
        make_driver = partial(
            RolloutDriver,
            store=store,
            settings=settings,
            progress=progress,
            list_pending=find_pending,  # again: another driver, for whose end this one waited, may have done it
            is_staged=request.attempts is None,
        )
        if settings.cluster.address != LOCAL:
            _sample_on_cluster(request, settings, progress, make_driver, is_simulated=is_simulated)
        else:
            find_task = {task.id: task for task in tasks}.__getitem__
            with open_sampler(
                request, settings, store, progress, find_task=find_task, is_simulated=is_simulated
            ) as sampler:
                shared = sampler.shared
                make_driver(
                    cluster=open_threads(settings.cluster, shared.services),
                    run=partial(run_events, sampler.run),
                    forget=partial(forget_exchanges, shared.gateway),
                ).run_all()
        return progress.end()


def _sample_on_cluster(
    request: SampleRequest,
    settings: Settings,
    progress: SamplingProgress,
    make_driver: Callable[..., RolloutDriver],
    *,
    is_simulated: bool,
) -> None:
    """Run rollouts on the nodes of a cluster."""
    uses_model = any(scaffold.uses_model for scaffold in request.scaffolds)
    upstreams = [Upstream.from_settings(settings.upstream, settings.llm)] if uses_model else []
    engine = find_host_image(settings.sandbox.kind) is None
    run = NodeTaskRollouts(settings=share_settings(settings), request=request, is_simulated=is_simulated)
    run_on_nodes(make_driver, run, settings, progress, engine=engine, upstreams=upstreams)


def check_machine(tasks: Sequence[Task], scaffolds: Sequence[Scaffold], sandbox: SandboxSettings) -> None:
    """Check that a sandbox of this machine's programs suffices, where it is that.

    Raises:
        UsageError: a task needs an image, or a scaffold a program in the container.
    """
    if find_host_image(sandbox.kind) is None:
        return
    if others := [task.name for task in tasks if task.environment != SIMULATED]:
        advice = "--sandbox docker, or --environment simulated"
        raise UsageError(f"--sandbox {sandbox.kind} has no image for {others[0]}", advice=advice)
    if inside := [
        scaffold.name for scaffold in scaffolds if scaffold.program is not None or isinstance(scaffold, CommandScaffold)
    ]:
        advice = "--sandbox docker, or a scaffold that needs no program, such as react"
        raise UsageError(f"--sandbox {sandbox.kind} has no place for the program of {inside[0]}", advice=advice)
