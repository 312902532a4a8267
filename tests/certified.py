"""Databases of two certified bug fixes, made once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli import WITH_KEPT_RUNS, WITHOUT_CONTROLS, run_mergemill
from tests.command_server import SHORT_CERTIFICATES
from tests.sample import make_sample

SECONDS = "seconds"
"""File of the folder with the seconds that the run took; it is there when the folder is complete."""


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sample as `ada__greet` and a database of its tasks; tests that change it do so with a copy."""
    # Other processes make the same tasks, and how long this takes counts as well.
    return _open_certified(tmp_path_factory, "certified", {SHORT_CERTIFICATES: ""})


@pytest.fixture(scope="session")
def plain_certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with short certificates, and tasks without controls, whose equal gradings are equal containers."""
    return _open_certified(tmp_path_factory, "plain-certified", WITHOUT_CONTROLS | WITH_KEPT_RUNS)


def _open_certified(factory: pytest.TempPathFactory, name: str, variables: Mapping[str, str]) -> Path:
    """Return the folder of a name; the first process that needs it runs the pipeline with these variables."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / SECONDS).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            make_sample(folder / "ada__greet")
            started = time.monotonic()
            done = run_mergemill("run", "git:ada__greet", "--json", cwd=folder, **variables)
            assert (done.exit_code, done.lines[-1]["certified"]) == (0, 2), done.stderr
            (folder / SECONDS).write_text(str(time.monotonic() - started))
    return folder
