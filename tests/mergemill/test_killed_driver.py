"""A driver that is killed at any moment costs only what it was doing."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli import make_command_environment, run_mergemill
from tests.sample import make_sample


def list_certified(folder: Path) -> list[tuple[str, str, str]]:
    rows = run_mergemill("tasks", "list", "--json", cwd=folder).lines
    return sorted((row["id"], row["name"], row["status"]) for row in rows)


@pytest.mark.docker
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_at_random_moments_change_no_task(kills: int, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    started = time.monotonic()
    done = run_mergemill("run", "git:../ada__greet", cwd=tmp_path / "undisturbed")
    whole = time.monotonic() - started
    assert done.exit_code == 0, done.stderr

    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    for _ in range(kills):
        with subprocess.Popen(
            ["mergemill", "run", "git:../ada__greet"],
            cwd=tmp_path / "killed",
            env=make_command_environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as driver:
            try:
                driver.wait(moments.uniform(0, whole))
            except subprocess.TimeoutExpired:
                driver.send_signal(signal.SIGKILL)
    last = run_mergemill("run", "git:../ada__greet", cwd=tmp_path / "killed")

    assert last.exit_code == 0, last.stderr
    assert list_certified(tmp_path / "undisturbed"), "the sample gives no task: nothing was tested"
    assert list_certified(tmp_path / "killed") == list_certified(tmp_path / "undisturbed"), f"seed {seed}"
