"""Scores of submissions, and the rewards that trainers make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mergemill_client.errors import ClientError


@dataclass(frozen=True)
class Score:
    """Result of grading one submission. `value` is None where there is none: unscored is not 0."""

    task: str
    value: float | None
    """0 to 1."""
    resolved: bool = False
    """Whether the submission solves the task."""
    f2p_rate: float = 0.0
    """Share of the FAIL_TO_PASS tests that pass."""
    p2p_rate: float = 0.0
    """Share of the PASS_TO_PASS tests that pass."""
    tampering: tuple[str, ...] = ()
    """Attempts to change the outcome without solving the task."""
    explanation: str = ""
    infrastructure_error: str | None = None
    """Why the submission is unscored: engine, disk or network failed, or no server answered."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Components of the value by name, for kinds whose value is not 0 or 1."""
    verdicts: Mapping[str, str] = field(default_factory=dict)
    """Constraint of an instruction task -> state of its check, such as `passed`."""
    evaluations: int = 0
    control_bound: float | None = None
    worst_block_bound: float | None = None
    grader: str = ""
    """Version of the code that graded."""
    cached: bool = False
    """Whether an earlier grading of an equal submission gave the score; known in batches only."""
    error: str | None = None
    """Why the submission cannot be graded: no such task, or another kind of task."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Score:
        """Return the score of a server's answer; fields of later versions are left out."""
        known = {attribute.name for attribute in fields(cls)}
        values = {name: value for name, value in data.items() if name in known}
        return cls(**{**values, "tampering": tuple(values.get("tampering", ()))})

    @property
    def is_scored(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


def make_unscored(task: str, *, infrastructure_error: str | None = None, error: str | None = None) -> Score:
    """Return the score of a submission without a value, and why it has none."""
    return Score(task=task, value=None, infrastructure_error=infrastructure_error, error=error)


GRADED, BINARY, PARTIAL = "graded", "binary", "partial"
SHAPES = (GRADED, BINARY, PARTIAL)


def compute_reward(score: Score, shape: str = GRADED) -> float | None:
    """Return the reward of a score, 0 to 1; None for an unscored submission, which a trainer leaves out.

    Args:
        score: result of a grading.
        shape: `graded`, the kind's own value: 0 or 1 by tests, between them for reviews, test-writing and
            performance. `binary`: 1 for a solved task, else 0. `partial`: by tests, the share of the FAIL_TO_PASS tests
            that pass, if all PASS_TO_PASS tests do and nothing was tampered with; elsewhere as `graded`.

    Raises:
        ClientError: there is no such shape.
    """
    if shape not in SHAPES:
        raise ClientError(f"there is no reward {shape!r}; rewards: {', '.join(SHAPES)}")
    if score.value is None:
        return None
    if shape == BINARY:
        return 1.0 if score.resolved else 0.0
    if shape == GRADED or score.parts:
        return float(score.value)
    return _compute_partial(score)


def _compute_partial(score: Score) -> float:
    if score.value == 1 or score.tampering or score.p2p_rate < 1 or score.f2p_rate >= 1:
        return float(score.value or 0)  # all tests pass and the value is 0: a control or canary exposed the submission
    return score.f2p_rate
