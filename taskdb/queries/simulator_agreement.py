"""How true simulators are, from the measurements in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from taskdb.records.difficulty import compute_wilson_interval
from taskdb.records.rollouts import Rollout
from taskdb.records.simulator_measurements import PredictionCounts, SimulatorMeasurement
from taskdb.schema.stored_records import unpack_bodies
from taskdb.store import Store


@dataclass(frozen=True, kw_only=True)
class ErrorShare:
    """A share of trials with Wilson's 95 % interval; `share` is None without a trial."""

    number: int
    trials: int

    @property
    def share(self) -> float | None:
        """Number of trials, 0..1."""
        return self.number / self.trials if self.trials else None

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound, 0..1."""
        return compute_wilson_interval(self.number, self.trials)

    def to_json(self) -> dict[str, float | int | None]:
        """Return number, trials, share, low and high."""
        low, high = self.interval
        share = None if self.share is None else round(self.share, 6)
        return {"n": self.number, "of": self.trials, "share": share, "low": round(low, 6), "high": round(high, 6)}


@dataclass(frozen=True, kw_only=True)
class SimulatorAgreement:
    """How true a simulator is. `tasks`: those of which every submission is predicted rightly.

    `false_pass`: of the submissions that really fail, those that are paid. `false_fail`: of those that really resolve
    the task, those that are not. `test_...`: the same of single tests. `brier`: average squared difference between the
    share of samples that resolve a task and the real result, 0 is best; None without an answer.
    """

    submissions: ErrorShare
    tasks: ErrorShare
    false_pass: ErrorShare
    false_fail: ErrorShare
    tests: ErrorShare
    test_false_pass: ErrorShare
    test_false_fail: ErrorShare
    brier: float | None
    unanswered: int
    """Submissions for which the simulator gave no usable answer; they are in no share."""
    unknown_tests: int


def compute_agreement(measured: Sequence[SimulatorMeasurement]) -> SimulatorAgreement:
    """Return the agreement of the measurements of a simulator."""
    answered = [measurement for measurement in measured if measurement.first is not None]
    right = [measurement.first == measurement.resolved for measurement in answered]
    failing, passing = (
        [measurement for measurement in answered if measurement.resolved is resolved] for resolved in (False, True)
    )
    by_task: dict[str, bool] = {}
    for measurement, is_right in zip(answered, right, strict=True):
        by_task[measurement.parent] = by_task.get(measurement.parent, True) and is_right
    tests = [measurement.tests for measurement in answered]
    both_pass, false_pass, false_fail, both_fail, unknown = (
        sum(getattr(counts, name) for counts in tests) for name in PredictionCounts.model_fields
    )
    squares = [
        (measurement.probability - measurement.resolved) ** 2
        for measurement in measured
        if measurement.probability is not None
    ]
    return SimulatorAgreement(
        submissions=ErrorShare(number=sum(right), trials=len(right)),
        tasks=ErrorShare(number=sum(by_task.values()), trials=len(by_task)),
        false_pass=ErrorShare(number=sum(bool(measurement.first) for measurement in failing), trials=len(failing)),
        false_fail=ErrorShare(number=sum(not measurement.first for measurement in passing), trials=len(passing)),
        tests=ErrorShare(number=both_pass + both_fail, trials=both_pass + false_pass + false_fail + both_fail),
        test_false_pass=ErrorShare(number=false_pass, trials=false_pass + both_fail),
        test_false_fail=ErrorShare(number=false_fail, trials=false_fail + both_pass),
        brier=sum(squares) / len(squares) if squares else None,
        unanswered=len(measured) - len(answered),
        unknown_tests=unknown,
    )


_OF_SIMULATOR = text("SELECT body FROM simulator_measurement WHERE simulator = :simulator ORDER BY seq")


def load_measurements(store: Store, simulator: str) -> list[SimulatorMeasurement]:
    """Return the measurements of a simulator; of equal ones with other versions or numbers of samples the newest."""
    with store.read_transaction() as connection:
        bodies = connection.execute(_OF_SIMULATOR, {"simulator": simulator}).scalars().all()
        measurements = [SimulatorMeasurement.model_validate(body) for body in unpack_bodies(connection, bodies)]
    return list({(measurement.parent, measurement.submission): measurement for measurement in measurements}.values())


def list_simulators(store: Store) -> list[str]:
    """Return the names of the simulators that were measured."""
    query = text("SELECT DISTINCT simulator FROM simulator_measurement ORDER BY simulator")
    with store.read_transaction() as connection:
        return list(connection.execute(query).scalars())


def load_valued_rollouts(store: Store, task: str, limit: int) -> list[Rollout]:
    """Return the newest rollouts of a task (its id) that have a value, a rollout for each submission."""
    query = text("SELECT id FROM rollout WHERE parent = :task AND value IS NOT NULL ORDER BY seq DESC")
    with store.read_transaction() as connection:
        keys = list(connection.execute(query, {"task": task}).scalars())
    rollouts = store.get_many(Rollout, keys)
    by_submission = {rollouts[key].submission: rollouts[key] for key in reversed(keys) if rollouts[key].submission}
    return list(by_submission.values())[-limit:] if limit else []
