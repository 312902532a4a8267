"""The simulation of orders in which a trainer takes rollouts."""

from __future__ import annotations

import math

import pytest

from benchmarks.windowed_queue import (
    GREEDY,
    SLOW_LATENCY,
    QueueCase,
    count_overtaken,
    draw_latencies,
    make_cases,
    render_table,
    simulate,
)

LATENCIES = draw_latencies(2000, 0)


def make_case(window: int, *, capacity: int = 100, limit: float = math.inf) -> QueueCase:
    return QueueCase(name="", capacity=capacity, window=window, running=100, limit=limit)


def test_one_rollout_in_a_hundred_is_slow() -> None:
    drawn = draw_latencies(20_000, 1)
    others = [latency for latency in drawn if latency != SLOW_LATENCY]
    assert 1 - len(others) / len(drawn) == pytest.approx(0.01, abs=0.003)
    assert sum(others) / len(others) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("window", [1, 2, 30, 100])
def test_a_slow_rollout_is_overtaken_by_at_most_w_minus_1(window: int) -> None:
    assert window - 2 <= simulate(LATENCIES, make_case(window)).overtaken <= window - 1


def test_greedy_order_prefers_short_rollouts_without_a_bound() -> None:
    greedy, strict = simulate(LATENCIES, make_case(GREEDY)), simulate(LATENCIES, make_case(1))
    assert greedy.overtaken > 500
    assert greedy.early_latency < strict.early_latency / 2
    assert greedy.early_slow < strict.early_slow
    assert greedy.rate > strict.rate


def test_rollouts_above_the_limit_are_dropped_and_waited_for_no_longer() -> None:
    run, patient = simulate(LATENCIES, make_case(30, limit=10)), simulate(LATENCIES, make_case(30))
    assert run.dropped == pytest.approx(sum(latency > 10 for latency in LATENCIES), abs=5)
    assert patient.dropped == 0
    assert run.rate > 2 * patient.rate


def test_the_first_rollouts_of_strict_order_are_those_that_began_first() -> None:
    run = simulate(LATENCIES, make_case(1))
    assert run.early_latency == pytest.approx(sum(LATENCIES[:100]) / 100 / (sum(LATENCIES) / len(LATENCIES)))
    assert run.early_slow == LATENCIES[:100].count(SLOW_LATENCY) / 100


def test_positions_before_a_smaller_one_are_counted() -> None:
    assert [count_overtaken(order) for order in ([0, 1, 2], [2, 1, 0], [1, 3, 2, 0, 4], [])] == [0, 2, 3, 0]


def test_the_table_has_a_row_for_each_case() -> None:
    cases = make_cases(20)
    lines = render_table(LATENCIES[:200], cases).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {case.name}" for case in cases]
    assert (cases[1].window, cases[4].capacity, cases[4].window) == (6, 80, 24)
