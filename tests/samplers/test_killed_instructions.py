"""Instruction tasks are derived and sampled while processes are killed: the same tasks, verdicts and payments."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from core.config import Settings
from mergemill.execution.services import make_services
from taskdb.records import Kind, Task
from taskdb.store import Store
from tests.cli import WITH_KEPT_RUNS, WITHOUT_CONTROLS, run_mergemill, start_mergemill
from tests.samplers.test_killed_sampling import check_kills, list_results
from tests.taskdb.content import read_records
from verifiers.rewards.instructions import check_scripts

DERIVE = ("derive", "--kind", "instructions", "--instructions-per-task", "2", "--instruction-turns", "1:2")
VARIABLES = WITHOUT_CONTROLS | WITH_KEPT_RUNS


@pytest.fixture(scope="module")
def instructed(plain_certified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with certified instruction tasks."""
    folder = tmp_path_factory.mktemp("instructed") / "tasks"
    shutil.copytree(plain_certified, folder)
    for command in (DERIVE, ("certify",)):
        done = run_mergemill(*command, cwd=folder, **VARIABLES)
        assert done.exit_code == 0, done.stderr
    return folder


def kill_deriving(certified: Path, folder: Path, kills: int, seconds: float, seed: int) -> None:
    """Derive in a copy of a folder, killed so many times within the seconds that it takes undisturbed."""
    moments = random.Random(seed)
    shutil.copytree(certified, folder)
    left = kills
    while left:
        with start_mergemill(*DERIVE, cwd=folder, **VARIABLES) as driver:
            try:
                driver.wait(moments.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                driver.kill()
                left -= 1
                continue
        assert driver.returncode == 0
        shutil.rmtree(folder)  # all tasks were derived before all kills: the next round
        shutil.copytree(certified, folder)


def read_tasks(folder: Path) -> list[Task]:
    """Return the instruction tasks of a folder, whose scripts are in its store and show what they are to show."""
    settings = Settings(db=f"sqlite:///{folder}/mergemill.db", store=folder / "mergemill-store")
    with Store.open(settings.storage.db, create=False) as store:
        tasks = [task for task in store.load_all(Task) if task.kind is Kind.INSTRUCTIONS]
    services = make_services(settings, engine=False)
    assert [check_scripts(task, services).problem for task in tasks] == [""] * len(tasks)
    return sorted(tasks, key=lambda task: task.name)


def check_deriving(certified: Path, tmp_path: Path, kills: int) -> None:
    """Compare the tasks of an undisturbed command with those of one that is killed again and again."""
    seed = random.randrange(1 << 32)
    shutil.copytree(certified, tmp_path / "calm")
    began = time.monotonic()
    assert run_mergemill(*DERIVE, cwd=tmp_path / "calm", **VARIABLES).exit_code == 0
    kill_deriving(certified, tmp_path / "stormy", kills, time.monotonic() - began, seed)
    last = run_mergemill(*DERIVE, cwd=tmp_path / "stormy", **VARIABLES)
    assert last.exit_code == 0, (seed, last.stderr)
    calm, stormy = read_tasks(tmp_path / "calm"), read_tasks(tmp_path / "stormy")
    assert stormy == calm, seed
    assert len(calm) == 4
    databases = [read_records(f"sqlite:///{tmp_path}/{name}/mergemill.db") for name in ("calm", "stormy")]
    assert databases[0] == databases[1], seed


@pytest.mark.docker
def test_kills_while_deriving_change_no_task(plain_certified: Path, tmp_path: Path) -> None:
    check_deriving(plain_certified, tmp_path, 3)


@pytest.mark.docker
def test_kills_while_sampling_change_no_verdict_and_no_payment(instructed: Path, tmp_path: Path) -> None:
    check_kills(instructed, tmp_path, 3, attempts=1, kind="instructions")
    verdicts = {result[-1] for result in list_results(tmp_path / "stormy")}
    assert len(verdicts) > 1
    assert any('"failed"' in states for states in verdicts)
    assert any('"passed"' in states for states in verdicts)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_twenty_kills_while_deriving_and_twenty_while_sampling_change_nothing(
    plain_certified: Path, instructed: Path, tmp_path: Path
) -> None:
    for name in ("deriving", "sampling"):
        (tmp_path / name).mkdir()
    check_deriving(plain_certified, tmp_path / "deriving", 20)
    check_kills(instructed, tmp_path / "sampling", 20, attempts=2, kind="instructions")
