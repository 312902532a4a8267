"""Images for the tests of the Docker backend."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from backends.sandbox import container_names
from backends.sandbox.docker import DockerSandbox
from tests.registry import make_tiny_image


@pytest.fixture
def image(sandbox: DockerSandbox) -> Iterator[str]:
    """Yield the name of a tiny image, which is removed afterwards."""
    name = make_tiny_image(sandbox)
    yield name
    sandbox.images.remove(name)


@pytest.fixture
def own_host(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give this test's containers the hash of a machine of their own, so that no other driver reaps them."""
    host = uuid.uuid4().hex[:8]
    monkeypatch.setattr(container_names, "_hash_host", lambda: host)
    return host
