"""Images for the tests of the Docker backend, and options of pods."""

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


@pytest.fixture
def pod_options(cluster_registry: str, base: str) -> dict[str, str]:
    """Settings of a sandbox in which one base image, pushed once, is all that a node must pull."""
    target = f"{cluster_registry}/{base.removeprefix('mergemill/')}"
    return {"kubernetes_registry": cluster_registry, "kubernetes_helper_image": target}
