"""How true a simulator is: the outcomes that it predicts for submissions to tasks that really were graded, too.

A record for each submission. Shares and intervals are computed from them (`taskdb.queries.simulator_agreement`), so a
simulator
can be measured on more tasks later.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from taskdb.records.base import MEASURED, Part, Record


class SubmissionKind(StrEnum):
    """Where a measured submission comes from."""

    GOLD = "gold"
    NONE = "none"
    """The empty patch."""
    HUNK = "hunk"
    """The gold patch without any of its hunks."""
    BUG = "bug"
    """The gold patch with a bug on any of its lines."""
    ROLLOUT = "rollout"
    """Submission that an agent handed in."""


class PredictionCounts(Part):
    """Tests of a task by real and simulated outcome. `unknown`: those for which either of the two is not known."""

    both_pass: int = 0
    false_pass: int = 0
    """The simulator predicts that they pass, and they fail."""
    false_fail: int = 0
    both_fail: int = 0
    unknown: int = 0


class SimulatorMeasurement(Record):
    """A submission that was graded really and by a simulator."""

    parent: str
    """Id of the Task."""
    name: str
    """Name of the task."""
    environment: Literal["simulated"] = "simulated"
    simulator: str
    """Name of the model."""
    prompt: str
    """Version of the simulator's prompt."""
    kind: SubmissionKind
    submission: str
    """Sha256 of the submission."""
    samples: int
    """Simulated gradings."""
    grader: str
    """Version of the grader that gave the real score."""
    detail: Annotated[str, MEASURED] = ""
    """Place of the omitted hunk or bug, or id of the rollout."""
    resolved: Annotated[bool, MEASURED]
    """Whether the submission really resolves the task."""
    predicted: Annotated[tuple[bool | None, ...], MEASURED]
    """Whether it does so by each simulated grading; null where the simulator gave no usable answer."""
    tests: Annotated[PredictionCounts, MEASURED] = PredictionCounts()
    """Of the first simulated grading."""
    at: Annotated[str, MEASURED] = ""
    """Time of the measurement (ISO 8601, UTC)."""

    @property
    def first(self) -> bool | None:
        """The first simulated grading, which is the outcome that a simulated reward is."""
        return self.predicted[0] if self.predicted else None

    @property
    def probability(self) -> float | None:
        """Share of the simulated gradings that resolve the task, None without any."""
        answered = [prediction for prediction in self.predicted if prediction is not None]
        return sum(answered) / len(answered) if answered else None
