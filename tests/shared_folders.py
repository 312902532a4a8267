"""Folders that one worker of a test run fills, for all workers."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def copy_shared_folder(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]) -> Path:
    """Return a copy, for this caller alone, of a folder that the first caller of a test run fills.

    Args:
        factory: the run's temporary folders.
        name: name of the folder, unique in the run.
        fill: function that fills the empty folder.
    """
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    shared, finished = root / f"shared-{name}", root / f"shared-{name}.finished"
    with (root / f"shared-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            shutil.rmtree(shared, ignore_errors=True)
            shared.mkdir()
            fill(shared)  # where it stays, as records hold the path of the repository
            finished.touch()
    return Path(shutil.copytree(shared, factory.mktemp(name) / "copy", symlinks=True))
