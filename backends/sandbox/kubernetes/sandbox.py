"""Sandbox of a Kubernetes cluster.

A run creates a pod, waits for its node, runs a command by exec and deletes the pod in the background. A pool creates
the next pod meanwhile. Only the API server is spoken to: files, commands and results are streams of exec.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, cast

from backends.sandbox import archive
from backends.sandbox.container_names import is_orphan, make_container_name
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.image_registry import parse_registry
from backends.sandbox.kubernetes.api import BusyNamespaceError, ClusterApi
from backends.sandbox.kubernetes.images import ClusterImageStore
from backends.sandbox.kubernetes.manifest import SELECTOR, PodSettings, build_pod
from backends.sandbox.kubernetes.mounts import SocketMount, split_mounts
from backends.sandbox.kubernetes.pod import Pod, create_pod
from backends.sandbox.kubernetes.process import KubernetesProcess
from backends.sandbox.kubernetes.script import Request
from backends.sandbox.kubernetes.session import KubernetesSession
from backends.sandbox.mounts import Mount
from backends.sandbox.pool import WarmContainerPool
from backends.sandbox.removal import ContainerRemover
from core.errors import Transient

if TYPE_CHECKING:
    from backends.sandbox.base import ContainerSession
    from backends.sandbox.images import ImageStore
    from backends.sandbox.volumes import VolumeStore
    from core.settings.machine import SandboxSettings

LEFT_SECONDS = 600
"""Seconds after the deadline of a pod from which it is removed, whoever created it."""
ROOT = "root"
_PROBE_LIMITS = ResourceLimits(seconds=1, memory_mb=64, disk_mb=64, pids=16, cpus=0.1, output_bytes=1)


@dataclass(frozen=True)
class WarmPod:
    """A pod that waits for its command (`backends.sandbox.pool.StartedContainer`)."""

    pod: Pod

    @property
    def id(self) -> str:
        """Name of the pod."""
        return self.pod.name

    def run(
        self,
        command: Sequence[str],
        files: Mapping[str, bytes],
        collect: Sequence[str],
        env: Mapping[str, str],
        seconds: float | None = None,
    ) -> ExecResult:
        """Run the command. `seconds`: limit below that of the pod; None for its own."""
        tar = archive.build_tar(files, mode=0o600)
        limit = min(self.pod.limits.seconds, seconds or self.pod.limits.seconds)
        return self.pod.run(Request(words=command, env=env, tar=tar, collect=collect), limit)

    def close(self) -> None:
        """Do nothing: a waiting pod has no streams."""


class KubernetesSandbox:
    """Sandbox of a namespace of a cluster. Threads may share it.

    Args:
        api: api of the cluster.
        images: the images that its nodes run.
        settings: settings of all pods.
        helper_image: image with Python that takes the network away; None for a base image of the engine.
        pending_seconds: how long a pod waits for a node with room, or for quota.

    Raises:
        MachineError: the user or the namespace lacks a right.
        UsageError: there is no such namespace, or a setting names something that does not exist.
    """

    def __init__(
        self,
        api: ClusterApi,
        images: ClusterImageStore,
        settings: PodSettings,
        *,
        helper_image: str | None,
        pending_seconds: float,
    ) -> None:
        self._api = api
        self._images = images
        self._settings = settings
        self._helper_image = helper_image
        self._pending_seconds = pending_seconds
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(max_workers=64, thread_name_prefix="mergemill-pod")
        self._remover = ContainerRemover(self._delete_pod)
        self.images = cast("ImageStore", images)
        self._check_namespace()

    @property
    def volumes(self) -> VolumeStore:
        """Volumes of the Docker engine, of which pods have copies."""
        return self._images.require_engine().volumes

    def _check_namespace(self) -> None:
        """Let the API server check a pod without creating it."""
        self._api.check_rights()
        probe = build_pod(make_container_name(), "probe", _PROBE_LIMITS, self._settings, helper="probe")
        with contextlib.suppress(BusyNamespaceError):
            self._api.create_pod(probe, dry_run=True)

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
        user: str = ROOT,
    ) -> ExecResult:
        """Run `command` in a fresh pod; see `backends.sandbox.base.Sandbox.run`."""
        words = list(command) if user == ROOT else ["runuser", "-u", user, "--", *command]
        request = Request(words=words, env=env or {}, tar=archive.build_tar(files or {}), collect=collect)
        pod = self._start_pod(image, limits, network=network)
        try:
            return pod.run(request, limits.seconds)
        finally:
            self._remove_later(pod.name)

    @contextlib.contextmanager
    def open_pool(self, image: str, *, limits: ResourceLimits) -> Iterator[WarmContainerPool]:
        """Open a pool of pods; see `backends.sandbox.base.Sandbox.open_pool`."""
        pool = WarmContainerPool(
            lambda: WarmPod(self._start_pod(image, limits)),
            self._remover.remove_later,
            self._threads,
            contextlib.nullcontext,
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
    ) -> Iterator[ContainerSession]:
        """Open a session in a single pod; see `backends.sandbox.base.Sandbox.open_session`.

        A pod has copies of read-only volumes and folders, and tunnels to sockets in them. A session that writes into a
        volume, which installs programs, has a container of the Docker engine.

        Raises:
            UsageError: a folder is to be mounted that has something else than files and sockets.
            MachineError: volumes are to be mounted, and no engine answers.
        """
        options: dict[str, Any] = {"tree": tree, "files": files, "env": env, "workdir": workdir}
        if not all(mount.read_only for mount in mounts):
            engine = self._images.require_engine()
            with engine.open_session(image, limits=limits, network=network, mounts=mounts, **options) as installing:
                yield installing
            return
        sockets, copies = split_mounts(mounts, self._images.copy_volume)
        session = KubernetesSession(
            lambda: self._start_pod(image, limits, network=network, sockets=sockets),
            self._remove_later,
            tree,
            files or {},
            env=env or {},
            workdir=workdir,
            sockets=sockets,
            copies=copies,
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
    ) -> Iterator[KubernetesProcess]:
        """Start a program with open stdin and stdout; see `backends.sandbox.base.Sandbox.open_process`."""
        pod = self._start_pod(image, limits)
        try:
            request = Request(words=command, env=env or {}, tar=archive.build_tar(files or {}))
            process = KubernetesProcess(pod, request)
        except BaseException:
            self._remove_later(pod.name)
            raise
        with contextlib.closing(process):
            try:
                yield process
            finally:
                self._remove_later(pod.name)

    def reap(self) -> int:
        """Delete the pods of dead mergemill processes of this machine, and all past their deadline; return how many."""
        orphans = [pod for pod in self._api.list_pods(SELECTOR) if is_left(pod)]
        return sum(self._remover.remove(pod["metadata"]["name"]) for pod in orphans)

    def stop(self) -> None:
        """End all running commands and start none; calls of all threads raise CancelledRunError within seconds."""
        self._stopping.set()

    def flush(self) -> None:
        """Wait until the pods of finished runs are deleted."""
        self._remover.flush()

    @cached_property
    def _helper(self) -> str:
        """Reference of the image that takes the network away."""
        return self._helper_image or self._images.resolve(self._images.find_helper())

    def _start_pod(
        self, image: str, limits: ResourceLimits, *, network: bool = False, sockets: Sequence[SocketMount] = ()
    ) -> Pod:
        """Create a pod and return it once it is ready; the caller removes it."""
        manifest = build_pod(
            make_container_name(),
            self._images.resolve(image),
            limits,
            self._settings,
            helper=None if network else self._helper,
            socket_folders=[socket.folder for socket in sockets],
            relay=self._helper if sockets else "",
        )
        create_pod(self._api, manifest, self._stopping, self._pending_seconds)
        pod = Pod(
            name=manifest["metadata"]["name"],
            image=image,
            api=self._api,
            limits=limits,
            stopping=self._stopping,
            has_network=network,
            pending_seconds=self._pending_seconds,
        )
        try:
            pod.wait_until_ready()
        except BaseException:
            self._remove_later(pod.name)
            raise
        return pod

    def _remove_later(self, name: str) -> None:
        self._remover.remove_later(lambda: name)

    def _delete_pod(self, name: str) -> None:
        try:
            self._api.delete_pod(name, grace_seconds=1)
        except Transient as error:
            raise ConnectionError(str(error)) from error


def is_left(pod: Mapping[str, Any]) -> bool:
    """Return whether nobody needs a pod: its process of this machine is dead, or its deadline is long over."""
    if is_orphan(pod["metadata"]["name"]):
        return True
    created = dt.datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    age = (dt.datetime.now(dt.UTC) - created).total_seconds()
    deadline = int(pod["spec"].get("activeDeadlineSeconds", 0))
    return age > deadline + LEFT_SECONDS


def create_sandbox(sandbox: SandboxSettings, record_use: Callable[[str], None]) -> KubernetesSandbox:
    """Create the sandbox of `--sandbox kubernetes`.

    Raises:
        MachineError: there is no cluster, it does not answer or is too old, or the user lacks a right.
        UsageError: a setting names something that does not exist.
        InputError: the kubeconfig cannot be used.
    """
    registry = parse_registry(sandbox.kubernetes.registry) if sandbox.kubernetes.registry else None
    api = ClusterApi(sandbox.kubernetes.context, sandbox.kubernetes.namespace)
    pods = PodSettings(
        node_selector=dict(label.split("=", 1) for label in sandbox.kubernetes.nodes),
        runtime_class=sandbox.kubernetes.runtime_class,
        pull_secret=sandbox.kubernetes.pull_secret,
    )
    return KubernetesSandbox(
        api,
        ClusterImageStore(registry, f"Kubernetes {api.version}", record_use),
        pods,
        helper_image=sandbox.kubernetes.helper_image,
        pending_seconds=sandbox.kubernetes.pending_seconds,
    )
