"""The task that scaffolds are tested on."""

from __future__ import annotations

import pytest

from tests.samplers.bench import AgentBench, make_bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> AgentBench:
    """A small task whose agents run in real containers."""
    return make_bench(tmp_path_factory.mktemp("bench"))
