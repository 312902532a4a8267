"""Docker sandbox and base image of the sandbox tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.clones import CloneStore
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders.bases import ensure_base
from core.config import Settings
from taskdb.artifacts import Artifacts


@pytest.fixture(scope="session")
def docker_sandbox() -> DockerSandbox:
    return DockerSandbox()


@pytest.fixture
def sandbox(docker_sandbox: DockerSandbox) -> DockerSandbox:
    return docker_sandbox


@pytest.fixture(scope="session")
def base(docker_sandbox: DockerSandbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of the base image of Python 3.11."""
    folder: Path = tmp_path_factory.mktemp("base")
    services = Services(
        settings=Settings(store=folder),
        sandbox=docker_sandbox,
        clones=CloneStore(folder),
        artifacts=Artifacts(folder),
    )
    return ensure_base("python", "3.11", services).name
