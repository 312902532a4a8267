"""A Docker engine of its own, whose CPU seconds are counted apart from all other work of the machine.

The engine starts empty but for base images, so what it has built is known. It runs in a control group, together with
every process that is added and with its containers, and in the network of a container of the default engine, so that
the two engines do not change each other's bridges and packet filters. Needs root on Linux, `dockerd` and `nsenter`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import docker
from docker.errors import APIError, DockerException, NotFound

from core.errors import MachineError

CONTROL_GROUPS = Path("/sys/fs/cgroup")
BASES = "mergemill/base"
_BRIDGE = "10.123.0.1/24"
"""Address of the bridge. The default engine's containers, in whose network it is, have other ones."""
_START_SECONDS = 60
_STOP_SECONDS = 30
_REMOVE_SECONDS = 60


@dataclass(frozen=True)
class ControlGroup:
    """Processes whose CPU seconds the kernel counts together: those of `processes` and of all `containers`.

    Version 2 allows no processes in a group that has groups below it, hence the two.
    """

    name: str
    root: Path = CONTROL_GROUPS

    @property
    def containers(self) -> str:
        """Group of containers, as an engine's `--cgroup-parent`."""
        return f"/{self.name}/containers"

    @property
    def folder(self) -> Path:
        """Folder of the group in the hierarchy that counts CPU seconds."""
        return (self.root if (self.root / "cgroup.controllers").is_file() else self.root / "cpuacct") / self.name

    def create(self) -> None:
        """Create the group."""
        (self.folder / "processes").mkdir(parents=True)

    def add(self, pid: int) -> None:
        """Move a process with its threads into the group; processes that it starts will be there, too."""
        (self.folder / "processes" / "cgroup.procs").write_text(str(pid))

    def read_cpu_seconds(self) -> float:
        """Return the CPU seconds of all processes that are or were in the group or below it."""
        nanoseconds = self.folder / "cpuacct.usage"
        if nanoseconds.is_file():
            return int(nanoseconds.read_text()) / 1e9
        fields = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6

    def remove(self) -> None:
        """Move what runs in the group to its parent, end containers that outlived their engine, and remove it."""
        for process in (self.folder / "processes" / "cgroup.procs").read_text().split():
            (self.folder.parent / "cgroup.procs").write_text(process)
        for folder, _, _ in os.walk(self.folder, topdown=False):
            _remove_group(Path(folder))


def _remove_group(folder: Path) -> None:
    """Remove a group without groups below it, once its processes are killed."""
    end = time.monotonic() + _STOP_SECONDS
    while True:
        for process in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


@dataclass
class IsolatedEngine:
    """An engine of its own; `start` and `stop` are called by `start_engine`."""

    folder: Path
    command: Sequence[str]
    group: ControlGroup
    process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """For the variable DOCKER_HOST."""
        return f"unix://{self.folder}/engine.sock"

    @property
    def data(self) -> Path:
        """Folder of its images, volumes and build cache."""
        return self.folder / "data"

    def start(self) -> docker.DockerClient:
        """Start it, and return a client as soon as it answers.

        Raises:
            MachineError: it does not start.
        """
        log = self.folder / "engine.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(self.command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        return _connect(self.host, self.process, log)

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def kill(self) -> None:
        """Kill it and its containerd, as a crash would; what runs in containers is ended by the next start."""
        containerd = self.folder / "run" / "containerd" / "containerd.pid"
        with suppress(OSError, ValueError):
            os.kill(int(containerd.read_text()), signal.SIGKILL)
        if self.process:
            self.process.kill()
            self.process.wait()


def measure_bytes(folder: Path) -> int:
    """Return the bytes that a folder uses on its file system, without what is mounted in it."""
    # An engine removes containers in the background: `du` exits with 1 where a folder vanishes while it counts.
    command = ["du", "--one-file-system", "-sB1", str(folder)]
    return int(subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()[0])


