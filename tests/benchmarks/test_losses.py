"""Gradings whose containers are killed at random have the value of undisturbed ones, or none and are graded again."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.losses import ContainerKiller, LossCount, count_losses, render_table
from core.errors import Transient
from evaluation.runner import run
from taskdb.records import Score
from tests.verifiers.shop import SHOP, SHOP_RIGHT, ShopTask, open_shop_task
from verifiers.grade import grade

KILLS_ITSELF = "import os\nos.kill(os.getpid(), 9)\n"
KILLS_ALL = "import os\nos.kill(-1, 9)\n"
TAKES_MEMORY = "data = [bytes([1]) * 10**9 for _ in range(9)]\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> ShopTask:
    return open_shop_task(tmp_path_factory, test_timeout=30)


def make_patch(before: str, after: str) -> bytes:
    """Return a patch that replaces the package of the task."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = f"--- a/shop/__init__.py\n+++ b/shop/__init__.py\n@@ -1,{len(old)} +1,{len(new)} @@\n"
    return (head + "".join(f"-{line}" for line in old) + "".join(f"+{line}" for line in new)).encode()


@pytest.mark.docker
@pytest.mark.parametrize(
    ("content", "value"), [(KILLS_ITSELF, 0.0), (KILLS_ALL, 0.0), (TAKES_MEMORY, 0.0), (SHOP_RIGHT, 1.0)]
)
def test_a_submission_that_ends_its_own_tests_is_scored(shop: ShopTask, content: str, value: float) -> None:
    score = grade(shop.task, shop.services, make_patch(SHOP, content))
    assert (score.value, score.infrastructure_error) == (value, None), score


@pytest.mark.docker
@pytest.mark.parametrize(
    ("containers", "gradings"),
    [pytest.param(1, 6, marks=pytest.mark.slow), (3, 6), pytest.param(3, 24, marks=pytest.mark.slow)],
)
def test_no_grading_has_another_value_when_containers_are_killed(
    shop: ShopTask, containers: int, gradings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one container a run, a loss leaves no value; with three, it runs again in the same grading."""
    monkeypatch.setattr(run, "MAX_CONTAINERS", containers)
    submissions = {
        "gold": make_patch(SHOP, SHOP_RIGHT),
        "nothing": b"",
        "kills its tests": make_patch(SHOP, KILLS_ALL),
    }
    # On a busy machine a container may end before it is killed; then the gradings are repeated with other draws.
    killers: list[ContainerKiller] = []
    counts: list[LossCount] = []
    while sum(killer.n_killed for killer in killers) < 4:
        assert len(killers) < 3, "nothing was disturbed"
        killers.append(ContainerKiller(share=1 / 3, seconds=1.0, seed=7 + len(killers)))
        counts += count_losses(lambda patch: grade(shop.task, shop.services, patch), submissions, killers[-1], gradings)
    n_graded = gradings * len(killers)
    assert [count.calm for count in counts] == [1.0, 0.0, 0.0] * len(killers)
    assert [count.n_wrong for count in counts] == [0, 0, 0] * len(killers), render_table(counts, killers[-1])
    assert containers == 1 or sum(count.values[count.calm] for count in counts) == n_graded, "a value is missing"
    assert containers > 1 or any(count.retried for count in counts)


def test_a_grading_without_a_value_is_graded_again_and_another_value_counts_as_wrong() -> None:
    answers: list[float | Transient | None] = [1.0, None, Transient("the engine is away"), 0.0]

    def grade_once(_: bytes) -> Score:
        answer = answers.pop(0)
        if isinstance(answer, Transient):
            raise answer
        return Score(task="a", value=answer, resolved=False, f2p_rate=0.0, p2p_rate=0.0)

    (count,) = count_losses(grade_once, {"gold": b"x"}, ContainerKiller(share=0.0), 1)
    assert (count.values, count.retried, count.n_wrong) == (Counter({None: 2, 0.0: 1}), 2, 1)
    assert "| gold | 1.0 | 3 | 0 | 1 | 2 |" in render_table([count], ContainerKiller(share=0.0))
    assert LossCount("gold", 1.0, Counter({1.0: 3, None: 1})).n_wrong == 0
