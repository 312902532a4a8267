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
import queue
import shlex
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, cast

import docker
import docker.errors
from docker.utils import kwargs_from_env

from backends.sandbox import archive, owner
from backends.sandbox.base import ImageInfo, Limits, Ran
from backends.sandbox.box import HOSTNAME, HOSTS, Box
from backends.sandbox.locks import machine_lock
from backends.sandbox.removal import AWAY, Removal
from backends.sandbox.series import COMMAND, Boxes, Waiting
from backends.sandbox.shell import StayingBox, staying
from mergemill.errors import InputError, MachineError, MergemillError, Stopped, Transient

log = logging.getLogger(__name__)

SETUP = "scripts/setup docker"
SECONDS = 60
"""How long the engine may be silent on an ordinary request."""
SLOW_SECONDS = 1800
"""The same where it moves whole images."""
BROKEN = (docker.errors.DockerException, *AWAY)
COMMAND_FILE = f"{archive.OWN_FOLDER}/command"
DROPPED_CAPABILITIES = ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP"]


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


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """What the engine says of itself; `root` is the folder of its images on its machine."""

    version: str
    storage_driver: str
    root: str


class DockerSandbox:
    """The engine that DOCKER_HOST names, or the local one. May be shared by threads.

    Raises:
        MachineError: no engine answers.
    """

    def __init__(self) -> None:
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
        self._unreachable: str | None = None
        self._stopping = threading.Event()

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
        brought = {**(files or {}), COMMAND_FILE: _script(command, env or {}, files or ())}
        with (
            engine_errors(),
            self._box(base, ["/bin/sh", COMMAND_FILE], limits, env={}, network=network, user="root") as box,
        ):
            packed = archive.pack(brought, goes_on=tree is not None)
            box.put(packed if tree is None else itertools.chain([packed], archive.pieces(tree)))
            ran = box.execute(())
            if ran.exit_code or ran.killed_by:
                return ran, None
            repository, tag = _split(name)
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
        client = self._client()
        made = client.create_container(
            image, list(command[1:]), entrypoint=[command[0]], environment=dict(env or {}), user=user,
            hostname=HOSTNAME, name=owner.new_name(), use_config_proxy=False, stdin_open=stdin,
            network_disabled=not network, host_config=self._host_config(client, limits, network),
        )  # fmt: skip
        return Box(made["Id"], self._client, self._waiters, limits, self._stopping)

    def _host_config(self, client: docker.APIClient, limits: Limits, network: bool) -> dict[str, Any]:
        memory, disk = (megabytes * 1024 * 1024 for megabytes in (limits.memory_mb, limits.disk_mb))
        ulimits = {"fsize": disk, "nofile": 4096, "core": 0}
        config = client.create_host_config(
            network_mode="default" if network else "none",
            mem_limit=memory, memswap_limit=memory, pids_limit=limits.pids,
            nano_cpus=int(min(limits.cpus, self._cpus) * 1e9),
            security_opt=["no-new-privileges"], cap_drop=DROPPED_CAPABILITIES,
            ulimits=[{"Name": name, "Soft": value, "Hard": value} for name, value in ulimits.items()],
            log_config={"Type": "none"},
            extra_hosts={HOSTNAME: "127.0.0.1"} if network else None,
        )  # fmt: skip
        return cast("dict[str, Any]", config)

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
        with engine_errors():
            client = self._client()
            try:
                found = client.inspect_image(name)
                sizes = [step["Size"] for step in client.history(found["Id"])]
            except docker.errors.NotFound:
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
        """Whether the registry answered within `seconds` and the image is here now.

        A registry that was out of reach once is not asked again by this object: each try can cost half a minute.
        """
        if self._unreachable is not None:
            return False
        events: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()
        threading.Thread(target=self._pull, args=(name, events), daemon=True).start()
        patience = seconds
        while True:
            try:
                event = events.get(timeout=patience)
            except queue.Empty:
                event = TimeoutError(f"no answer in {patience:.0f} s")
            if event is None:
                return self.image(name) is not None
            if isinstance(event, Exception) or "error" in event:
                said = str(event if isinstance(event, Exception) else event["error"])
                if "not found" not in said and "manifest unknown" not in said:
                    self._unreachable = said
                log.info("%s cannot be pulled: %s", name, said)
                return False
            patience = SLOW_SECONDS

    def _pull(self, name: str, events: queue.Queue[dict[str, Any] | Exception | None]) -> None:
        try:
            for event in self._client(SLOW_SECONDS).pull(name, stream=True, decode=True):
                events.put(event)
        except BROKEN as error:
            events.put(error)
        else:
            events.put(None)

    def import_rootfs(self, tar: IO[bytes], name: str, *, env: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a one-layer image of an uncompressed root file system."""
        repository, tag = _split(name)
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


def _split(name: str) -> tuple[str, str]:
    """Repository and tag of an image name; a colon before the last slash belongs to the registry."""
    repository, colon, tag = name.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (name, "latest")


def _script(command: Sequence[str], env: Mapping[str, str], files: Mapping[str, bytes] | tuple[()]) -> bytes:
    """The shell script that runs `command` with `env` and removes itself and `files`."""
    exports = [f"export {key}={shlex.quote(value)}" for key, value in env.items()]
    gone = shlex.join(["rm", "-rf", archive.OWN_FOLDER, *files])
    return "\n".join([*exports, shlex.join(command), "code=$?", f"{gone} || exit 70", "exit $code", ""]).encode()
