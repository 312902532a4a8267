"""One service of the shipped worlds for the docker tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.sandbox.docker import DockerSandbox
from tests.world_service import RunningService, open_in_container, serve_worlds
from tests.worlds.conftest import world_image, world_sandbox  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def service(world_sandbox: DockerSandbox, world_image: str) -> Iterator[RunningService]:  # noqa: F811
    with serve_worlds(open_in_container(world_sandbox, world_image)) as opened:
        yield opened
