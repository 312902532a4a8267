"""Images of a sandbox in a cluster: kept and built by a Docker engine, run from a registry.

Without an engine images are run that a registry has, and none can be built.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from typing import IO, Any

from backends.sandbox.docker import DockerSandbox
from backends.sandbox.docker_images import DockerImageStore
from backends.sandbox.engine import translate_errors
from backends.sandbox.execution import ResourceLimits
from backends.sandbox.images import EngineInfo, ImageInfo
from backends.sandbox.locks import hold_machine_lock
from backends.sandbox.mounts import Mount
from core.errors import InputError, MachineError

IMAGE_PREFIX = "mergemill/"
COPY_LIMITS = ResourceLimits(seconds=600, memory_mb=256, disk_mb=256, pids=16, cpus=1, output_bytes=1)
_PYTHON_BASE = re.compile(r"mergemill/base:python(\d+)\.(\d+)-")


class ClusterImageStore:
    """Images as `backends.sandbox.images.ImageStore` has them, and as nodes pull them.

    Args:
        registry: `HOST/PREFIX` that images are pushed to before they run; None where the nodes have them.
        cluster: description of the cluster's version.
        record_use: function that is called with the name of every image that is used, each time.
    """

    def __init__(self, registry: str | None, cluster: str, record_use: Callable[[str], None]) -> None:
        self.registry = registry
        self.record_use = record_use
        self._cluster = cluster
        self._copies: dict[str, ImageInfo] = {}
        self._references: dict[str, str] = {}
        self._lock = threading.Lock()

    @cached_property
    def _engine(self) -> DockerSandbox | MachineError:
        try:
            return DockerSandbox(self.record_use)
        except MachineError as error:
            return error

    @property
    def _store(self) -> DockerImageStore | None:
        return self._engine.images if isinstance(self._engine, DockerSandbox) else None

    def __getattr__(self, name: str) -> Any:
        """Return a method of the engine's store: a method that builds, moves or removes images."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.require_engine().images, name)

    def require_engine(self) -> DockerSandbox:
        """Return the engine that builds images and keeps volumes.

        Raises:
            MachineError: none answers.
        """
        if isinstance(self._engine, MachineError):
            message = f"images are built and kept by a Docker engine, also for --sandbox kubernetes: {self._engine}"
            raise MachineError(message, advice=self._engine.advice)
        return self._engine

    def copy_volume(self, mount: Mount, out: IO[bytes]) -> None:
        """Write a volume of the engine as a tar whose paths begin with the last part of the mount's target.

        Raises:
            MachineError: no engine answers.
            Transient: it fails.
        """
        engine = self.require_engine().engine
        with translate_errors():
            container = engine.create_container(self.find_helper(), ["/none"], COPY_LIMITS, mounts=[mount])
            try:
                stream, _ = container.client.get_archive(container.id, mount.target)
                for chunk in stream:
                    out.write(chunk)
            finally:
                engine.remover.remove_later(lambda: container.id)

    # --- as ImageStore -----------------------------------------------------------------------------------------------

    def inspect(self, name: str) -> ImageInfo | None:
        """Return the image of that name; an image that a registry is known to have need not be here."""
        if name in self._copies:
            return self._copies[name]
        return self._store.inspect(name) if self._store is not None else None

    def pull_by_digest(self, reference: str, name: str) -> ImageInfo | None:
        """Note that the nodes pull an image by that reference; one of another registry is pulled to be pushed on."""
        if self._store is not None and not reference.startswith(f"{self.registry}/"):
            return self._store.pull_by_digest(reference, name)
        digest = reference.partition("@")[2]
        self._references[name] = reference
        return self._copies.setdefault(name, ImageInfo(name=name, digest=digest, layer_bytes=0))

    def get_engine_info(self) -> EngineInfo:
        """Return version of the cluster, and storage of the engine that keeps the images."""
        about = self._store.get_engine_info() if self._store is not None else None
        return EngineInfo(
            version=self._cluster,
            storage_driver=about.storage_driver if about else "none",
            root=about.root if about else "",
        )

    def hold(self) -> AbstractContextManager[None]:
        """Protect images of the engine from `prune`."""
        return self._store.hold() if self._store is not None else contextlib.nullcontext()

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a name exclusively among all processes of this machine."""
        return self._store.lock(name) if self._store is not None else hold_machine_lock(self._cluster, name)

    # --- as the nodes pull them --------------------------------------------------------------------------------------

    def resolve(self, image: str) -> str:
        """Return the reference by which nodes pull an image, which is pushed first where a registry is named.

        Raises:
            InputError: there is no such image, or the registry rejects it.
            Transient: engine or registry do not answer.
        """
        self.record_use(image)
        if image in self._copies:
            return self._references[image]
        if self.registry is None:
            return image
        target = f"{self.registry}/{self._name_tag(image)}"
        if self._store is None:
            return image if "@" in image else target
        info = self._store.inspect(image)
        if info is None:
            raise InputError(f"no such image: {image}", advice="mergemill images bootstrap")
        with self._lock:
            if info.digest not in self._references:
                digest = self._store.push(image, target)
                self._references[info.digest] = f"{target.rpartition(':')[0]}@{digest}"
            return self._references[info.digest]

    @staticmethod
    def _name_tag(image: str) -> str:
        """Return `REPOSITORY:TAG` of an image in the registry."""
        if image.startswith("sha256:"):
            return f"image:{image.removeprefix('sha256:')[:16]}"
        return image.removeprefix(IMAGE_PREFIX) if ":" in image else f"{image.removeprefix(IMAGE_PREFIX)}:latest"

    def find_helper(self) -> str:
        """Return the newest base image of Python here, whose Python takes the network away from pods.

        Raises:
            MachineError: there is none.
        """
        names = {
            (int(match[1]), int(match[2])): info.name
            for info in (self._store.find_by_label("mergemill.base") if self._store is not None else ())
            if (match := _PYTHON_BASE.match(info.name))
        }
        if not names:
            message = "pods without network need an image with Python, and there is no base image of Python"
            raise MachineError(message, advice="mergemill images bootstrap, or --kubernetes-helper-image IMAGE")
        return names[max(names)]
