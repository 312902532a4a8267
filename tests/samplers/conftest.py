"""Certified tasks of a small repository, for tests that run agents on them."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.sample import make_sample

BUGFIX = "ada__greet-3.bugfix"
OTHER_BUGFIX = "ada__greet-1.bugfix"
WORDS = "Words are miscounted"
"""In the statement of BUGFIX alone."""


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a database of two certified bug fixes, made once for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "certified"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = folder / "whole"
        if not whole.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            make_sample(folder / "ada__greet")
            done = run_mergemill("run", "git:ada__greet", "--json", cwd=folder)
            assert (done.exit_code, done.lines[-1]["certified"]) == (0, 2), done.stderr
            whole.touch()
    return folder


@pytest.fixture
def tasks(certified: Path, tmp_path: Path) -> Path:
    """A copy of that folder for one test."""
    folder = tmp_path / "tasks"
    shutil.copytree(certified, folder)
    return folder


@pytest.fixture
def tasks_of_all_kinds(certified: Path, tasks: Path) -> Path:
    """A copy of that folder with a test-writing task and reviews of one of the changes."""
    more = ("--kind", "test-writing,review", "--only", "ada__greet-3", "--json")
    done = run_mergemill("run", f"git:{certified}/ada__greet", *more, cwd=tasks)
    assert done.exit_code == 0, done.stderr
    assert {"bugfix", "test-writing", "review"} <= done.lines[-1]["tasks"].keys(), done.lines[-1]
    return tasks
