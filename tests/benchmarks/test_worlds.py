"""The benchmark of worlds: its table and its goals, without a container."""

from __future__ import annotations

from benchmarks.worlds import CHECKS, RESET, STEP, Samples, list_missed_goals, render_table


def make_samples(reset: float, step: float, reset_of_64: float = 0.05) -> Samples:
    return {
        (RESET, 1): [reset, 0.001, reset],
        (STEP, 1): [step] * 3,
        (CHECKS, 64): [0.5, 0.5],
        (RESET, 64): [reset_of_64] * 2,
    }


def test_the_table_has_a_row_for_each_kind_of_sample() -> None:
    lines = render_table(1.25, make_samples(0.02, 0.003)).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:6]] == ["| reset", "| step", "| all checks", "| reset"]
    assert lines[2].startswith("| reset | 1 | 3 | 20.0 |")
    assert lines[-1].startswith("The container is ready after 1.2 s.")


def test_goals_are_for_one_episode_and_for_64_at_once() -> None:
    assert list_missed_goals(make_samples(0.02, 0.003)) == []
    assert list_missed_goals(make_samples(0.06, 0.011, 0.051)) == [
        "reset with 1 at once: 60.0 ms, goal 50 ms",
        "reset with 64 at once: 51.0 ms, goal 50 ms",
        "step with 1 at once: 11.0 ms, goal 10 ms",
    ]
