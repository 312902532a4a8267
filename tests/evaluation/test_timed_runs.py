"""How often a test or benchmark runs in a round."""

from __future__ import annotations

import pytest

from guest.harness.workload.timed_rounds import ROUND_SECONDS, Workload

PROGRAMS = {"benches/rows.rs": ["/b", "/tree", True], "tests/rows.rs": ["/t", "/tree", False]}


@pytest.mark.parametrize(
    ("test", "seconds", "least", "most"),
    [
        ("benches/rows.rs::count", 1e-5, 0.9e5 * ROUND_SECONDS, 1.1e5 * ROUND_SECONDS),
        ("benches/rows.rs::count", 1e-9, 1_000_000, 1_000_000),  # the most, however short it is
        ("tests/rows.rs::counts", 1e-5, 50, 50),  # each run is a process
        ("tests/rows.rs::counts", ROUND_SECONDS, 1, 1),
    ],
)
def test_runs_fill_a_round_up_to_the_most_that_are_allowed(
    monkeypatch: pytest.MonkeyPatch, test: str, seconds: float, least: float, most: float
) -> None:
    settings = {"framework": "cargo-test", "argv": ["cargo", "test"], "clock": "cpu"}
    workload = Workload(settings, "/out", "/tree", PROGRAMS)
    monkeypatch.setattr(workload, "run_test", lambda name, runs: 0.0 if name.endswith("::") else runs * seconds)
    assert least <= workload.count_runs(test) <= most
