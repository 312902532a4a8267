"""The sandbox on a Docker engine (20.10 or newer). The only file that imports the docker SDK.

A run is: create, put files, attach, start, follow the output while looking at clock and disk, read the exit code, bring
files back; a thread removes the container afterwards. `series` has the next one started meanwhile. Each thread has a
client of its own.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import itertools
import json
import logging
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import IO

import docker
import docker.errors
from docker.utils import kwargs_from_env

from backends.sandbox import archive, owner
from backends.sandbox.base import EngineInfo, ImageInfo, Limits, Ran, Stored
from backends.sandbox.box import HOSTNAME, HOSTS, Box, host_config
from backends.sandbox.inventory import inventory, taken
from backends.sandbox.leases import Leases
from backends.sandbox.locks import machine_lock
from backends.sandbox.registry import SLOW_SECONDS, Registry, split
from backends.sandbox.removal import AWAY, Removal
from backends.sandbox.series import COMMAND, Boxes, Waiting
from backends.sandbox.shell import StayingBox, staying
from mergemill.errors import InputError, MachineError, MergemillError, Stopped, Transient

log = logging.getLogger(__name__)

SETUP = "scripts/setup docker"
SECONDS = 60
"""How long the engine may be silent on an ordinary request."""
BROKEN = (docker.errors.DockerException, *AWAY)


def translated(error: Exception) -> MergemillError | None:
    """The engine's trouble in this program's words; None when it is a bug of ours (a request that makes no sense)."""
    text = str(getattr(error, "explanation", None) or error)
    if isinstance(error, docker.errors.ImageNotFound):
        return InputError(f"no such image: {text}", advice="mergemill images bootstrap")
    if "no space left" in text.lower():
        return Transient(f"the disk is full: {text}", advice="free disk space, for example: mergemill images prune")
    if isinstance(error, docker.errors.APIError):
        if error.response is not None and error.is_client_error() and not isinstance(error, docker.errors.NotFound):
            return None
        return Transient(f"the Docker engine failed: {text}", advice="the same command goes on later")
    return Transient(f"the Docker engine is out of reach: {text}", advice=f"{SETUP}, then the same command again")


@contextlib.contextmanager
def engine_errors() -> Iterator[None]:
    """Turn the engine's exceptions into InputError and Transient.

    Raises:
        InputError: there is no such image.
        Transient: the engine is out of reach, failed, or its disk is full.
    """
    try:
        yield
    except MergemillError:
        raise
    except BROKEN as error:
        known = translated(error)
        if known is None:
            raise
        raise known from error


class DockerSandbox:
    """The engine that DOCKER_HOST names, or the local one. May be shared by threads.

    Args:
        used: is told the name of every image that is used, each time.

    Raises:
        MachineError: no engine answers.
    """

    def __init__(self, used: Callable[[str], None] = lambda _: None) -> None:
        self._local = threading.local()
        self._clients: list[docker.APIClient] = []
        # Closed with this object or at exit, whichever comes first; whoever makes a sandbox need not think of it.
        weakref.finalize(self, _close, self._clients)
        self._where = kwargs_from_env()
        self._version = "auto"
        try:
            client = self._client()
            info = client.info()
        except BROKEN as error:
            at = self._where.get("base_url", "its usual socket")
            raise MachineError(f"no Docker engine answers at {at}: {error}", advice=SETUP) from error
        self._version = client.api_version
        self._cpus = float(info["NCPU"])
        self._id = str(info.get("ID") or client.base_url)
        self._waiters = ThreadPoolExecutor(max_workers=64, thread_name_prefix="mergemill-wait")
        self._removal = Removal(self._client)
        self._stopping = threading.Event()
        self._registry = Registry(self._client, self._stopping)
        self._used = used
        self._leases = Leases(self._id, used)

    def _client(self, seconds: int = SECONDS) -> docker.APIClient:
        """This thread's client that waits so long."""
        clients: dict[int, docker.APIClient] = self._local.__dict__.setdefault("clients", {})
        if seconds not in clients:
            clients[seconds] = docker.APIClient(version=self._version, timeout=seconds, **self._where)
            self._clients.append(clients[seconds])
        return clients[seconds]

    def about(self) -> EngineInfo:
        """Version, storage driver and folder of the engine."""
        with engine_errors():
            info = self._client().info()
        return EngineInfo(version=info["ServerVersion"], storage_driver=info["Driver"], root=info["DockerRootDir"])

    # --- running -------------------------------------------------------------------------------------------------

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
        """Run `command` in a fresh container; see `backends.sandbox.base.Sandbox.run`."""
        brought = {**({} if network else {"/etc/hosts": HOSTS.encode()}), **(files or {})}
        with engine_errors(), self._box(image, command, limits, env=env or {}, network=network, user=user) as box:
            if brought:
                box.put(archive.pack(brought))
            return box.execute(collect)

    @contextlib.contextmanager
    def series(self, image: str, *, limits: Limits) -> Iterator[Boxes]:
        """Runs of one image, one after the other; see `backends.sandbox.base.Sandbox.series`."""

        def make() -> Waiting:
            box = self._create(image, COMMAND, limits, stdin=True)
            try:
                return Waiting(box)
            except BaseException:
                self._removal.later(lambda: box.id)
                raise

        self._leases.hold(image)
        boxes = Boxes(make, self._removal.later, self._waiters, engine_errors)
        try:
            yield boxes
        finally:
            boxes.close()

    @contextlib.contextmanager
    def shell(
        self,
        image: str,
        *,
        limits: Limits,
        tree: Callable[[], AbstractContextManager[IO[bytes]]] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "/",
    ) -> Iterator[StayingBox]:
        """A container that stays; see `backends.sandbox.base.Sandbox.shell`."""
        make = functools.partial(self._create, image, staying(limits.seconds), limits, network=True)
        box = StayingBox(make, tree, files or {}, self._removal.later, engine_errors, env=env or {}, workdir=workdir)
        with contextlib.closing(box):
            yield box

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
        """Run `command` and keep what it left as an image; see `backends.sandbox.base.Sandbox.build`.

        Neither command nor environment are in the container's configuration, which the engine would copy into the
        image: both come as a script under /run/mergemill that removes itself and `files` when the command is done.
        """
        brought = {**(files or {}), archive.COMMAND_FILE: archive.script(command, env or {}, files or ())}
        with (
            engine_errors(),
            self._box(base, ["/bin/sh", archive.COMMAND_FILE], limits, env={}, network=network, user="root") as box,
        ):
            packed = archive.pack(brought, goes_on=tree is not None)
            box.put(packed if tree is None else itertools.chain([packed], archive.pieces(tree)))
            ran = box.execute(())
            if ran.exit_code or ran.killed_by:
                return ran, None
            repository, tag = split(name)
            self._leases.hold(name)
            self._client(SLOW_SECONDS).commit(
                box.id, repository, tag,
                conf={
                    "Entrypoint": [], "Cmd": ["/bin/bash"], "User": "root", "WorkingDir": workdir or "",
                    "Env": [f"{key}={value}" for key, value in (keep_env or {}).items()], "Labels": dict(labels or {}),
                },
            )  # fmt: skip
            return ran, self.image(name)

    @contextlib.contextmanager
    def _box(
        self, image: str, command: Sequence[str], limits: Limits, *, env: Mapping[str, str], network: bool, user: str
    ) -> Iterator[Box]:
        box = self._create(image, command, limits, env=env, network=network, user=user)
        try:
            yield box
        finally:
            self._removal.later(lambda: box.id)

    def _create(
        self,
        image: str,
        command: Sequence[str],
        limits: Limits,
        *,
        env: Mapping[str, str] | None = None,
        network: bool = False,
        user: str = "root",
        stdin: bool = False,
    ) -> Box:
        """Without network the engine is not even asked for an empty one: that takes it longer than all the rest."""
        if self._stopping.is_set():
            raise Stopped("stopped")
        self._leases.hold(image)
        self._used(image)
        client = self._client()
        made = client.create_container(
            image, list(command[1:]), entrypoint=[command[0]], environment=dict(env or {}), user=user,
            hostname=HOSTNAME, name=owner.new_name(), use_config_proxy=False, stdin_open=stdin,
            network_disabled=not network, host_config=host_config(client, limits, network=network, cpus=self._cpus),
        )  # fmt: skip
        return Box(made["Id"], self._client, self._waiters, limits, self._stopping)

    def orphans(self) -> list[str]:
        """Ids of containers of drivers of this machine that no longer live."""
        with engine_errors():
            found = self._client().containers(all=True, filters={"name": owner.PREFIX})
        return [c["Id"] for c in found if any(owner.is_orphan(name) for name in c["Names"] or ())]

    def reap(self) -> int:
        """Remove containers of drivers of this machine that no longer live; how many."""
        return sum(self._removal.now(container) for container in self.orphans())

    def lock(self, name: str) -> AbstractContextManager[None]:
        """One holder at a time of the name, among all processes of this machine that use this engine."""
        return machine_lock(self._id, name)

    def stop(self) -> None:
        """End what runs and start nothing more: `run` and `build`, in all threads, raise Stopped within seconds."""
        self._stopping.set()

    def flush(self) -> None:
        """Wait until the containers of finished runs are gone."""
        self._removal.flush()

    # --- images --------------------------------------------------------------------------------------------------

    def image(self, name: str) -> ImageInfo | None:
        """The image of that name or digest, or None."""
        self._leases.hold(name)
        with engine_errors():
            client = self._client()
            try:
                found = client.inspect_image(name)
                sizes = [step["Size"] for step in client.history(found["Id"])]
            except docker.errors.NotFound:
                self._leases.drop(name)
                return None
        return ImageInfo(
            name=name,
            digest=found["Id"],
            layer_bytes=next((size for size in sizes if size), 0),
            labels=found["Config"].get("Labels") or {},
        )

    def images(self, label: str) -> list[ImageInfo]:
        """All images with a name that carry the label (`key` or `key=value`)."""
        with engine_errors():
            found = self._client().images(filters={"label": [label]})
        names = sorted(tag for entry in found for tag in entry["RepoTags"] or () if tag != "<none>:<none>")
        return [info for info in map(self.image, names) if info]

    def inventory(self, prefix: str) -> list[Stored]:
        """All images whose names begin so, layer by layer."""
        with engine_errors():
            return inventory(self._client(), prefix)

    def taken(self, prefix: str) -> int:
        """About how many bytes these images take."""
        with engine_errors():
            return taken(self._client(), prefix)

    def holding(self) -> AbstractContextManager[None]:
        """Images that this thread finds, makes or uses in this block are not pruned before its end."""
        return self._leases.holding()

    def prune_image(self, name: str) -> bool:
        """Remove the image unless somebody holds or uses it; whether it is gone."""
        with self._leases.alone(name) as free:
            if free:
                self.remove_image(name)
            return free and self.image(name) is None

    def remove_image(self, name: str) -> None:
        """Remove the image if it is there and nothing uses it."""
        with engine_errors(), contextlib.suppress(docker.errors.NotFound):
            try:
                self._client(SLOW_SECONDS).remove_image(name)
            except docker.errors.APIError as error:
                if error.status_code != http.HTTPStatus.CONFLICT:
                    raise
                log.info("image %s is in use and stays", name)

    def pull(self, name: str, *, seconds: float) -> bool:
        """Whether the registry answered within `seconds` and the image is here now; see `Registry.pull`."""
        return self._registry.pull(name, seconds=seconds) and self.image(name) is not None

    def push(self, name: str, target: str) -> str:
        """Push an image; see `backends.sandbox.registry.Registry.push`."""
        with engine_errors(), self.lock(f"push-{name}"), self.holding():
            self._leases.hold(name)
            return self._registry.push(name, target)

    def fetch(self, reference: str, name: str) -> ImageInfo | None:
        """Pull an image by digest; see `backends.sandbox.registry.Registry.fetch`. One thread at a time does it."""
        self._leases.hold(name)
        with engine_errors(), self.lock(f"fetch-{name}"):
            if found := self.image(name):
                return found
            self._used(name)
            return self.image(name) if self._registry.fetch(reference, name) else None

    def registry_has(self, reference: str) -> bool:
        """Whether the registry still has it; see `backends.sandbox.registry.Registry.has`."""
        with engine_errors():
            return self._registry.has(reference)

    def import_rootfs(self, tar: IO[bytes], name: str, *, env: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a one-layer image of an uncompressed root file system."""
        repository, tag = split(name)
        changes = ['CMD ["/bin/bash"]']
        changes += [f"ENV {key}={json.dumps(value)}" for key, value in env.items()]
        changes += [f"LABEL {key}={json.dumps(value)}" for key, value in labels.items()]
        with engine_errors():
            said = self._client(SLOW_SECONDS).import_image_from_data(
                archive.pieces(tar), repository=repository, tag=tag, changes=changes
            )
            last = json.loads(said.splitlines()[-1]) if said else {}
            if "error" in last:
                raise docker.errors.DockerException(last["error"])

    @contextlib.contextmanager
    def layers(self, name: str) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
        """Each layer of the image, base first: (diff id, uncompressed tar stream).

        The engine writes layers in an order of its own and their list last, so the image goes through a temporary
        file.
        """
        with tempfile.TemporaryFile() as spool:
            with engine_errors():
                if self.image(name) is None:
                    raise InputError(f"no such image: {name}")
                for piece in self._client(SLOW_SECONDS).get_image(name):
                    spool.write(piece)
            spool.seek(0)
            yield archive.saved_layers(spool)


def _close(clients: list[docker.APIClient]) -> None:
    for client in clients:
        with contextlib.suppress(*BROKEN):
            client.close()
