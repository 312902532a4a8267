"""Nodes of a cluster that can be used, and the workers on them: the parts that all maps of a cluster share."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from backends.cluster.nodes import NodeFunctions, NodeReport, WorkerNeeds
from backends.cluster.ray_cluster.actors import WorkerActor
from backends.cluster.ray_cluster.connection import ENGINES, START_NODE, list_nodes, open_mailbox, shorten
from backends.cluster.ray_cluster.state import Node, WorkerState
from core.errors import MachineError
from core.text import format_count

NODES_SECONDS = 10.0
"""Time between two looks for new nodes."""
CHECK_SECONDS = 90.0
"""Time that a node may take to report on itself."""
STOP_SECONDS = 10.0
"""Time that workers may take to end their step when a map is left early."""


class WorkerPool:
    """Nodes and workers of a connected cluster.

    Args:
        needs: reservation of each worker.
        functions: functions that nodes run besides the function of a map.
        version: version of mergemill that a node must have.
        notify: function that shows a message.
        is_draining: function that returns whether the records that are being processed are to end early.
    """

    def __init__(
        self,
        *,
        needs: WorkerNeeds,
        functions: NodeFunctions,
        version: str,
        notify: Callable[[str], None],
        is_draining: Callable[[], bool],
    ) -> None:
        self.needs, self.functions, self.version = needs, functions, version
        self.notify, self.is_draining = notify, is_draining
        self.nodes: dict[str, Node] = {}
        self.workers: dict[str, WorkerState] = {}
        self.mailbox: Any = None
        self._checks: dict[str, tuple[Any, float]] = {}
        self._next_look = 0.0
        self._claims: dict[str, set[str]] = {}

    def open(self) -> None:
        """Open the mailbox and wait for the first nodes.

        Raises:
            MachineError: none of the nodes can be used.
        """
        self.mailbox = open_mailbox()
        self._find_first_nodes()

    def close(self) -> None:
        """End all workers and the mailbox, as far as they can still be reached."""
        with contextlib.suppress(Exception):
            stopping = [worker.actor.stop.remote() for worker in self.workers.values() if worker.is_ready]
            if stopping:
                ray.wait(stopping, num_returns=len(stopping), timeout=STOP_SECONDS)
            for worker in self.workers.values():
                ray.kill(worker.actor)
            ray.kill(self.mailbox)
        self.workers.clear()

    def describe(self) -> str:
        """Return the nodes that can be used, with the number of workers that each is large enough for."""
        usable = sorted((node.name, node.slots) for node in self.nodes.values() if not node.is_left_out)
        return ", ".join(f"{name} for {format_count(slots, 'worker')}" for name, slots in usable)

    def _find_first_nodes(self) -> None:
        """Wait for the reports of the nodes; a node that can be used is enough to go on."""
        self._begin_checks()
        if not self._checks:
            raise MachineError(f"no node of the cluster has the resource {ENGINES!r}", advice=START_NODE)
        problems: list[str] = []
        while self._checks:
            problems += self._end_checks(wait=True)
        if not any(node.slots for node in self.nodes.values()):
            raise MachineError(f"no node of the cluster can be used: {'; '.join(problems)}")

    def look_soon(self) -> None:
        """Look for nodes at the next occasion: a worker was lost, perhaps with its node."""
        self._next_look = 0.0

    def look_for_nodes(self) -> None:
        """Take note of nodes that came and went, and start the workers that are missing."""
        now = time.monotonic()
        self._end_checks(wait=False)
        if now >= self._next_look:
            self._begin_checks()
        self.start_workers()

    def _begin_checks(self) -> None:
        self._next_look = time.monotonic() + NODES_SECONDS
        alive = _list_living()
        for gone in self.nodes.keys() - alive.keys():
            self.notify(f"node {self.nodes.pop(gone).name} is gone")
            for places in self._claims.values():
                places.discard(gone)
        for key, node in alive.items():
            if key in self.nodes or key in self._checks or not node["Resources"].get(ENGINES):
                continue
            place = NodeAffinitySchedulingStrategy(node_id=key, soft=False)
            check = ray.remote(_call).options(num_cpus=0, max_retries=0, scheduling_strategy=place)
            self._checks[key] = (check.remote(self.functions.check), time.monotonic() + CHECK_SECONDS)

    def _end_checks(self, *, wait: bool) -> list[str]:
        """Read the reports that are there; return the problems of nodes that cannot be used."""
        problems = []
        resources = {node["NodeID"]: node for node in list_nodes()} if self._checks else {}
        for key, (reference, deadline) in list(self._checks.items()):
            timeout = max(0.0, deadline - time.monotonic()) if wait else 0.0
            try:
                report: NodeReport = ray.get(reference, timeout=timeout)
            except GetTimeoutError:
                if time.monotonic() < deadline:
                    continue
                report = NodeReport(name=key[:8], version="", problem="does not answer")
            except RayError as error:
                if key not in _list_living():  # it went just now
                    del self._checks[key]
                    continue
                report = NodeReport(name=key[:8], version="", problem=shorten(error))
            del self._checks[key]
            node = self._add_node(key, report, resources.get(key, {}).get("Resources", {}))
            if isinstance(node, str):
                problems.append(node)
                self.notify(f"a node is left out: {node}")
        return problems

    def _add_node(self, key: str, report: NodeReport, resources: dict[str, float]) -> Node | str:
        node = self.nodes[key] = Node(key, report.name, 0, report.version, is_left_out=True)
        if report.problem:
            return f"{report.name}: {report.problem}"
        if report.version != self.version:
            return f"{report.name} has mergemill {report.version}, this machine {self.version}: install the same"
        limits = {
            f"the resource {ENGINES!r} of at least 1": resources.get(ENGINES, 0),
            f"{self.needs.cpus:g} CPUs": resources.get("CPU", 0) / self.needs.cpus,
            f"{self.needs.memory_bytes >> 20} MB of memory": resources.get("memory", 0) / self.needs.memory_bytes,
        }
        if report.disk_slots is not None:
            limits["more free disk (disk_mb)"] = report.disk_slots
        lacking, least = min(limits.items(), key=lambda item: item[1])
        if least < 1:
            return f"{report.name} is too small for a worker, which needs {lacking}"
        node.slots, node.is_left_out = int(least), False
        return node

    def start_workers(self) -> None:
        """Start workers on all nodes up to their slots, and up to the number that is allowed."""
        counts: dict[str, int] = {}
        for worker in self.workers.values():
            counts[worker.node.id] = counts.get(worker.node.id, 0) + 1
        usable = [node for node in self.nodes.values() if not node.is_left_out]
        while self.needs.workers is None or len(self.workers) < self.needs.workers:
            free = [node for node in usable if counts.get(node.id, 0) < node.slots]
            if not free:
                return
            node = min(free, key=lambda node: counts.get(node.id, 0))  # spread
            self._start_worker(node)
            counts[node.id] = counts.get(node.id, 0) + 1

    def _start_worker(self, node: Node) -> None:
        key = uuid.uuid4().hex
        options = {
            "num_cpus": self.needs.cpus,
            "memory": self.needs.memory_bytes,
            "resources": {ENGINES: 1},
            "max_concurrency": 2,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node.id, soft=False),
        }
        make: Any = ray.remote(WorkerActor)
        actor = make.options(**options).remote(key, self.mailbox, self.functions)
        self.workers[key] = WorkerState(actor, node, actor.greet.remote())

    # ---------------------------------------------------------------------------------------------- locality

    def claim(self, key: str, node: Node) -> None:
        """Note that a node keeps the state that records of this key share."""
        if key:
            self._claims.setdefault(key, set()).add(node.id)

    def get_claims(self, key: str) -> set[str]:
        """Return the ids of the nodes that keep the state that records of this key share."""
        return self._claims.get(key, set())


def _list_living() -> dict[str, dict[str, Any]]:
    return {node["NodeID"]: node for node in list_nodes() if node["Alive"]}


def _call(function: Callable[[], NodeReport]) -> NodeReport:
    return function()
