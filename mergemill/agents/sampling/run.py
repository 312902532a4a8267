"""Run the pending rollouts of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from backends.sandbox.registry import find_host_image
from core.config import Settings
from core.errors import UsageError
from core.settings.machine import SandboxSettings
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest, select_tasks
from mergemill.agents.sampling.subjects import sample_subjects
from mergemill.agents.sampling.task_sampler import TaskSubjects
from mergemill.simulation.tasks import check_simulator
from samplers.rollouts.environment import SIMULATED
from samplers.scaffolds.base import CommandScaffold, Scaffold
from samplers.subjects.task_subject import list_task_sources
from taskdb.records import Task


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
        UsageError: a scaffold needs a model and none is given, or none delivers the instructions of a task.
    """

    def make_source(tasks: Sequence[Task]) -> TaskSubjects:
        check_machine(tasks, request.scaffolds, settings.sandbox)
        if is_simulated := any(task.environment == SIMULATED for task in tasks):
            check_simulator(settings.llm)
        return TaskSubjects(request=request, is_simulated=is_simulated)

    select = partial(select_tasks, request=request)
    return sample_subjects(
        request, settings, progress, select=select, make_source=make_source, list_sources=list_task_sources
    )


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
