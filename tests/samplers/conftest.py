"""Certified tasks of a small repository, for tests that run agents on them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.certified import certified, plain_certified
from tests.cli import WITH_KEPT_RUNS, run_mergemill
from tests.forked_gateways import fork_gateways_of_tests

__all__ = ["certified", "plain_certified"]
BUGFIX = "ada__greet-3.bugfix"
OTHER_BUGFIX = "ada__greet-1.bugfix"
WORDS = "Words are miscounted"
"""In the statement of BUGFIX alone."""


@pytest.fixture(scope="session", autouse=True)
def _forked_gateways() -> None:
    fork_gateways_of_tests()


@pytest.fixture
def tasks(certified: Path, tmp_path: Path) -> Path:
    """A copy of that folder for one test."""
    folder = tmp_path / "tasks"
    shutil.copytree(certified, folder)
    return folder


@pytest.fixture
def plain_tasks(plain_certified: Path, tmp_path: Path) -> Path:
    """A copy of the folder of tasks without controls for one test, which looks at agents more than at gradings."""
    return shutil.copytree(plain_certified, tmp_path / "tasks")


@pytest.fixture
def tasks_of_all_kinds(certified: Path, tasks: Path) -> Path:
    """A copy of that folder with a test-writing task and reviews of one of the changes."""
    more = ("--kind", "test-writing,review", "--only", "ada__greet-3", "--json")
    done = run_mergemill("run", f"git:{certified}/ada__greet", *more, cwd=tasks, **WITH_KEPT_RUNS)
    assert done.exit_code == 0, done.stderr
    assert {"bugfix", "test-writing", "review"} <= done.lines[-1]["tasks"].keys(), done.lines[-1]
    return tasks
