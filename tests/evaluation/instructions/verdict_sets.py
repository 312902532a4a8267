"""Twenty sets of verdicts made by hand, with the figures that were computed for them on paper (verdict_sets.tsv)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluation.instructions.checklist import ConstraintVerdict, VerdictState
from tests.evaluation.instructions.test_checklist import bind

NONE = "-"
"""A figure that a set has not."""


@dataclass(frozen=True)
class VerdictSet:
    """Verdicts of a rollout, and part of the reward -> its value; None for a part that is not there."""

    name: str
    verdicts: tuple[ConstraintVerdict, ...]
    expected: Mapping[str, float | None]


def load_sets() -> list[VerdictSet]:
    """Return the sets. A verdict is SOURCE@TURN=STATE."""
    with Path(__file__).with_suffix(".tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        VerdictSet(
            name=row.pop("set"),
            verdicts=tuple(_read_verdict(at, word) for at, word in enumerate(row.pop("verdicts").split())),
            expected={name: None if value == NONE else float(value) for name, value in row.items()},
        )
        for row in rows
    ]


def _read_verdict(number: int, word: str) -> ConstraintVerdict:
    place, _, state = word.partition("=")
    source, _, turn = place.partition("@")
    winner = "c-none" if state == VerdictState.OVERRIDDEN else ""
    constraint = bind(f"c{number}", "read-before-edit", turn=int(turn), source=source, overridden_by=winner)
    return ConstraintVerdict(constraint=constraint, state=VerdictState(state))
