"""Results of a run: the rollouts of each subject, its family, and facts of its origin."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from core.errors import InputError
from mergemill.bench.measurements import apply_grades, read_run_measurements
from samplers.gateway.translation import to_chat_answer
from samplers.trajectories.reading import load_exchanges
from taskdb.artifacts import Artifacts
from taskdb.queries.bench import SCENARIO
from taskdb.queries.families import get_family_keys, unite_families
from taskdb.queries.histograms import EDGES
from taskdb.queries.trajectories import load_main_metrics
from taskdb.records import Score, Task
from taskdb.records.bench import BenchRun, BenchSet, BenchSubject
from taskdb.records.oracles import ReviewOracle
from taskdb.records.rollouts import Rollout
from taskdb.records.worlds import Scenario
from taskdb.schema.measures import get_material
from taskdb.store import Store

SIZE = "material_bytes"
ORIGINS = ("language", "kind", "source", "repo", "form", SIZE)
"""Facts of subjects by which results are grouped."""


@dataclass(frozen=True, kw_only=True)
class ReportedSubject:
    """A subject with its family, and facts of its origin by name.

    A scenario has a world for a repository; only reviews have a form, `clean` for controls, and a size of the material,
    a range of bytes.
    """

    subject: BenchSubject
    family: str
    origin: Mapping[str, str]
    created_at: str
    """ISO date of the change; empty for scenarios."""
    task: Task | None = None
    """Its record; None for scenarios."""


@dataclass(frozen=True, kw_only=True)
class RunResults:
    """Rollouts with a result of a run, by the name of their subject and in the order of their attempts."""

    run: BenchRun
    runs: int
    """Rollouts of each subject that count: 1 where all are identical."""
    rollouts: Mapping[str, Sequence[Rollout]]
    identical: bool = False
    """Whether all runs of each subject are equal, token for token."""
    measures: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    """Id of a rollout -> measures of its main conversations (`Trajectory.metrics`), for those that have any."""
    first_scores: Mapping[str, Score] = field(default_factory=dict)
    """Id of a rollout that was graded again -> the score that it was stored with; the rollout here has the newest."""

    @cached_property
    def _scored(self) -> Mapping[str, Sequence[Rollout]]:
        return {
            name: [rollout for rollout in rollouts if rollout.value is not None]
            for name, rollouts in self.rollouts.items()
        }

    def list_scored(self, name: str) -> Sequence[Rollout]:
        """Return the rollouts of a subject that have a value."""
        return self._scored.get(name, ())


def load_subjects(store: Store, bench_set: BenchSet) -> dict[str, ReportedSubject]:
    """Return the subjects of a set by name.

    Tasks that share a change are a family, through others where they do, as are the scenarios of a world. A family has
    the name of its first subject.
    """
    tasks = store.get_many(Task, [subject.id for subject in bench_set.subjects if subject.kind != SCENARIO])
    scenarios = store.get_many(Scenario, [subject.id for subject in bench_set.subjects if subject.kind == SCENARIO])
    families = unite_families(
        {subject.name: get_family_keys(subject.id, tasks, scenarios) for subject in bench_set.subjects}
    )
    return {
        subject.name: ReportedSubject(
            subject=subject,
            family=families[subject.name],
            origin=_describe_origin(subject, tasks.get(subject.id), scenarios.get(subject.id)),
            created_at=tasks[subject.id].created_at if subject.id in tasks else "",
            task=tasks.get(subject.id),
        )
        for subject in bench_set.subjects
    }


def _describe_origin(subject: BenchSubject, task: Task | None, scenario: Scenario | None) -> dict[str, str]:
    if task is not None:
        form = task.oracle.target if isinstance(task.oracle, ReviewOracle) else ""
        facts = {"language": task.language, "kind": subject.kind, "source": task.source, "repo": task.repo}
        return facts | {"form": form, SIZE: describe_size(get_material(task, "n_bytes"))}
    world = scenario.world if scenario else ""
    return {"language": "", "kind": subject.kind, "source": "", "repo": world, "form": "", SIZE: ""}


def describe_size(size: int | None) -> str:
    """Return the bin of `tasks stats` that a number of bytes is in, such as `5000 to 9999`; empty for None."""
    if size is None:
        return ""
    edges = [int(edge) for edge in EDGES[SIZE]]
    place = bisect_right(edges, size) - 1
    return f"{edges[place]} to {edges[place + 1] - 1}" if place + 1 < len(edges) else f"{edges[place]} or more"


def sort_values(values: Collection[str], fact: str) -> list[str]:
    """Return the values of a fact in the order of a report: ranges by their numbers, others by name."""
    return sorted(values, key=lambda value: int(value.split()[0]) if value else -1) if fact == SIZE else sorted(values)


def load_results(store: Store, artifacts: Artifacts, run: BenchRun) -> RunResults:
    """Return the results of a run; of runs that are identical the first alone.

    Raises:
        InputError: a rollout is missing.
    """
    records = load_rollouts(store, run)
    grades = read_run_measurements(artifacts, run).grades
    by_name: dict[str, list[Rollout]] = {}
    for rollout in apply_grades(records, grades):
        by_name.setdefault(rollout.name, []).append(rollout)
    results = RunResults(
        run=run,
        runs=run.runs,
        rollouts=by_name,
        measures=load_main_metrics(store, run.rollouts),
        first_scores={rollout.id: rollout.score for rollout in records if rollout.id in grades and rollout.score},
    )
    if run.runs == 1 or not are_identical(artifacts, by_name):
        return results
    first = {name: rollouts[:1] for name, rollouts in by_name.items()}
    return replace(results, runs=1, rollouts=first, identical=True)


def load_rollouts(store: Store, run: BenchRun) -> list[Rollout]:
    """Return the rollouts of a run as they were stored, by subject and attempt.

    Raises:
        InputError: a rollout is missing.
    """
    records = store.get_many(Rollout, run.rollouts)
    if missing := [key for key in run.rollouts if key not in records]:
        raise InputError(f"{len(missing)} rollouts of {run.name} are not in the database", advice="run it again")
    return sorted(records.values(), key=lambda rollout: (rollout.name, rollout.attempt, rollout.id))


def are_identical(artifacts: Artifacts, rollouts: Mapping[str, Sequence[Rollout]]) -> bool:
    """Return whether all runs of each subject are equal: submissions, and all answers of the model token for token.

    False where no subject was run more than once.
    """
    several = [group for group in rollouts.values() if len(group) > 1]
    # Figures of the records are compared first: the logs of runs that differ need not be read.
    if not several or any(len({_describe_effort(rollout) for rollout in group}) > 1 for group in several):
        return False
    return all(len({_join_answers(artifacts, rollout) for rollout in group}) == 1 for group in several)


def _describe_effort(rollout: Rollout) -> tuple[Any, ...]:
    return (rollout.submission, rollout.value, rollout.requests, rollout.prompt_tokens, rollout.completion_tokens)


def _join_answers(artifacts: Artifacts, rollout: Rollout) -> str:
    """Return the texts and calls that the model wrote in a rollout."""
    answers = []
    for exchange in load_exchanges(rollout, artifacts):
        answer = exchange.response and to_chat_answer(exchange.response, exchange.upstream_dialect)
        message = answer or {}
        calls = [call.get("function") for call in message.get("tool_calls") or ()]
        answers.append([message.get("content"), message.get("reasoning_content"), calls])
    return json.dumps(answers, sort_keys=True)
