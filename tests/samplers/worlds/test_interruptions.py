"""A driver that is killed, and its gateway with it: the same rollouts, no request paid twice, none lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.config import Settings
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.samplers.worlds.database import make_database
from tests.samplers.worlds.local_server import needs_root
from tests.samplers.worlds.player import USER, ScenarioPlayer, play_dialogue

pytestmark = [needs_root, pytest.mark.slow]
DELAY = 0.05


def answer_slowly(request: ModelRequest) -> Turn:
    turn = play_dialogue(request) if request.body["model"] == USER or "Good morning" in str(request.body) else None
    turn = turn or ScenarioPlayer()(request)
    return Turn(text=turn.text, calls=turn.calls, delay=DELAY)


def make_command(folder: Path, model: ScriptedModel, scaffold: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "tests.samplers.worlds.driver", str(folder), model.url, "2", *scaffold]


def run(folder: Path, model: ScriptedModel, scaffold: Sequence[str]) -> list[dict[str, object]]:
    done = subprocess.run(make_command(folder, model, scaffold), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def kill_after(folder: Path, model: ScriptedModel, scaffold: Sequence[str], paid: int) -> None:
    """Run the driver and kill it once so many requests are paid; its gateway ends with its standard input."""
    with subprocess.Popen(make_command(folder, model, scaffold), stdout=subprocess.DEVNULL) as driver:
        while model.paid < paid:
            assert driver.poll() is None
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)


def read_results(settings: Settings) -> list[tuple[str, int, float | None, int]]:
    with Store.open(settings.storage.db) as store:
        return sorted(
            (rollout.plan, rollout.attempt, rollout.value, rollout.requests) for rollout in store.load_all(Rollout)
        )


@pytest.mark.parametrize("scaffold", [("tools",), ("dialogue", USER)])
def test_a_killed_driver_goes_on_and_nothing_is_paid_twice(tmp_path: Path, scaffold: tuple[str, ...]) -> None:
    (calm := tmp_path / "calm").mkdir()
    (stormy := tmp_path / "stormy").mkdir()
    expected = make_database(calm, ["library_loans"])
    settings = make_database(stormy, ["library_loans"])
    with ScriptedModel(answer_slowly) as model:
        run(calm, model, scaffold)
        whole = model.paid
    with ScriptedModel(answer_slowly) as model:
        for paid in (whole // 4, whole // 2, 3 * whole // 4):
            kill_after(stormy, model, scaffold, paid)
        summary = run(stormy, model, scaffold)[-1]
        assert model.paid == whole
        assert set(model.paid_keys.values()) == {1}
        run(stormy, model, scaffold)
        assert model.paid == whole
    assert read_results(settings) == read_results(expected)
    assert (summary["planned"], summary["left"]) == (4, 0)
    assert len(read_results(settings)) == 4


def test_ctrl_c_ends_it_and_keeps_what_was_answered(tmp_path: Path) -> None:
    settings = make_database(tmp_path, ["library_loans"])
    with ScriptedModel(answer_slowly) as model:
        command = make_command(tmp_path, model, ("tools",))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as driver:
            while model.paid < 5:
                time.sleep(0.01)
            os.kill(driver.pid, signal.SIGINT)
            driver.communicate(timeout=30)
        assert driver.returncode != 0
        run(tmp_path, model, ("tools",))
        assert set(model.paid_keys.values()) == {1}
    assert [value for _, _, value, _ in read_results(settings)] == [1.0] * 4
