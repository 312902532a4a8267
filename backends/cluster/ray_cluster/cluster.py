"""The cluster as the driver uses it: a connection, a pool of workers, and a map after the other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from types import TracebackType
from typing import Self, TypeVar

import ray

from backends.cluster.base import Cluster, RecordKeeper
from backends.cluster.nodes import NodeFunctions, WorkerNeeds
from backends.cluster.ray_cluster.connection import connect
from backends.cluster.ray_cluster.pool import WorkerPool
from backends.cluster.ray_cluster.ray_map import RayMap

Record = TypeVar("Record")
Result = TypeVar("Result")


class RayCluster(Cluster):
    """Context manager of workers in a Ray cluster, used for any number of maps, in sequence.

    Args:
        address: `ray://HOST:PORT`, or None for a cluster on this machine, which is started for the first record
            and ended here.
        needs: reservation of each worker.
        functions: functions that nodes run besides the function of a map.
        version: version of mergemill that a node must have.
        notify: function that shows a message.
        stop: function that is called with the exception by which a map is left early.
        is_draining: function that returns whether the records that are being processed are to end early.

    Raises:
        MachineError: no cluster answers, it has another version, or none of its nodes can be used. For a cluster
            on this machine, `describe` and `map_batches` raise it.
    """

    def __init__(
        self,
        *,
        address: str | None,
        needs: WorkerNeeds,
        functions: NodeFunctions,
        version: str,
        notify: Callable[[str], None],
        stop: Callable[[BaseException], object] = lambda _: None,
        is_draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self.address, self.needs, self.stop = address, needs, stop
        self._is_open = False
        self.pool = WorkerPool(
            needs=needs, functions=functions, version=version, notify=notify, is_draining=is_draining
        )

    def __enter__(self) -> Self:
        # Whether another cluster can be used is known before the sources are mined; starting one takes seconds, which a
        # run with nothing to do would spend in vain.
        if self.address is not None:
            self._open()
        return self

    def _open(self) -> None:
        """Connect to the cluster, or start it, unless that was done before."""
        if self._is_open:
            return
        connect(self.address, self.needs)
        try:
            self.pool.open()
        except BaseException:
            ray.shutdown()
            raise
        self._is_open = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self.pool.close()
            ray.shutdown()

    def describe(self) -> str:
        """Return the nodes that can be used, with the number of workers that each is large enough for."""
        self._open()
        return self.pool.describe()

    def map_batches(
        self,
        function: Callable[[Record], Iterator[Result]],
        records: Iterable[Record],
        keeper: RecordKeeper[Record, Result],
    ) -> Generator[list[Result], None, None]:
        """Yield all results. The function is pickled.

        A record whose worker is lost, or whose node fails (`keeper.is_node_failure`), is given to another node, up to
        ATTEMPTS times.
        """
        waiting = iter(records)
        try:
            first = list(islice(waiting, 1))
            if not first:
                return
            self._open()
        except BaseException as error:
            self.stop(error)
            raise
        ray_map = RayMap(self.pool, ray.put(function), chain(first, waiting), keeper)
        try:
            yield from ray_map.run()
        except BaseException as error:
            self.stop(error)
            ray_map.stop_workers()
            raise
        finally:
            ray_map.close()
