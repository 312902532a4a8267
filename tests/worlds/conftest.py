"""Servers of worlds for the docker tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.clones import CloneStore
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders.bases import ensure_base
from core.config import Settings
from taskdb.artifacts import Artifacts
from worlds.server.limits import ServerLimits
from worlds.server.service import WorldServer, open_world_server

LIMITS = ServerLimits(call_seconds=1.5, check_seconds=1.5, memory_mb=1024, process_mb=192)


@pytest.fixture(scope="session")
def world_sandbox() -> DockerSandbox:
    return DockerSandbox()


@pytest.fixture(scope="session")
def world_image(world_sandbox: DockerSandbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of the base image of Python 3.11."""
    folder: Path = tmp_path_factory.mktemp("base")
    services = Services(
        settings=Settings(store=folder), sandbox=world_sandbox, clones=CloneStore(folder), artifacts=Artifacts(folder)
    )
    return ensure_base("python", "3.11", services).name


@pytest.fixture(scope="session")
def server(world_sandbox: DockerSandbox, world_image: str) -> Iterator[WorldServer]:
    """One server for all tests: what one of them does must not disturb the others."""
    with open_world_server(world_sandbox, world_image, LIMITS) as opened:
        yield opened
