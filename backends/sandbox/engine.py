"""Connection to a Docker engine (20.10 or newer). The only file that imports the docker SDK."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import docker
import docker.errors
from docker.utils import kwargs_from_env

from backends.sandbox.container import HOSTNAME, Container, build_host_config
from backends.sandbox.container_names import PREFIX, is_orphan, make_container_name
from backends.sandbox.execution import ContainerLossError, ResourceLimits
from backends.sandbox.host_disk import FULL_ADVICE, HostDisk
from backends.sandbox.images import EngineInfo
from backends.sandbox.leases import ImageLeases
from backends.sandbox.mounts import Mount
from backends.sandbox.removal import CONNECTION_ERRORS, ContainerRemover
from core.errors import CancelledRunError, InputError, MachineError, MergemillError, Transient

SETUP_COMMAND = "scripts/setup docker"
RETRY_ADVICE = "run the same command again later"
GROUP_COMMAND = 'sudo usermod -aG docker "$USER", then log in again'
REQUEST_TIMEOUT = 60
"""Seconds an ordinary request may take."""
ENGINE_ERRORS = (docker.errors.DockerException, *CONNECTION_ERRORS)


def translate_error(error: Exception) -> MergemillError | None:
    """Return the project's error for an error of the engine; None for a malformed request, which is a bug."""
    text = str(getattr(error, "explanation", None) or error)
    if isinstance(error, docker.errors.ImageNotFound):
        return InputError(f"no such image: {text}", advice="mergemill images bootstrap")
    if "no space left" in text.lower():
        return Transient(f"the disk is full: {text}", advice=FULL_ADVICE)
    if isinstance(error, docker.errors.NotFound) and "no such container" in text.lower():
        return ContainerLossError(f"another process removed a container: {text}", advice=RETRY_ADVICE)
    if isinstance(error, docker.errors.APIError):
        if error.response is not None and error.is_client_error() and not isinstance(error, docker.errors.NotFound):
            return None
        return Transient(f"the Docker engine failed: {text}", advice=RETRY_ADVICE)
    advice = f"{SETUP_COMMAND}, then the same command again"
    return Transient(f"the Docker engine is out of reach: {text}", advice=advice)


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Turn the engine's exceptions into InputError and Transient.

    Raises:
        InputError: there is no such image.
        Transient: the engine cannot be reached, failed, or its disk is full.
    """
    try:
        yield
    except MergemillError:
        raise
    except ENGINE_ERRORS as error:
        translated = translate_error(error)
        if translated is None:
            raise
        raise translated from error


class DockerEngine:
    """The engine that DOCKER_HOST names, or the local: clients, containers and image leases. Thread-safe.

    Args:
        record_use: function that is called with the name of every image that is used, each time.

    Raises:
        MachineError: no engine answers.
    """

    def __init__(self, record_use: Callable[[str], None]) -> None:
        self._local = threading.local()
        self._clients: list[docker.APIClient] = []
        # Closed with this object or at exit, whichever comes first, so that callers need not close it.
        weakref.finalize(self, _close_clients, self._clients)
        self._address = kwargs_from_env()
        self._version = "auto"
        try:
            client = self.get_client()
            info = client.info()
        except ENGINE_ERRORS as error:
            url = self._address.get("base_url", "its usual socket")
            if "Permission denied" in str(error):
                raise MachineError(f"this user may not use the Docker engine at {url}", advice=GROUP_COMMAND) from error
            raise MachineError(f"no Docker engine answers at {url}: {error}", advice=SETUP_COMMAND) from error
        self._version = client.api_version
        self._cpus = float(info["NCPU"])
        self._disk = HostDisk(str(info["DockerRootDir"]))
        self.id = str(info.get("ID") or client.base_url)
        self.threads = ThreadPoolExecutor(max_workers=64, thread_name_prefix="mergemill-wait")
        self.remover = ContainerRemover(self._remove_container)
        self.stopping = threading.Event()
        self.record_use = record_use
        self.leases = ImageLeases(self.id, record_use)

    def get_client(self, seconds: int = REQUEST_TIMEOUT) -> docker.APIClient:
        """Return the calling thread's client with that timeout."""
        clients: dict[int, docker.APIClient] = self._local.__dict__.setdefault("clients", {})
        if seconds not in clients:
            clients[seconds] = docker.APIClient(version=self._version, timeout=seconds, **self._address)
            self._clients.append(clients[seconds])
        return clients[seconds]

    def get_info(self) -> EngineInfo:
        """Return version, storage driver and folder of the engine."""
        with translate_errors():
            info = self.get_client().info()
        return EngineInfo(version=info["ServerVersion"], storage_driver=info["Driver"], root=info["DockerRootDir"])

    @contextlib.contextmanager
    def open_container(
        self,
        image: str,
        command: Sequence[str],
        limits: ResourceLimits,
        *,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
    ) -> Iterator[Container]:
        """Create a container, not yet started, that is removed at the end of the block."""
        container = self.create_container(image, command, limits, env=env, network=network, user=user)
        try:
            yield container
        finally:
            self.remover.remove_later(lambda: container.id)

    def create_container(
        self,
        image: str,
        command: Sequence[str],
        limits: ResourceLimits,
        *,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
        stdin: bool = False,
        mounts: Sequence[Mount] = (),
    ) -> Container:
        """Create a container, not yet started; the caller removes it.

        Networking is disabled rather than set to an empty network: creating a network is the slowest part of a start.
        """
        if self.stopping.is_set():
            raise CancelledRunError("stopped")
        self.leases.acquire(image)
        self.record_use(image)
        client = self.get_client()
        limits = replace(limits, cpus=min(limits.cpus, self._cpus))
        created = client.create_container(
            image,
            list(command[1:]),
            entrypoint=[command[0]],
            environment=dict(env or {}),
            user=user,
            hostname=HOSTNAME,
            name=make_container_name(),
            use_config_proxy=False,
            stdin_open=stdin,
            network_disabled=not network,
            host_config=build_host_config(client, limits, network=network, mounts=mounts),
        )
        return Container(created["Id"], self.get_client, self.threads, limits, self.stopping, self._disk)

    def _remove_container(self, container: str) -> None:
        self.get_client().remove_container(container, force=True, v=True)

    def find_orphans(self) -> list[str]:
        """Return ids of containers whose mergemill process, of this machine, is dead."""
        containers = self.list_containers().items()
        return [container for container, names in containers if any(map(is_orphan, names))]

    def list_containers(self) -> dict[str, list[str]]:
        """Return id -> names of all containers of mergemill, running or not, also of other machines."""
        with translate_errors():
            containers = self.get_client().containers(all=True, filters={"name": PREFIX})
        return {container["Id"]: container["Names"] or [] for container in containers}


def _close_clients(clients: list[docker.APIClient]) -> None:
    for client in clients:
        with contextlib.suppress(*ENGINE_ERRORS):
            client.close()
