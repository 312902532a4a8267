"""One generated world for all tests that only read it, and a plain client."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.github import World
from tests.github.generate import make_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("hub"), seed=5, pull_requests=150)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(headers={"Authorization": "Bearer ghp_reader"}, timeout=30) as client:
        yield client
