"""The cluster that the settings name: threads of this machine, or workers of Ray."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backends.cluster.local import LocalCluster
from backends.cluster.nodes import WorkerNeeds
from backends.sandbox.image_registry import parse_registry
from core.errors import MachineError, UsageError
from mergemill.execution.grader_version import compute_grader_version
from mergemill.execution.nodes import make_node_functions

if TYPE_CHECKING:
    from backends.cluster.base import Cluster
    from core.config import Settings
    from core.settings.machine import ClusterSettings

LOCAL, RAY = "local", "ray"
ADVICE = "one of local, ray, ray://HOST:PORT"


@contextmanager
def open_cluster(
    settings: Settings,
    *,
    engine: bool,
    notify: Callable[[str], None],
    stop: Callable[[BaseException], object] = lambda _: None,
    is_draining: Callable[[], bool] = lambda: False,
    database: bool = True,
) -> Iterator[Cluster]:
    """Open the cluster of the settings until the end of the block.

    Args:
        settings: settings of the run.
        engine: whether the stage that is run needs a Docker engine.
        notify: function that shows a message.
        stop: function that is called in the driver with the exception by which a map is left early.
        is_draining: function that returns whether changes are to end after the step that runs.
        database: whether nodes must be able to read the database.

    Raises:
        MachineError: Ray is not installed, no cluster answers, or none of its nodes can be used.
    """
    if settings.cluster.address == LOCAL:
        yield LocalCluster(workers=settings.cluster.workers, stop=stop)
        return
    try:
        from backends.cluster.ray_cluster.cluster import RayCluster  # noqa: PLC0415 - Ray is an extra
    except ImportError as error:
        raise MachineError(
            f"--cluster {settings.cluster.address} needs Ray", advice="pip install 'mergemill[ray]'"
        ) from error
    needs = WorkerNeeds(
        cpus=settings.cluster.worker_cpus,
        memory_bytes=settings.limits.memory_mb << 20,
        workers=settings.cluster.workers
        if settings.cluster.address == RAY or "workers" in settings.cluster.model_fields_set
        else None,
    )
    with RayCluster(
        address=None if settings.cluster.address == RAY else settings.cluster.address,
        needs=needs,
        functions=make_node_functions(settings, engine=engine, database=database),
        version=compute_grader_version(),
        notify=notify,
        stop=stop,
        is_draining=is_draining,
    ) as cluster:
        yield cluster


def check_cluster_settings(cluster: ClusterSettings) -> None:
    """Check the words of the settings.

    Raises:
        UsageError: `cluster` or `node_registry` is malformed.
    """
    if cluster.address not in (LOCAL, RAY) and not cluster.address.startswith("ray://"):
        raise UsageError(f"--cluster: {cluster.address} is unknown", advice=ADVICE)
    if cluster.node_registry is not None:
        parse_registry(cluster.node_registry)
