"""The engine and the base image that the sandbox's tests run on."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.clones import Clones
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders.bases import ensure_base
from mergemill.config import Settings
from taskdb.artifacts import Artifacts


@pytest.fixture(scope="session")
def sandbox() -> DockerSandbox:
    return DockerSandbox()


@pytest.fixture(scope="session")
def base(sandbox: DockerSandbox, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("base")
    services = Services(
        settings=Settings(store=folder), sandbox=sandbox, clones=Clones(folder), artifacts=Artifacts(folder)
    )
    return ensure_base("python", "3.11", services).name
