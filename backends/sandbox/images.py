"""Image store protocol: build, inspect, move and remove the images that containers are started from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from backends.sandbox.execution import ExecResult, ResourceLimits


BASE_IMAGE_LABEL = "mergemill.base-image"
"""Label of an environment's image: name of the base image that it was built on."""


@dataclass(frozen=True, kw_only=True)
class ImageInfo:
    """Image in the store. `digest` is its id (`sha256:...`), `layer_bytes` the size of its last layer.

    `layers` are the digests of its uncompressed layers, the lowest first; empty where they are not known.
    """

    name: str
    digest: str
    layer_bytes: int
    labels: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """Version and storage of a container engine; `root` is the folder of its images on its machine."""

    version: str
    storage_driver: str
    root: str


@dataclass(frozen=True, kw_only=True)
class ImageLayer:
    """Layer of an image. `chain` identifies it together with all layers below, `size` is in bytes."""

    chain: str
    size: int


@dataclass(frozen=True, kw_only=True)
class StoredImage:
    """Named image with its layers, base first."""

    name: str
    digest: str
    layers: tuple[ImageLayer, ...]
    labels: Mapping[str, str] = field(default_factory=dict)


class ImageStore(Protocol):
    """Images of an engine. Names are `REPOSITORY:TAG`. Threads may share a store.

    All methods raise `core.errors.Transient` where the engine cannot be reached or its disk is full.
    """

    def build(
        self,
        base: str,
        command: Sequence[str],
        name: str,
        *,
        limits: ResourceLimits,
        tree: IO[bytes] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        keep_env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        network: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[ExecResult, ImageInfo | None]:
        """Run `command` as root in a container of `base` and commit the container as image `name`.

        Args:
            base: image to start from.
            command: program and arguments.
            name: name of the new image.
            limits: limits of the container.
            tree: tar stream that is unpacked at `/` before the start and kept in the image.
            files: absolute path -> content, present while the command runs and not in the image.
            env: environment variables of the command, not of the image.
            keep_env: environment variables of the image.
            workdir: working directory of the image.
            network: whether the container has a network.
            labels: labels of the image.

        Returns:
            The command's result, and the image; None where the command failed.
        """
        ...

    def inspect(self, name: str) -> ImageInfo | None:
        """Return the image of that name or digest, or None."""
        ...

    def find_by_label(self, label: str) -> list[ImageInfo]:
        """Return all named images that carry the label (`key` or `key=value`)."""
        ...

    def list_images(self, prefix: str) -> list[StoredImage]:
        """Return all images whose names start with `prefix`, with their layers."""
        ...

    def estimate_size(self, prefix: str) -> int:
        """Return about how many bytes the images with that prefix take; faster than `list_images`."""
        ...

    def get_engine_info(self) -> EngineInfo:
        """Return version, storage driver and folder of the engine."""
        ...

    def load_archive(self, chunks: Iterable[bytes]) -> None:
        """Add the images of an archive in the format of `docker save` to the engine.

        Raises:
            InputError: the engine cannot read it.
        """
        ...

    def open_layers(self, name: str) -> AbstractContextManager[Iterator[tuple[str, IO[bytes]]]]:
        """Open the layers of an image, base first: (diff id, uncompressed tar stream), each readable once, in order.

        Raises:
            InputError: there is no such image.
        """
        ...

    def open_archive(self, names: Sequence[str]) -> AbstractContextManager[Iterator[bytes]]:
        """Open the archive that `docker save NAME...` writes, in chunks; layers that images share are in it once.

        Raises:
            InputError: any of the images does not exist.
        """
        ...

    def import_rootfs(self, tar: IO[bytes], name: str, *, env: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Create an image of a layer from an uncompressed tar of a root file system."""
        ...

    def hold(self) -> AbstractContextManager[None]:
        """Protect the images that this thread finds, builds or uses within the block from `prune`."""
        ...

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a name exclusively among all processes of this machine that use this engine; others wait."""
        ...

    def prune(self, name: str) -> bool:
        """Remove the image unless it is held or a container uses it; return whether it is gone."""
        ...

    def remove(self, name: str) -> None:
        """Remove the image if it exists and no container uses it."""
        ...

    def pull(self, name: str, *, seconds: float) -> bool:
        """Pull an image by tag; return whether the registry answered within `seconds` and the image is here."""
        ...

    def push(self, name: str, target: str) -> str:
        """Push an image to a registry as `HOST/PREFIX/env:TAG` and return its manifest's digest.

        Raises:
            InputError: the registry rejects it.
        """
        ...

    def pull_by_digest(self, reference: str, name: str) -> ImageInfo | None:
        """Pull `HOST/PREFIX/env@sha256:...` and name it `name`; return None where the registry does not have it.

        Raises:
            InputError: the registry denies access or serves other bytes.
        """
        ...

    def has_remote(self, reference: str) -> bool:
        """Return whether the registry has the manifest that `reference` names by digest.

        Raises:
            InputError: the registry denies access.
        """
        ...
