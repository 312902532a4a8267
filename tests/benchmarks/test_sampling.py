"""The benchmark of the queue of rollouts: its counts and its table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sampling import QueueFigures, measure_queue, render_result
from core.config import Settings
from core.errors import InputError
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url


def test_a_queue_that_is_mostly_done_goes_on_with_the_rest(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        for number in (1, 2, 3):
            add_lineage(store, number)
    figures = measure_queue(Settings(db=make_url(tmp_path)).storage, 200)
    assert (figures.size, figures.left) == (201, 21)
    assert min(figures.plan, figures.store, figures.go_on) > 0


def test_the_driver_is_compared_round_by_round() -> None:
    queue = QueueFigures(size=20_000, plan=1.0, store=10.0, go_on=2.0, left=2_000, megabytes=200)
    table = render_result(queue, driven=[3.0, 4.0, 9.0], bare=[2.0, 2.0, 3.0], workers=2)
    assert "| plan 20,000 rollouts | 1.00 s |" in table
    assert "| one rollout of `noop` with 2 at once | 4.00 s |" in table
    assert "| ratio, median and range of 3 rounds | 2.00 (1.50 to 3.00) |" in table


def test_a_database_without_certified_tasks_is_refused(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)):
        pass
    with pytest.raises(InputError, match="no task is selected"):
        measure_queue(Settings(db=make_url(tmp_path)).storage, 200)
