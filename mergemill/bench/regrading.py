"""Grade the stored submissions of a run again, by the present version of the code that grades: no agent acts.

The rollouts keep the scores that they were stored with. New ones are kept with the record of the run, as its
measurements are, each with the version of the grader that gave it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from core.errors import InputError, MergemillError, Transient
from mergemill.agents.sampling.scenario_environment import SEED, SampledScenario, make_score
from mergemill.agents.sampling.scenario_sampler import load_scenarios
from mergemill.bench.measurements import (
    Measurements,
    apply_grades,
    list_graders,
    read_run_measurements,
    write_measurements,
)
from mergemill.bench.results import load_rollouts
from mergemill.bench.scoring import grade_predictions, make_empty_score
from mergemill.execution.grader_version import compute_grader_version, compute_scenario_grader_version
from mergemill.execution.services import make_services
from mergemill.grading.grading import Submission, TaskGrader
from mergemill.grading.predictions import Prediction
from mergemill.grading.progress import ScoreProgress
from mergemill.worlds.containers import OpenServer, open_world_container
from taskdb.artifacts import Artifacts, require_writable_store
from taskdb.records import Score, Task
from taskdb.records.bench import PREDICTIONS, BenchRun
from taskdb.records.rollouts import Rollout
from taskdb.records.worlds import Scenario
from worlds.rewards import Scorer
from worlds.scenario_run import ScenarioRun
from worlds.server.host import WorldHost


@dataclass(kw_only=True)
class RegradedRun:
    """A run whose rollouts were graded again, as far as their scores were of other versions of the grader."""

    run: BenchRun
    """Its newest record."""
    n_scored: int
    """Rollouts with a score."""
    n_regraded: int = 0
    """Rollouts that were graded now."""
    n_changed: int = 0
    """Rollouts that have another value since."""
    failures: Counter[int] = field(default_factory=Counter)
    """Exit code -> rollouts that could not be graded, and keep their scores."""

    def raise_failures(self) -> None:
        """Raise the failure of highest priority: 75 (run again), 1 (report a bug), 3 (correct an input)."""
        if number := self.failures[Transient.exit_code]:
            raise Transient(f"{number} rollouts not graded again", advice="run the same command again")
        if number := self.failures[MergemillError.exit_code]:
            raise MergemillError(f"{number} gradings failed through a bug")
        if number := self.failures.total():
            raise InputError(f"{number} rollouts could not be graded again, and keep their scores")


@dataclass(frozen=True, kw_only=True)
class RunRegrader:
    """Grades runs again."""

    grader: TaskGrader
    """Grader on the database of the runs."""
    make_progress: Callable[[int], ScoreProgress]
    """Returns the progress of a number of gradings."""
    notify: Callable[[str], None] = lambda _: None
    """Receives messages."""
    open_server: OpenServer | None = None
    """Starts the server of worlds on this machine; None for a container."""

    def regrade(self, run: BenchRun) -> RegradedRun:
        """Grade the submissions of a run whose scores are not of the present version of the grader; store the run.

        So are those with void items, where there is a model that may decide them.

        A submission to a task that this version has graded already, of any run, is not graded again.

        Raises:
            InputError: a rollout, its subject or its submission is not in the database.
            MachineError: no engine answers.
            Transient: engine, disk or network failed.
        """
        store = self.grader.store
        own = read_run_measurements(self._artifacts, run)
        stored = [rollout for rollout in load_rollouts(store, run) if rollout.score is not None]
        rollouts = apply_grades(stored, own.grades)
        result = RegradedRun(run=run, n_scored=len(rollouts))
        tasks = store.get_many(Task, [rollout.parent for rollout in rollouts])
        of_tasks = [rollout for rollout in rollouts if rollout.parent in tasks]
        of_scenarios = [rollout for rollout in rollouts if rollout.parent not in tasks]
        scores: dict[str, Score] = {}
        undecided = [rollout for rollout in of_tasks if rollout.score and self.grader.may_decide(rollout.score)]
        if stale := [*_select_stale(of_tasks, compute_grader_version()), *undecided]:
            scores |= self._grade_tasks(tasks, stale, result)
        if stale := _select_stale(of_scenarios, compute_scenario_grader_version()):
            scores |= self._grade_scenarios(stale, result)
        result.n_regraded = len(scores)
        result.n_changed = sum(
            rollout.value != scores[rollout.id].value for rollout in rollouts if rollout.id in scores
        )
        if scores:
            own.grades |= scores
            result.run = self._store(run, own, stored)
        return result

    @property
    def _artifacts(self) -> Artifacts:
        return require_writable_store(self.grader.settings.storage)

    def _store(self, run: BenchRun, own: Measurements, stored: Sequence[Rollout]) -> BenchRun:
        at = self.grader.store.clock()
        result = write_measurements(self._artifacts, own, at)
        graders = list_graders(apply_grades(stored, own.grades))
        record = BenchRun.model_validate(run.model_dump() | {"result": result, "graders": graders, "at": at})
        self.grader.store.add(record)
        return record

    def _grade_tasks(
        self, tasks: Mapping[str, Task], rollouts: Sequence[Rollout], result: RegradedRun
    ) -> dict[str, Score]:
        """Return rollout -> score of its submission, for those that could be graded; count the others."""
        rows, scores = dict[str, Prediction](), dict[str, Score]()
        for rollout in rollouts:
            task, content = tasks[rollout.parent], self._load_submission(rollout)
            if rollout.scaffold == PREDICTIONS and not content:
                scores[rollout.id] = make_empty_score(task)
                continue
            rows[rollout.id] = Prediction(
                place=f"attempt {rollout.attempt}",
                instance=rollout.name,
                model=rollout.model,
                submission=Submission(task=task, content=content),
            )
        graded = grade_predictions(self.grader, list(rows.values()), result.failures, self.make_progress, self.notify)
        return scores | {key: graded[row.submission.key] for key, row in rows.items() if row.submission.key in graded}

    def _grade_scenarios(self, rollouts: Sequence[Rollout], result: RegradedRun) -> dict[str, Score]:
        """Return rollout -> score of the state that its calls lead to, for those that lead to the state of then."""
        store, settings = self.grader.store, self.grader.settings
        keys = {rollout.parent for rollout in rollouts}
        records = store.get_many(Scenario, sorted(keys))
        if missing := keys - set(records):
            raise InputError(f"{len(missing)} subjects of {result.run.name} are not in the database")
        scenarios = load_scenarios(store, self._artifacts, list(records.values()))
        services = make_services(settings, engine=self.open_server is None)
        worlds = len({record.parent for record in records.values()})
        start = self.open_server or partial(open_world_container, services, worlds=worlds)
        scores = {}
        with services.images.hold(), WorldHost(start) as host:
            for rollout in rollouts:
                calls = json.loads(self._load_submission(rollout) or b"[]")
                try:
                    scores[rollout.id] = replay_calls(host, scenarios[rollout.parent], rollout, calls)
                except InputError as error:
                    self.notify(f"attempt {rollout.attempt}, {rollout.name}: {error.format_line()}")
                    result.failures[InputError.exit_code] += 1
        return scores

    def _load_submission(self, rollout: Rollout) -> bytes:
        return self._artifacts.get(rollout.submission) if rollout.submission else b""


def _select_stale(rollouts: Sequence[Rollout], version: str) -> list[Rollout]:
    """Return the rollouts whose score is of another version of the grader."""
    return [rollout for rollout in rollouts if rollout.score and rollout.score.grader != version]


def replay_calls(
    host: WorldHost, scenario: SampledScenario, rollout: Rollout, calls: Sequence[Mapping[str, object]]
) -> Score:
    """Return the score of the state that the calls of a rollout lead to, in a new episode.

    Raises:
        InputError: it is not the state that they led to then, or the world cannot be loaded.
        Transient: there is no container.
    """
    server, served = host.find(scenario.world)
    # One action more than there are calls: the episode must be open when its state is looked at.
    limit = len(calls) + 1
    with ScenarioRun(server, served, scenario.definition, Scorer(), seed=SEED, max_steps=limit) as run:
        for call in calls:
            if run.has_ended:
                break
            run.step(dict(call))
        if rollout.states and run.digest != rollout.states[-1].tree:
            raise InputError("its calls lead to another state than they did", advice="run it again")
        return make_score(run.evaluate(), scenario.definition.name)
