"""Runs on a frozen set: rollouts of `mergemill sample`, and the record that names them.

The database is the queue: the same request runs the rollouts that are missing, and its record is the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.errors import InputError, UsageError
from core.settings.group import replace_values
from mergemill.agents.sampling.request import (
    AttemptRequest,
    SampleRequest,
    WorldSampleRequest,
    make_plan,
)
from mergemill.agents.sampling.world_scaffolds import MODES, WorldScaffold, make_world_scaffolds
from mergemill.bench.measurements import apply_grades, list_graders, read_run_measurements
from mergemill.bench.results import load_rollouts
from mergemill.bench.sets import CHANGED, ChangedSubject, find_changed_subjects
from samplers.scaffolds.base import SampledScaffold, Scaffold
from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.bench import SCENARIO, find_newest_run, find_results
from taskdb.queries.task_filters import TaskFilters
from taskdb.records.bench import BenchRun, BenchSet, BenchSubject
from taskdb.records.rollouts import RolloutPlan
from taskdb.store import Store

if TYPE_CHECKING:
    from core.config import Settings
    from mergemill.agents.sampling.progress import SamplingProgress
    from mergemill.worlds.containers import OpenServer

STOP, SKIP = "stop", "skip"
PAIRED = "+"
"""Stands between the scaffold for tasks and that for scenarios of a set with both, in options and names of runs."""
SHOWN_SUBJECTS = 10


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """A set, and the scaffolds and model that are run on it."""

    bench_set: BenchSet
    scaffolds: tuple[str, ...]
    """Names, or pairs such as `react+tools`; those of tasks may be MODULE:CLASS."""
    model: str
    runs: int
    """Rollouts of each subject by each scaffold: k."""
    checkpoint: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    user: str = ""
    """User of dialogues: `scripted` or the name of a model; empty for none."""
    changed: str = STOP
    """`stop` or `skip`, for a set with subjects that have changed."""
    cutoff: str = ""
    """ISO date, as of `BenchRun.cutoff`."""

    @property
    def attempts(self) -> dict[str, Any]:
        """Fields of the requests of sampling."""
        return {
            "model": self.model,
            "attempts": self.runs,
            "checkpoint": self.checkpoint,
            "sampling": self.sampling,
        }


@dataclass(frozen=True, kw_only=True)
class SubjectGroup:
    """Subjects of a set that the same scaffolds are for."""

    subjects: tuple[BenchSubject, ...]
    scaffolds: tuple[SampledScaffold, ...]
    """A scaffold for each run, so that two runs may have the same one."""

    def list_distinct(self) -> list[SampledScaffold]:
        """Return the scaffolds, each once: rollouts that two runs share are sampled once."""
        return list({(scaffold.name, scaffold.version): scaffold for scaffold in self.scaffolds}.values())


def run_bench(
    store: Store,
    request: BenchRequest,
    settings: Settings,
    make_progress: Callable[[], SamplingProgress],
    open_server: OpenServer | None = None,
) -> tuple[list[BenchRun], int]:
    """Run the rollouts that a set lacks and store the records of its runs, one for each scaffold.

    Args:
        store: the database of the settings.
        request: the set, and the scaffolds and model.
        settings: database, store, engine, upstream; the limits of a rollout are those of the set.
        make_progress: function that returns the receiver of the events of a sampling.
        open_server: function that starts the server of worlds on this machine; None for a container.

    Returns:
        The newest records, also of rollouts of earlier invocations, and the exit code of sampling.

    Raises:
        InputError: subjects have changed since the set was frozen, and are not skipped, or none is left.
        UsageError: a scaffold is unknown, or is not for all kinds of subjects of the set, or no model is named.
        MachineError, Transient: as of sampling; results so far are in the records.
    """
    left_out = check_subjects(store, request.bench_set, skip=request.changed == SKIP)
    subjects = [subject for subject in request.bench_set.subjects if subject.name not in left_out]
    tasks, scenarios = _group_subjects(subjects, request)
    limits = request.bench_set.limits
    settings = replace_values(settings, {"rollout_turns": limits.turns, "rollout_seconds": limits.seconds})
    groups = [group for group in (tasks, scenarios) if group.scaffolds]
    try:
        code = sample_subjects(
            tasks, scenarios, request, settings, make_progress=make_progress, open_server=open_server
        )
    finally:
        artifacts = open_artifacts(settings.storage)
        made = [_make_run(store, request, groups, number, left_out) for number in range(len(request.scaffolds))]
        runs = [_keep_measurements(store, artifacts, run) for run in made]
        store.add(*runs)
    return runs, code


def sample_subjects(
    tasks: SubjectGroup,
    scenarios: SubjectGroup,
    request: BenchRequest,
    settings: Settings,
    *,
    make_progress: Callable[[], SamplingProgress],
    open_server: OpenServer | None = None,
) -> int:
    """Run the pending rollouts of the subjects; return the first exit code that is not 0. Errors as of `run_bench`."""
    codes = []
    # What tasks need takes long to load, and a set of scenarios alone needs none of it.
    if tasks.subjects:
        from mergemill.agents.sampling.run import run_sampling  # noqa: PLC0415

        filters = TaskFilters(ids=tuple(sorted(subject.id for subject in tasks.subjects)))
        scaffolds = tuple(scaffold for scaffold in tasks.list_distinct() if isinstance(scaffold, Scaffold))
        codes.append(
            run_sampling(
                # The set decides what is run: published reviews have no certificate.
                SampleRequest(filters=filters, scaffolds=scaffolds, uncertified=True, **request.attempts),
                settings,
                make_progress(),
            )
        )
    if scenarios.subjects:
        from mergemill.agents.sampling.worlds import run_world_sampling  # noqa: PLC0415

        world_request = WorldSampleRequest(
            scaffolds=tuple(scaffold for scaffold in scenarios.list_distinct() if isinstance(scaffold, WorldScaffold)),
            only=tuple(subject.id for subject in scenarios.subjects),
            **request.attempts,
        )
        codes.append(run_world_sampling(world_request, settings, make_progress(), open_server))
    return next((code for code in codes if code), 0)


def check_subjects(store: Store, bench_set: BenchSet, *, skip: bool) -> dict[str, str]:
    """Return the subjects that have changed since the set was frozen: name -> the difference.

    Raises:
        InputError: some have changed and are not to be skipped, or none is left.
    """
    changed = find_changed_subjects(store, bench_set)
    if changed and not skip:
        raise InputError(
            f"{CHANGED}: {describe_changed(changed)}", advice="freeze the set again, or --changed skip leaves them out"
        )
    if len(changed) == len(bench_set.subjects):
        raise InputError(f"{CHANGED}: all subjects of {bench_set.name}", advice="freeze the set again")
    return {subject.name: subject.problem for subject in changed}


def describe_changed(changed: Sequence[ChangedSubject]) -> str:
    """Return the list of changed subjects for people."""
    listed = "; ".join(f"{subject.name}: {subject.problem}" for subject in changed[:SHOWN_SUBJECTS])
    more = len(changed) - SHOWN_SUBJECTS
    return f"{listed}; and {more} more" if more > 0 else listed


def _group_subjects(subjects: Sequence[BenchSubject], request: BenchRequest) -> tuple[SubjectGroup, SubjectGroup]:
    """Return tasks and scenarios with the scaffolds of the request for them, at equal places.

    Raises:
        UsageError: as of `run_bench`.
    """
    tasks = tuple(subject for subject in subjects if subject.kind != SCENARIO)
    scenarios = tuple(subject for subject in subjects if subject.kind == SCENARIO)
    kinds = {subject.kind == SCENARIO for subject in request.bench_set.subjects}
    pairs = [split_scaffold(word, has_tasks=False in kinds, has_scenarios=True in kinds) for word in request.scaffolds]
    of_tasks = tuple(load_scaffold(word) for word, _ in pairs if word)
    of_scenarios = make_world_scaffolds([word for _, word in pairs if word], request.user)
    scaffolds: tuple[SampledScaffold, ...] = (*of_tasks, *of_scenarios)
    if not request.model and any(scaffold.uses_model for scaffold in scaffolds):
        raise UsageError("--model is missing", advice="name the model as the server at --upstream does")
    return SubjectGroup(subjects=tasks, scaffolds=of_tasks), SubjectGroup(subjects=scenarios, scaffolds=of_scenarios)


def split_scaffold(word: str, *, has_tasks: bool, has_scenarios: bool) -> tuple[str, str]:
    """Return the scaffold for tasks and that for scenarios of a word of `--scaffold`; empty where the set has none.

    `react+tools` names two, for a set with both; a word without a plus is for all subjects.

    Raises:
        UsageError: the set has no subject for one of two, or a scaffold for tasks alone is named for a set with both.
    """
    of_tasks, plus, of_scenarios = word.partition(PAIRED)
    if plus and not (has_tasks and has_scenarios):
        missing, other = ("tasks", of_scenarios) if has_scenarios else ("scenarios", of_tasks)
        raise UsageError(f"--scaffold {word}: the set has no {missing}", advice=f"--scaffold {other}")
    is_for_tasks = word in SCAFFOLDS or ":" in word
    if not plus and has_tasks and has_scenarios and is_for_tasks != (word in MODES):
        other = f"{word}{PAIRED}tools" if is_for_tasks else f"react{PAIRED}{word}"
        raise UsageError(
            f"--scaffold {word} is not for all subjects: the set has tasks and scenarios", advice=f"such as {other}"
        )
    return of_tasks if has_tasks else "", (of_scenarios if plus else word) if has_scenarios else ""


def _list_plans(group: SubjectGroup, scaffold: SampledScaffold, request: BenchRequest) -> list[RolloutPlan]:
    """Return the plans of all rollouts of a scaffold on some subjects."""
    attempts = AttemptRequest(scaffolds=(scaffold,), **request.attempts)
    return [
        make_plan(subject, scaffold, attempt, attempts)
        for subject in group.subjects
        for attempt in range(1, request.runs + 1)
    ]


def _make_run(
    store: Store, request: BenchRequest, groups: Sequence[SubjectGroup], number: int, left_out: Iterable[str]
) -> BenchRun:
    """Return the record of a scaffold, by its place in the request, with all results that the database has."""
    plans = [plan for group in groups for plan in _list_plans(group, group.scaffolds[number], request)]
    rollouts = find_results(store, [plan.key for plan in plans]).values()
    return BenchRun(
        parent=request.bench_set.id,
        name=request.bench_set.name,
        scaffold=PAIRED.join(dict.fromkeys(group.scaffolds[number].name for group in groups)),
        scaffold_version=" + ".join(sorted({plan.scaffold_version for plan in plans})),
        model=max(plan.model for plan in plans),
        checkpoint=max(plan.checkpoint for plan in plans),
        sampling=max((plan.sampling for plan in plans), key=len),
        runs=request.runs,
        left_out=tuple(sorted(left_out)),
        rollouts=tuple(sorted(rollout.id for rollout in rollouts)),
        cutoff=request.cutoff,
        graders=list_graders(rollouts),
        at=store.clock(),
    )


def _keep_measurements(store: Store, artifacts: Artifacts, run: BenchRun) -> BenchRun:
    """Return the record of a run with the grades and measurements that its newest stored record has."""
    earlier = find_newest_run(store, run)
    if earlier is None or earlier.result is None:
        return run
    grades = read_run_measurements(artifacts, earlier).grades
    graders = list_graders(apply_grades(load_rollouts(store, run), grades))
    return BenchRun.model_validate(run.model_dump() | {"result": earlier.result, "graders": graders})
