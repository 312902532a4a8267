"""A real Ray cluster on this machine: a head without engines, and any number of nodes, each of its own processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom

ROOT = Path(__file__).parents[1]
START_SECONDS = 60
QUICK = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "2",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
}
"""Environment of all processes, the driver's, too: a lost node is noticed within seconds."""


FREE_PORTS = range(11000, 23000)
"""Ports that the system gives to no connection, which could have one before a head listens, nor Ray to drivers."""


def find_port() -> int:
    while True:
        port = SystemRandom().choice(FREE_PORTS)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


@dataclass
class RayNode:
    """A node as the group of its processes."""

    name: str
    process: subprocess.Popen[bytes]

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the node."""
        for pid in list_session(self.process.pid):
            with_pid(pid, number)

    def slow_down(self, seconds: float) -> None:
        """Let all processes of the node run for a fifth of so many seconds only."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.signal(signal.SIGSTOP)
            time.sleep(0.8)
            self.signal(signal.SIGCONT)
            time.sleep(0.2)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()


def with_pid(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def list_session(leader: int) -> list[int]:
    """Return the processes whose ancestor or session leader a process is."""
    parents = {}
    sessions = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)], sessions[int(folder.name)] = int(fields[1]), int(fields[3])
    pids = {leader} | {pid for pid, session in sessions.items() if session == leader}
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids |= more
    return sorted(pids)


def read_title(pid: int) -> str:
    """Return what a process shows as its command; empty for one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").rstrip("\0")
    except OSError:
        return ""


@dataclass
class RayNodes:
    """The cluster. `url` is what `--cluster` takes."""

    folder: Path
    gcs: int
    client: int
    nodes: dict[str, RayNode] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"ray://127.0.0.1:{self.client}"

    def add(
        self,
        name: str,
        *,
        cpus: int = 2,
        engines: int = 2,
        memory: int = 8 << 30,
        env: Mapping[str, str] | None = None,
    ) -> RayNode:
        """Start a node with a resource `docker` and wait until the cluster has it."""
        options = [f"--address=127.0.0.1:{self.gcs}", f"--num-cpus={cpus}", f"--memory={memory}"]
        options += [f'--resources={{"docker": {engines}}}'] if engines else []
        node = self._start(name, options, {"MERGEMILL_NODE_NAME": name, **(env or {})})
        self.nodes[name] = node
        return node

    def _start(self, name: str, options: list[str], env: Mapping[str, str]) -> RayNode:
        ray = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--block"]
        common = [
            "--disable-usage-stats",
            "--object-store-memory=100000000",
            "--include-log-monitor=false",  # sends output to drivers, none of which wants it
            "--min-worker-port=0",
            "--max-worker-port=0",
        ]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*ray, *options, *common],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **QUICK, "PYTHONPATH": path, "RAY_TMPDIR": str(self.folder), **env},
                start_new_session=True,
            )
        _prefer(process.pid)
        end = time.monotonic() + START_SECONDS
        while b"--block" not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the node {name} does not start: {log.read_text()}")
            time.sleep(0.1)
        return RayNode(name, process)

    def start_head(self) -> None:
        options = ["--head", f"--port={self.gcs}", f"--ray-client-server-port={self.client}", "--num-cpus=1"]
        options += ["--include-dashboard=false", "--node-ip-address=127.0.0.1", f"--temp-dir={self.folder}"]
        options += ["--no-monitor"]  # of the autoscaler: the tests start the nodes
        self.nodes["head"] = self._start("head", options, {})

    def kill_all(self) -> None:
        for node in reversed(self.nodes.values()):
            if node.process.poll() is None:
                node.kill()


def _prefer(pid: int) -> None:
    """Let a session of processes run before others, where that is allowed.

    Ray takes a node for dead that does not answer within seconds, and other tests keep all processors busy. Linux
    shares them between sessions first, so the nice value of a process in a session of its own counts for little.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, -10)
        Path(f"/proc/{pid}/autogroup").write_text("-10")


@contextmanager
def start_ray_nodes() -> Iterator[RayNodes]:
    """Start a head; all its processes are killed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mm-ray-", dir="/tmp"))  # sockets have short paths
    cluster = RayNodes(folder, find_port(), find_port())
    try:
        cluster.start_head()
        yield cluster
    finally:
        cluster.kill_all()
        shutil.rmtree(folder, ignore_errors=True)
