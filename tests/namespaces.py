"""Tests of the sandbox of namespaces run where bubblewrap does, which it must in CI."""

from __future__ import annotations

import functools
import os

import pytest

from backends.sandbox.bubblewrap import create_sandbox
from core.config import Settings
from core.errors import MachineError


@functools.cache
def find_problem() -> str:
    """Return why bubblewrap does not run here, empty where it does."""
    try:
        create_sandbox(Settings().sandbox, lambda _: None)
    except MachineError as error:
        return error.format_line()
    return ""


def require_bubblewrap() -> None:
    """Skip the test where bubblewrap does not run; in CI it fails."""
    if problem := find_problem():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(problem)
