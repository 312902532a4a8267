"""The task that scaffolds are tested on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.samplers.bench import AgentBench, open_bench
from tests.samplers.conftest import BUGFIX


@pytest.fixture(scope="session")
def bench(plain_certified: Path) -> AgentBench:
    """A small certified task, without controls, whose agents run in real containers."""
    return open_bench(plain_certified, BUGFIX)
