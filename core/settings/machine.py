"""Settings of the machines that do the work: workers, sandboxes, limits of containers, and housekeeping."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import ByteSize, ConfigDict, Field, field_validator

from core.settings.group import SettingsGroup, WordList

CA_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
"""Variables that may name a CA bundle when `ca_bundle` is not set."""

INHERITED_VARIABLES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
)
"""Variables of the user that builds are given and no image layer stores."""


class ClusterSettings(SettingsGroup):
    """Workers of a run, and the machines they run on."""

    db_patience: float = Field(default=300, ge=0)
    """Seconds that a run waits for a database server that does not answer any more."""
    workers: int = Field(default=2, ge=1)
    """Number of changes processed in parallel."""
    address: str = Field(alias="cluster", default="local")
    """Where the workers run: `local` (threads of this machine), `ray` (processes of this machine), or
    `ray://HOST:PORT` (nodes of a Ray cluster; as many workers as fit, unless --workers is given)."""
    worker_cpus: float = Field(default=1.0, gt=0)
    """CPUs that --cluster ray reserves for each worker; of memory it reserves --memory-mb."""
    node_registry: str | None = None
    """Push images to this registry (HOST/PREFIX) during a run on a cluster, so that other nodes can pull them."""


class KubernetesSettings(SettingsGroup):
    """Pods of `--sandbox kubernetes`."""

    model_config = ConfigDict(alias_generator="kubernetes_{}".format)

    context: str | None = None
    """Context of the kubeconfig for `--sandbox kubernetes`. Default: the current one, or the account of the pod that
    mergemill runs in."""
    namespace: str | None = None
    """Namespace of the pods. Default: that of the context."""
    registry: str | None = None
    """Registry (HOST/PREFIX) that images are pushed to and the nodes pull them from. Default: the nodes have them."""
    pull_secret: str | None = None
    """Secret of the namespace with the credentials of that registry."""
    helper_image: str | None = None
    """Image with Python that takes the network away from pods and offers sockets in them, as nodes pull it. Default:
    the newest base of Python on the Docker engine."""
    nodes: WordList = ()
    """Labels of the nodes that may run pods (KEY=VALUE), comma-separated. Default: any node."""
    runtime_class: str | None = None
    """Runtime class of the pods, such as one of gVisor. Default: that of the cluster."""
    pending_seconds: float = Field(default=600, ge=0)
    """Seconds that a pod may wait for a node with room."""

    @field_validator("nodes")
    @classmethod
    def _check_nodes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any("=" not in label for label in value):
            raise ValueError("is not a list of KEY=VALUE")
        return value


class SandboxSettings(SettingsGroup):
    """Where commands run."""

    kind: str = Field(alias="sandbox", default="docker")
    """Where commands run: `docker`, `kubernetes` (pods of a cluster), `bubblewrap` (namespaces, the programs of this
    machine and no images), or `local` (subprocesses of this machine, without isolation and images)."""
    allow_untrusted_local: bool = False
    """Permit `--sandbox local`, which runs foreign code as the user of mergemill."""
    kubernetes: KubernetesSettings = Field(default_factory=KubernetesSettings)


class LimitSettings(SettingsGroup):
    """Limits of one container."""

    memory_mb: int = Field(default=4096, ge=256)
    """Memory limit of a test container, swap included. Half of it is the size of /dev/shm."""
    disk_mb: int = Field(default=4096, ge=64)
    """Disk limit of a container."""
    pids: int = Field(default=512, ge=16)
    """Limit of processes and threads of a container."""
    cpus: float = Field(default=1.0, gt=0)
    """CPUs of a test container."""
    output_mb: int = Field(default=8, ge=1)
    """Megabytes stored of the output of one command, head and tail; the rest is discarded."""


class HostSettings(SettingsGroup):
    """Files and folders of this machine for builds and connections."""

    base_source: Literal["auto", "registry", "debian"] = "auto"
    """Origin of base images: a registry, debootstrap, or whichever works."""
    ca_bundle: Path | None = None
    """CA certificates (PEM) for builds. Default: the file of SSL_CERT_FILE, PIP_CERT or REQUESTS_CA_BUNDLE."""

    def find_ca_bundle(self) -> Path | None:
        """Return the CA bundle for builds: the setting, else the first of CA_VARIABLES that names a file, else None."""
        named = [self.ca_bundle] if self.ca_bundle else [Path(os.environ[v]) for v in CA_VARIABLES if os.environ.get(v)]
        return next((path for path in named if path.is_file()), None)

    @staticmethod
    def inherit_environment() -> dict[str, str]:
        """Return the proxy and index variables of this process that builds are given."""
        return {name: os.environ[name] for name in INHERITED_VARIABLES if os.environ.get(name)}


class OperationSettings(SettingsGroup):
    """Housekeeping and metrics of a run."""

    image_budget: ByteSize | None = None
    """Remove the least recently used images during a run once all take more than this, such as 50GB."""
    drain_seconds: float = Field(default=20, ge=0)
    """Seconds after SIGTERM in which steps that run may finish, before they are stopped."""
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Serve metrics for Prometheus at this port during a run; 0 for any free one."""
    metrics_host: str = "127.0.0.1"
    """Address of the metrics."""
