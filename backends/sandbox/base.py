"""What a sandbox is: run a command in a fresh box and get its result, or make an image of it.

A failed command is a result (`Ran`); a dead engine is an exception (`mergemill.errors.Transient`). Results come back
as files the caller named, never by reading a screen. Everything that runs foreign code runs behind this protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO, Protocol


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a box may use. `seconds` wall time; `*_mb` mebibytes; `output_bytes` of stdout and stderr together kept."""

    seconds: float
    memory_mb: int
    disk_mb: int
    pids: int
    cpus: float
    output_bytes: int


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A command that ended. `killed_by` is `time`, `memory`, `disk` or None; then `exit_code` is the signal's."""

    exit_code: int
    output: str
    """stdout and stderr as they came, head and tail when longer than the limit."""
    files: Mapping[str, bytes]
    """Of the files asked for, those that exist afterwards."""
    seconds: float
    killed_by: str | None


@dataclass(frozen=True, kw_only=True)
class ImageInfo:
    """An image as the engine knows it. `digest` is its id (`sha256:...`), `layer_bytes` the size of its last layer."""

    name: str
    digest: str
    layer_bytes: int
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """What the engine says of itself; `root` is the folder of its images on its machine."""

    version: str
    storage_driver: str
    root: str


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of an image. `chain` names it with all below it, `size` in bytes."""

    chain: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Stored:
    """An image with a name, and what it consists of, base first."""

    name: str
    digest: str
    layers: tuple[Layer, ...]
    labels: Mapping[str, str] = field(default_factory=dict)


class Series(Protocol):
    """Runs of one image, one after the other, as root and without network. Each has a fresh container of its own."""

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        last: bool = False,
    ) -> Ran:
        """Run `command` as `Sandbox.run` does; nothing is brought back of one that was killed.

        `files`: only root may read them.
        `last`: no other will follow at once, so none needs to be made ready.

        Raises:
            Transient, InputError: as `Sandbox.run`.
        """
        ...


class Shell(Protocol):
    """A container that stays: commands run in it one after the other, as root, and see what those before left."""

    def run(self, command: str, *, seconds: float) -> Ran:
        """Run a line of bash, for so long at most. It brings no files.

        One that was killed for `time` or `disk` may have taken the container with it; then the next command finds a
        fresh one.

        Raises:
            Transient, InputError: as `Sandbox.run`.
        """
        ...


class Sandbox(Protocol):
    """One engine."""

    def run(
        self,
        image: str,
        command: Sequence[str],
        *,
        limits: Limits,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
    ) -> Ran:
        """Run `command` in a fresh container of `image`, which is gone afterwards.

        `files`: absolute path -> content, there before the start (owner root, mode 0644).
        `collect`: absolute paths of regular files to bring back.

        Raises:
            Transient: the engine is out of reach or its disk is full.
            InputError: there is no such image.
        """
        ...

    def series(self, image: str, *, limits: Limits) -> AbstractContextManager[Series]:
        """Runs of `image`; the next container is started while one runs, so each costs little beyond its command.

        The image needs bash, coreutils and tar.
        """
        ...

    def shell(
        self,
        image: str,
        *,
        limits: Limits,
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/",
    ) -> AbstractContextManager[Shell]:
        """A container of `image` with network that stays for `limits.seconds` and is made at its first command.

        `tree`: opens a tar stream that is unpacked at `/` before; `workdir` must be there then.
        """
        ...

    def build(
        self,
        base: str,
        command: Sequence[str],
        name: str,
        *,
        limits: Limits,
        tree: IO[bytes] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        keep_env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        network: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[Ran, ImageInfo | None]:
        """Run `command` as root in a container of `base` and keep what it left as image `name`.

        `tree`: a tar stream unpacked at `/` before the start and kept. `files` and `env` are there while the command
        runs and leave no trace in the image (`files` are removed, `env` is not kept); `keep_env` and `workdir` are
        the image's configuration. The image is None when the command failed.
        """
        ...

    def image(self, name: str) -> ImageInfo | None:
        """The image of that name or digest, or None."""
        ...

    def images(self, label: str) -> list[ImageInfo]:
        """All images that carry the label."""
        ...

    def pull(self, name: str, *, seconds: float) -> bool:
        """Whether the registry answered and the image is here now."""
        ...

    def import_rootfs(self, tar: IO[bytes], name: str, *, env: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a one-layer image of an uncompressed root file system."""
        ...

    def layers(self, name: str) -> AbstractContextManager[Iterator[tuple[str, IO[bytes]]]]:
        """Each layer of the image, base first: (diff id, uncompressed tar stream), each readable once, in order."""
        ...

    def remove_image(self, name: str) -> None:
        """Remove the image if it is there and nothing uses it."""
        ...

    def inventory(self, prefix: str) -> list[Stored]:
        """All images whose names begin so."""
        ...

    def taken(self, prefix: str) -> int:
        """About how many bytes these images take on the engine's disk; quicker to say than `inventory`."""
        ...

    def about(self) -> EngineInfo:
        """Version, storage driver and folder of the engine."""
        ...

    def holding(self) -> AbstractContextManager[None]:
        """Images that this thread finds, makes or uses in this block are not pruned before its end."""
        ...

    def prune_image(self, name: str) -> bool:
        """Remove the image unless somebody holds or uses it; whether it is gone."""
        ...

    def push(self, name: str, target: str) -> str:
        """Push an image to a registry as `HOST/PREFIX/env:TAG`; the digest of its manifest."""
        ...

    def fetch(self, reference: str, name: str) -> ImageInfo | None:
        """Pull `HOST/PREFIX/env@sha256:...` and call it `name`; None when the registry has no such thing."""
        ...

    def registry_has(self, reference: str) -> bool:
        """Whether the registry still has what `reference` names by its digest."""
        ...

    def lock(self, name: str) -> AbstractContextManager[None]:
        """One holder at a time of the name, among all processes of this machine that use this engine."""
        ...

    def stop(self) -> None:
        """End what runs and start nothing more: `run` and `build`, in all threads, raise `mergemill.errors.Stopped`."""
        ...

    def reap(self) -> int:
        """Remove what dead drivers left behind; how many containers that were."""
        ...
