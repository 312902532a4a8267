"""Gradings over HTTP with a real engine: many at once, and containers that are lost."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mergemill_client import Grader

from backends.sandbox.container_names import make_container_name
from core.settings.group import replace_values
from tests.graded_tasks import BUGFIX, GradedTasks, make_bugfix
from tests.grading_server import TOKEN, serve_gradings

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def fixes(tmp_path_factory: pytest.TempPathFactory) -> GradedTasks:
    return make_bugfix(tmp_path_factory.mktemp("fixes"))


def write_note(number: int) -> str:
    """Return a patch that adds a file, so that each submission differs from the others."""
    name = f"note_{number}.txt"
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1 @@\n+{number}\n"


def test_200_gradings_at_once_keep_their_verdicts(fixes: GradedTasks) -> None:
    gold = fixes.gold[BUGFIX]
    submissions = [
        {"task": BUGFIX, "patch": (gold if number % 2 else "") + write_note(number)} for number in range(200)
    ]
    with serve_gradings(replace_values(fixes.settings, {"workers": 4})) as url:
        grader = Grader(url, TOKEN, concurrency=200)
        values = {number: score.value for number, score in grader.grade_many(submissions)}
        status = grader.get_status()
    assert values == {number: float(number % 2) for number in range(200)}
    assert (status["done"], status["unscored"], status["rejected"]) == (200, 0, 0)


@contextmanager
def remove_containers() -> Iterator[list[str]]:
    """Remove every container of this process again and again, as an engine that loses them; yield their names."""
    prefix, ended, removed = make_container_name().rpartition("-")[0], threading.Event(), list[str]()
    assert f".{os.getpid()}." in prefix

    def remove() -> None:
        while not ended.wait(0.3):
            listed = subprocess.run(
                ["docker", "ps", "--filter", f"name={prefix}-", "--format", "{{.Names}}"],
                capture_output=True,
                text=True,
                check=True,
            )
            for name in listed.stdout.split():
                subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
                removed.append(name)

    thread = threading.Thread(target=remove)
    thread.start()
    try:
        yield removed
    finally:
        ended.set()
        thread.join()


def test_a_container_that_is_lost_during_its_grading_is_no_zero(fixes: GradedTasks) -> None:
    submissions = [{"task": BUGFIX, "patch": fixes.gold[BUGFIX] + write_note(1000 + number)} for number in range(6)]
    with serve_gradings(replace_values(fixes.settings, {"workers": 2})) as url:
        grader = Grader(url, TOKEN)
        with remove_containers() as removed:
            lost = [score for _, score in grader.grade_many(submissions)]
        values = [score.value for _, score in grader.grade_many(submissions)]
    assert removed
    assert None in [score.value for score in lost]
    assert {score.value for score in lost} <= {None, 1.0}, [score.explanation for score in lost]
    assert values == [1.0] * 6
