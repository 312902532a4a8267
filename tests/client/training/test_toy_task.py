"""The benchmark of objectives on a toy task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.objectives.tables import render_table
from benchmarks.objectives.toy import OBJECTIVES, ToyResult, ToyTask, make_policy, measure, run_task

SMALL = ToyTask(groups=8, rollouts=8, first_probability=0.05, most_batches=25, luck=0.0)


def test_the_decisive_token_begins_at_one_in_a_thousand() -> None:
    probabilities = make_policy(ToyTask()).softmax(-1)
    assert probabilities[0, 0].item() == pytest.approx(0.001)
    assert probabilities[0, 1:].tolist() == pytest.approx([0.999 / 31] * 31)
    assert probabilities[1].tolist() == pytest.approx([1 / 32] * 32)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_policy_learns_the_token_or_the_run_says_so(objective: str) -> None:
    learned = run_task(SMALL, objective, 0.1, seed=0)
    assert learned is not None
    assert learned > 1
    assert run_task(SMALL, objective, 0.1, seed=0) == learned
    assert run_task(replace(SMALL, most_batches=5), objective, 0.0, seed=0) is None


def test_luck_alone_teaches_nothing() -> None:
    lucky = ToyTask(groups=8, rollouts=8, most_batches=5, luck=1.0)
    assert run_task(lucky, "PPO 0.2", 1.0, seed=0) is None


def test_the_objectives_are_measured_at_the_same_rates_and_seeds() -> None:
    results = list(measure(replace(SMALL, most_batches=2), [0.1, 0.0], 2))
    assert [(result.learning_rate, result.objective) for result in results] == [
        (r, o) for r in (0.1, 0.0) for o in OBJECTIVES
    ]
    assert all(len(result.batches) == 2 for result in results)


def test_the_table_shows_median_range_and_failures() -> None:
    batches = dict.fromkeys(OBJECTIVES, (2, 9, 4)) | {"CISPO, at most 5": (2, None, 4, None)}
    results = [
        ToyResult(luck=0.1, objective=name, learning_rate=0.03, batches=counts) for name, counts in batches.items()
    ]
    row = render_table(ToyTask(), results).splitlines()[2]
    assert row == "| 0.1 | 0.03 | >300 (2->300), 2 of 4 not | 4 (2-9) | 4 (2-9) |"
