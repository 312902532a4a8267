"""Sampling that is stopped by Ctrl-C or a full disk keeps what it has, and the same command completes it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli import make_command_environment, open_mergemill, run_mergemill
from tests.mergemill.pipeline.test_disk import small_disk
from tests.samplers.conftest import BUGFIX
from tests.samplers.scripted_model import Call, ModelRequest, ScriptedModel, Turn
from tests.samplers.test_sampling import FIX, SUBMIT, read_rollouts, run_command, sample

pytestmark = pytest.mark.docker
__all__ = ["small_disk"]


def test_ctrl_c_ends_it_with_130_and_nothing_is_paid_twice(plain_tasks: Path) -> None:
    slow = Turn(calls=(Call("bash", {"command": "sleep 20"}),))
    with ScriptedModel([run_command("ls"), slow, SUBMIT]) as model:
        command = ["sample", "--scaffold", "react", "--model", "scripted", "--upstream", model.url, "--only", BUGFIX]
        with open_mergemill(*command, cwd=plain_tasks) as driver:
            while model.paid < 2:
                assert driver.process.poll() is None
                time.sleep(0.1)
            os.kill(driver.process.pid, signal.SIGINT)
            code = driver.process.wait(30)
            errors = driver.stderr.read()
        assert code == 130, errors
        assert "the same command continues" in errors
        assert read_rollouts(plain_tasks) == []
        again = sample(plain_tasks, model, "--scaffold", "react", "--only", BUGFIX)
        assert (again.exit_code, again.lines[0]["status"]) == (0, "done"), again.stderr
        assert model.paid == 3


def test_two_drivers_at_once_pay_for_no_rollout_twice(plain_tasks: Path) -> None:
    command = ["sample", "--json", "--scaffold", "react", "--model", "scripted", "--kind", "bugfix"]
    with ScriptedModel([run_command("sleep 5"), SUBMIT]) as model:
        with open_mergemill(*command, "--upstream", model.url, cwd=plain_tasks) as first:
            while not model.paid:
                assert first.process.poll() is None
                time.sleep(0.1)
            second = sample(plain_tasks, model, "--scaffold", "react", "--kind", "bugfix", "--attempts", "2")
            code = first.process.wait(60)
            lines, errors = first.stdout.read(), first.stderr.read()
        assert (code, second.exit_code) == (0, 0), errors + second.stderr
        assert "another `mergemill sample` works with this store" in second.stderr
        assert [event.get("attempt") for event in second.lines] == [2, 2, None]
        assert (second.lines[-1]["planned"], second.lines[-1]["earlier"], second.lines[-1]["new"]) == (4, 2, 2)
        assert json.loads(lines.splitlines()[-1])["new"] == 2
        assert model.paid == 4 * 2


@pytest.mark.slow
def test_two_drivers_with_stores_of_their_own_tell_the_one_rollout_that_is_stored(tasks: Path) -> None:
    """Neither knows of the other one, whose agent does something else, until it stores what it has."""
    shutil.copytree(tasks / "mergemill-store" / "artifacts", tasks / "elsewhere" / "artifacts")
    beginnings = iter(["sleep 10", f"{FIX}; sleep 10"])

    def answer(request: ModelRequest) -> Turn:
        return SUBMIT if request.place else run_command(next(beginnings))

    command = ["mergemill", "sample", "--json", "--scaffold", "react", "--model", "scripted", "--only", BUGFIX]
    with ScriptedModel(answer) as model:
        words = [*command, "--upstream", model.url]
        with subprocess.Popen(
            words, cwd=tasks, env=make_command_environment(), stdout=subprocess.PIPE, text=True
        ) as first:
            second = run_mergemill(*words[1:], "--store", "elsewhere", cwd=tasks)
            output, _ = first.communicate(timeout=60)
        assert (first.returncode, second.exit_code) == (0, 0), second.stderr
        assert model.paid == 2 * 2
    (rollout,) = read_rollouts(tasks)
    told = [json.loads(output.splitlines()[0]), second.lines[0]]
    assert [(event["id"], event["value"]) for event in told] == [(rollout.id, rollout.value)] * 2


@pytest.mark.slow
def test_a_full_disk_ends_it_with_75_and_what_was_done_is_kept(tasks: Path, small_disk: Path) -> None:
    store = small_disk / "store"
    shutil.copytree(tasks / "mergemill-store" / "artifacts", store / "artifacts")
    noisy = run_command(f"echo {'x' * 60_000}")
    options = ("--scaffold", "react", "--kind", "bugfix", "--store", str(store), "--rollout-retries", "0")
    with ScriptedModel([noisy, noisy, SUBMIT]) as model:
        first = sample(tasks, model, *options, "--only", BUGFIX)
        assert first.exit_code == 0, first.stderr
        free = shutil.disk_usage(small_disk).free
        (small_disk / "filler").write_bytes(b"x" * (free - 64 * 1024))
        full = sample(tasks, model, *options, "--attempts", "2")
        assert full.exit_code == 75, (full.stdout, full.stderr)
        assert "Traceback" not in full.stderr
        unscored = [rollout for rollout in read_rollouts(tasks) if rollout.status != "done"]
        assert {(rollout.status, rollout.reason, rollout.value) for rollout in unscored} == {
            ("infrastructure", "disk-full", None)
        }
        (small_disk / "filler").unlink()
        last = sample(tasks, model, *options, "--attempts", "2")
    assert last.exit_code == 0, last.stderr
    kept = [(rollout.name, rollout.attempt) for rollout in read_rollouts(tasks) if rollout.status == "done"]
    assert len(kept) == len(set(kept)) == 4
    assert (
        json.loads(
            run_mergemill("sql", "SELECT count(*) AS n FROM rollouts WHERE value = 0", "--json", cwd=tasks).stdout
        )["n"]
        == 4
    )
