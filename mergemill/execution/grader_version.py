"""Version of the code that grades: scores of another version may differ from those that would be given now."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from mergemill import __version__

GRADING_PACKAGES = ("evaluation", "guest", "verifiers")
"""Packages whose code decides the value that a submission earns; the task's own script and image belong to its id."""
SCENARIO_PACKAGES = ("guest", "worlds")
"""Packages whose code decides the reward of a scenario; the world's program and the checks belong to its id."""
SUFFIXES = (".py", ".j2", ".sh")


def compute_grader_version() -> str:
    """Return the version of mergemill and a hash of the code that grades tasks, such as `0.1.0+3f9c2a61d0be`."""
    return _compute_version(GRADING_PACKAGES)


def compute_scenario_grader_version() -> str:
    """Return the version of mergemill and a hash of the code that grades scenarios."""
    return _compute_version(SCENARIO_PACKAGES)


@cache
def _compute_version(packages: tuple[str, ...]) -> str:
    total = hashlib.sha256()
    for package in packages:
        _add_folder(total, files(package), package)
    return f"{__version__}+{total.hexdigest()[:12]}"


def _add_folder(total: hashlib._Hash, folder: Traversable, path: str) -> None:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            _add_folder(total, entry, name)
        elif name.endswith(SUFFIXES):
            total.update(f"{name}\0".encode())
            total.update(hashlib.sha256(entry.read_bytes()).digest())
