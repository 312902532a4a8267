"""Sandbox on a Docker engine.

A run creates a container, puts files, attaches, starts, follows the output while time and disk are checked, reads the
exit code and collects files; a background thread removes the container. A pool starts the next container meanwhile.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING

from backends.sandbox import archive
from backends.sandbox.container import HOSTS_FILE
from backends.sandbox.docker_images import DockerImageStore
from backends.sandbox.docker_volumes import DockerVolumeStore
from backends.sandbox.engine import DockerEngine, translate_errors
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.mounts import Mount
from backends.sandbox.pool import WARM_COMMAND, WarmContainer, WarmContainerPool
from backends.sandbox.process import DockerContainerProcess
from backends.sandbox.session import DockerContainerSession, build_keepalive_command

if TYPE_CHECKING:
    from core.settings.machine import SandboxSettings


class DockerSandbox:
    """Sandbox of the engine that DOCKER_HOST names, or of the local. Threads may share it.

    Args:
        record_use: function that is called with the name of every image that is used, each time.

    Raises:
        MachineError: no engine answers.
    """

    def __init__(self, record_use: Callable[[str], None] = lambda _: None) -> None:
        self.engine = DockerEngine(record_use)
        self.images = DockerImageStore(self.engine)
        self.volumes = DockerVolumeStore(self.engine.get_client, translate_errors)

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: ResourceLimits,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
    ) -> ExecResult:
        """Run `command` in a fresh container; see `backends.sandbox.base.Sandbox.run`."""
        content = {**({} if network else {"/etc/hosts": HOSTS_FILE.encode()}), **(files or {})}
        with (
            translate_errors(),
            self.engine.open_container(image, command, limits, env=env, network=network, user=user) as container,
        ):
            if content:
                container.put_archive(archive.build_tar(content))
            return container.execute(collect)

    @contextlib.contextmanager
    def open_pool(self, image: str, *, limits: ResourceLimits) -> Iterator[WarmContainerPool]:
        """Open a container pool; see `backends.sandbox.base.Sandbox.open_pool`."""

        def make_warm_container() -> WarmContainer:
            container = self.engine.create_container(image, WARM_COMMAND, limits, stdin=True)
            try:
                return WarmContainer(container)
            except BaseException:
                self.engine.remover.remove_later(lambda: container.id)
                raise

        self.engine.leases.acquire(image)
        pool = WarmContainerPool(
            make_warm_container, self.engine.remover.remove_later, self.engine.threads, translate_errors
        )
        with contextlib.closing(pool):
            yield pool

    @contextlib.contextmanager
    def open_session(
        self,
        image: str,
        *,
        limits: ResourceLimits,
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/",
        network: bool = True,
        mounts: Sequence[Mount] = (),
    ) -> Iterator[DockerContainerSession]:
        """Open a container session; see `backends.sandbox.base.Sandbox.open_session`."""
        session = DockerContainerSession(
            functools.partial(
                self.engine.create_container,
                image,
                build_keepalive_command(limits.seconds),
                limits,
                network=network,
                mounts=mounts,
            ),
            tree,
            {**({} if network else {"/etc/hosts": HOSTS_FILE.encode()}), **(files or {})},
            self.engine.remover.remove_later,
            translate_errors,
            env=env or {},
            workdir=workdir,
        )
        with contextlib.closing(session):
            yield session

    @contextlib.contextmanager
    def open_process(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: ResourceLimits,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Iterator[DockerContainerProcess]:
        """Start a program with open stdin and stdout; see `backends.sandbox.base.Sandbox.open_process`."""
        with contextlib.ExitStack() as opened:
            with translate_errors():
                container = self.engine.create_container(image, command, limits, env=env, stdin=True)
                opened.callback(self.engine.remover.remove_later, lambda: container.id)
                container.put_archive(archive.build_tar({"/etc/hosts": HOSTS_FILE.encode(), **(files or {})}))
                process = opened.enter_context(contextlib.closing(DockerContainerProcess(container, translate_errors)))
            yield process

    def find_orphans(self) -> list[str]:
        """Return ids of containers whose mergemill process, of this machine, is dead."""
        return self.engine.find_orphans()

    def count_containers(self) -> int:
        """Return the number of mergemill's containers on the engine, of all processes and machines."""
        return len(self.engine.list_containers())

    def reap(self) -> int:
        """Remove the containers of dead mergemill processes of this machine and return how many."""
        return sum(self.engine.remover.remove(container) for container in self.engine.find_orphans())

    def stop(self) -> None:
        """End all running commands and start none; calls of all threads raise CancelledRunError within seconds."""
        self.engine.stopping.set()

    def flush(self) -> None:
        """Wait until the containers of finished runs are removed."""
        self.engine.remover.flush()


def create_sandbox(_: SandboxSettings, record_use: Callable[[str], None]) -> DockerSandbox:
    """Create the sandbox of `--sandbox docker`."""
    return DockerSandbox(record_use)
