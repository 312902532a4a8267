"""Checks that runs can be compared: each subject has the same grader and the same judge in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from core.errors import InputError
from mergemill.bench.metrics import Metric
from mergemill.bench.results import ReportedSubject, RunResults
from mergemill.execution.grader_version import compute_grader_version, compute_scenario_grader_version
from taskdb.queries.bench import name_run
from taskdb.records.bench import BenchRun
from taskdb.records.rollouts import Rollout


@dataclass(frozen=True, kw_only=True)
class RunGrading:
    """Graders that scored the rollouts of a run, and judges that decided the columns of its metrics."""

    run: BenchRun
    graders: Mapping[str, frozenset[str]]
    """Subject -> versions of the grader that scored it; empty where none was stored."""
    judges: Mapping[str, Mapping[str, frozenset[str]]]
    """Name of a metric -> subject -> judges that decided its columns; empty for none."""


def collect_grading(
    results: RunResults,
    rollouts: Sequence[Rollout],
    metrics: Sequence[Metric],
) -> RunGrading:
    """Return the graders and judges of the scored rollouts of a run, which the metrics have begun."""
    return RunGrading(
        run=results.run,
        graders={
            name: frozenset(rollout.score.grader for rollout in group if rollout.score)
            for name, group in results.rollouts.items()
        },
        judges={metric.name: _collect_judges(metric, rollouts) for metric in metrics if metric.name},
    )


def is_mixed(rollouts: Iterable[Rollout], subjects: Mapping[str, ReportedSubject]) -> bool:
    """Return whether several versions of the grader scored rollouts; tasks and scenarios have versions of their own."""
    versions: dict[bool, set[str]] = {}
    for rollout in rollouts:
        if rollout.score:
            versions.setdefault(subjects[rollout.name].task is None, set()).add(rollout.score.grader)
    return any(len(group) > 1 for group in versions.values())


def _collect_judges(metric: Metric, rollouts: Sequence[Rollout]) -> dict[str, frozenset[str]]:
    """Return subject -> judges that decided its columns, for subjects with a rollout that a judge could decide."""
    judges: dict[str, set[str]] = {}
    for rollout in rollouts:
        judge = metric.name_judge(rollout)
        if judge is not None:
            judges.setdefault(rollout.name, set()).add(judge)
    return {name: frozenset(names) for name, names in judges.items()}


def check_graders(gradings: Sequence[RunGrading]) -> None:
    """Check that each subject was graded by a single version of the grader in the runs that are compared.

    An unknown version is one, too: nothing shows that it is the known one.

    Raises:
        InputError: a subject was graded by several.
    """
    if conflict := _find_conflict([grading.graders for grading in gradings]):
        name, versions = conflict
        listed = ", ".join(version or "an unknown version" for version in versions)
        raise InputError(f"changed-grader: {name} was graded by {listed}", advice=_advise_grading(gradings))


def _advise_grading(gradings: Sequence[RunGrading]) -> str:
    """Return the command that grades the runs again that were not graded by the present version."""
    current = {compute_grader_version(), compute_scenario_grader_version()}
    runs = [
        name_run(grading.run)
        for grading in gradings
        if not current.issuperset(chain.from_iterable(grading.graders.values()))
    ]
    return f"mergemill bench regrade {' '.join(runs)}"


def check_judges(gradings: Sequence[RunGrading]) -> None:
    """Check that for each metric and subject a single judge, or none, decided in the runs that are compared.

    Raises:
        InputError: columns of a subject were decided by several judges, or by one in a run and by none in another.
    """
    for metric in gradings[0].judges:
        if conflict := _find_conflict([grading.judges[metric] for grading in gradings]):
            name, judges = conflict
            listed = ", ".join(judge or "no judge" for judge in judges)
            runs = " ".join(f"--run {name_run(grading.run)}" for grading in gradings)
            raise InputError(
                f"changed-judge: {name} was judged by {listed}",
                advice=f"mergemill bench score {gradings[0].run.name} {runs} --metric {metric} with one judge",
            )


def _find_conflict(words: Sequence[Mapping[str, frozenset[str]]]) -> tuple[str, list[str]] | None:
    """Return the first subject for which the runs have several words, and these; None where there is none."""
    joined: dict[str, set[str]] = {}
    for own in words:
        for name, own_words in own.items():
            joined.setdefault(name, set()).update(own_words)
    return next(((name, sorted(joined[name])) for name in sorted(joined) if len(joined[name]) > 1), None)
