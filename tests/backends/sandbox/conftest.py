"""Images for the tests of the Docker backend, and a cluster for those of the Kubernetes backend."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from backends.sandbox import container_names
from backends.sandbox.docker import DockerSandbox
from tests.kubernetes_cluster import KubernetesCluster, open_cluster, require_kubernetes
from tests.registry import LocalRegistry, make_tiny_image


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


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """Start a cluster for the test session."""
    require_kubernetes()
    with open_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch) -> KubernetesCluster:
    """The cluster, which the kubeconfig of this test names, with all rights."""
    monkeypatch.setenv("KUBECONFIG", str(shared_cluster.write_kubeconfig("admin")))
    return shared_cluster


@pytest.fixture
def cluster_registry(cluster: KubernetesCluster, registry: LocalRegistry) -> str:
    """The registry that the cluster's nodes pull from."""
    cluster.trust_registry(registry.host)
    return f"{registry.host}/tasks"


@pytest.fixture
def pod_options(cluster_registry: str, base: str) -> dict[str, str]:
    """Settings of a sandbox in which one base image, pushed once, is all that a node must pull."""
    target = f"{cluster_registry}/{base.removeprefix('mergemill/')}"
    return {"kubernetes_registry": cluster_registry, "kubernetes_helper_image": target}