@contextmanager
def start_engine(
    folder: Path, bases: Sequence[str] = ("*",), *, keep: bool = False, registries: Sequence[str] = ()
) -> Iterator[IsolatedEngine]:
    """Start an engine that has the default engine's base images, and stop it at the end; this process is counted, too.

    Args:
        folder: for its data; is created, and removed at the end unless it is kept.
        bases: patterns of the base images' tags, such as `python3.13-*`.
        keep: the folder stays, and may be that of an earlier engine, whose images and layers the new one then has.
        registries: addresses, HOST:PORT or a range, of registries without TLS.

    Raises:
        MachineError: not root, no default engine, or the engine does not start.
        FileExistsError: the folder exists and is not to be kept.
    """
    if os.geteuid() != 0 or not (dockerd := shutil.which("dockerd")):
        raise MachineError("an engine of its own needs root and dockerd: run it as root on a machine with docker.io")
    try:
        default = docker.from_env(version="auto")
        images = [image for pattern in bases for image in default.images.list(f"{BASES}:{pattern}")]
    except DockerException as error:
        raise MachineError(f"no Docker engine answers ({error}): scripts/setup docker") from error
    if not images:
        raise MachineError("the engine has no such base image: mergemill images bootstrap")
    tags = [tag for image in images for tag in image.tags]
    folder.mkdir(parents=True, exist_ok=keep)
    name = f"mergemill-engine-{hashlib.sha256(bytes(folder.absolute())).hexdigest()[:8]}"
    group = ControlGroup(name)
    _remove_killed_engine(folder, group, default)
    network = default.containers.run(
        tags[0], ["sleep", "infinity"], name=name, detach=True, init=True, auto_remove=True
    )
    engine = None
    try:
        group.create()
        pid = default.api.inspect_container(network.id)["State"]["Pid"]
        command = ["nsenter", f"--net=/proc/{pid}/ns/net", dockerd, "--host", f"unix://{folder}/engine.sock"]
        command += ["--bip", _BRIDGE, "--cgroup-parent", group.containers, "--data-root", str(folder / "data")]
        command += ["--exec-root", str(folder / "run"), "--pidfile", str(folder / "engine.pid")]
        command += [part for registry in registries for part in ("--insecure-registry", registry)]
        group.add(os.getpid())
        engine = IsolatedEngine(folder, command, group)
        _copy_images(tags, default, engine.start())
        yield engine
    finally:
        if engine:
            engine.stop()
        network.kill()
        group.remove()
        _unmount_below(folder)  # what an engine mounted that was killed and started again
        if not keep:
            shutil.rmtree(folder)


def _remove_killed_engine(folder: Path, group: ControlGroup, default: docker.DockerClient) -> None:
    """Stop the engine that a killed benchmark left running in a folder, and remove what it left elsewhere."""
    with suppress(OSError, ValueError):
        pid = int((folder / "engine.pid").read_text())
        if b"dockerd" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGTERM)
            _wait_for_end(pid)
    _unmount_below(folder)
    shutil.rmtree(folder / "run", ignore_errors=True)
    with suppress(NotFound):
        default.containers.get(group.name).remove(force=True)
    if group.folder.exists():
        group.remove()


def _unmount_below(folder: Path) -> None:
    places = [line.split(" ")[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in sorted((mount for mount in places if mount.startswith(f"{folder.absolute()}/")), reverse=True):
        subprocess.run(["umount", "--lazy", place], check=False)


def _wait_for_end(pid: int) -> None:
    end = time.monotonic() + _STOP_SECONDS
    while time.monotonic() < end and Path(f"/proc/{pid}").exists():
        time.sleep(0.2)


def _connect(host: str, process: subprocess.Popen[bytes], log: Path) -> docker.DockerClient:
    """Return a client of the engine as soon as it answers."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return docker.DockerClient(base_url=host, version="auto")
        except (DockerException, OSError) as error:
            if process.poll() is not None or time.monotonic() > end:
                last = log.read_text(errors="replace").strip().rpartition("\n")[2]
                raise MachineError(f"an engine of its own does not start: {last}") from error
            time.sleep(0.2)


def _copy_images(images: Iterable[str], source: docker.DockerClient, target: docker.DockerClient) -> None:
    """Copy images that another engine lacks."""
    present = {tag for image in target.images.list(BASES) for tag in image.tags}
    for tag in (image for image in images if image not in present):
        target.images.load(source.images.get(tag).save(named=tag))


def remove_built_images(engine: IsolatedEngine) -> None:
    """Remove all containers, volumes and images of an engine but its base images, as if it had just been started."""
    client = docker.DockerClient(base_url=engine.host, version="auto")
    end = time.monotonic() + _REMOVE_SECONDS
    while containers := client.api.containers(all=True):
        for container in containers:
            _remove_container(client, container["Id"])
        if time.monotonic() > end:
            raise MachineError(f"an engine of its own keeps {len(containers)} containers")
        time.sleep(0.2)
    for volume in client.volumes.list():
        volume.remove(force=True)
    while built := [image for image in client.images.list() if not any(tag.startswith(BASES) for tag in image.tags)]:
        for image in built:
            with suppress(DockerException):  # others are built on it: they are removed first, in this round
                client.images.remove(image.id, force=True)


def _remove_container(client: docker.DockerClient, container: str) -> None:
    """Remove a container, or leave it to who is removing it: pools do so after the stage that used them."""
    try:
        client.api.remove_container(container, force=True)
    except APIError as error:
        if error.status_code not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
            raise
