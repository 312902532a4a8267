"""Images for the tests of the Docker backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends.sandbox.docker import DockerSandbox
from tests.registry import make_tiny_image


@pytest.fixture
def image(sandbox: DockerSandbox) -> Iterator[str]:
    """Yield the name of a tiny image, which is removed afterwards."""
    name = make_tiny_image(sandbox)
    yield name
    sandbox.images.remove(name)
