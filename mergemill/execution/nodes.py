"""Worker processes of other machines: their settings, the facts that they report, and how they end.

The functions here are pickled by name and run on a node of a cluster.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from backends.cluster.nodes import NodeFunctions, NodeReport, get_node_name
from core.errors import MergemillError
from core.settings.group import replace_values
from mergemill.execution.grader_version import compute_grader_version
from mergemill.execution.services import make_services
from taskdb.artifacts import open_artifacts, require_writable_folder
from taskdb.store import Store

if TYPE_CHECKING:
    from core.config import Settings

NODE_SETTINGS: Mapping[str, str] = {
    "MERGEMILL_NODE_STORE": "store",
    "MERGEMILL_NODE_CLONES": "clones",
    "MERGEMILL_NODE_CA_BUNDLE": "ca_bundle",
}
"""Variable of a node's environment -> setting that it replaces there."""
PROBE = b"mergemill: a node reads this to see whether it has the artifacts of a run\n"


def make_node_functions(settings: Settings, *, engine: bool, database: bool) -> NodeFunctions:
    """Return the function that nodes run besides the function of a map.

    `engine`: whether a Docker engine must answer; `database`: whether the database must be readable.
    """
    probe = open_artifacts(settings.storage).put(PROBE)
    check = partial(check_node, share_settings(settings), probe, engine=engine, database=database)
    return NodeFunctions(check=check, stop=stop_node, drain=drain_node)


def share_settings(settings: Settings) -> Settings:
    """Return the settings for other processes: with absolute paths."""
    prefix = "sqlite:///"
    place = settings.storage.artifact_place  # of all nodes, whatever stores of their own they have
    changes: dict[str, object] = {
        "store": settings.storage.store_dir.absolute(),
        "artifacts": str(place.absolute()) if isinstance(place, Path) else place,
    }
    if settings.storage.db.startswith(prefix):
        changes["db"] = prefix + str(Path(settings.storage.db.removeprefix(prefix)).absolute())
    for name, path in (("clones", settings.source.clones), ("ca_bundle", settings.host.ca_bundle)):
        if path is not None:
            changes[name] = path.absolute()
    return replace_values(settings, changes)


def localize_settings(settings: Settings) -> Settings:
    """Return the driver's settings as they are on this node."""
    own = {name: Path(os.environ[variable]) for variable, name in NODE_SETTINGS.items() if os.environ.get(variable)}
    return replace_values(settings, own)


def check_node(settings: Settings, probe: str, *, engine: bool, database: bool) -> NodeReport:
    """Return the work that this node can do.

    Args:
        settings: settings of the driver.
        probe: hash of an artifact of the run.
        engine: whether a Docker engine must answer.
        database: whether the database must be readable.
    """
    own = localize_settings(settings)
    report = NodeReport(name=get_node_name(), version=compute_grader_version())
    try:
        require_writable_folder(own.storage.store_dir)
        services = make_services(own, engine=engine)
        root = Path(services.images.get_engine_info().root) if engine else own.storage.store_dir
    except MergemillError as error:
        return replace(report, problem=error.format_line())
    try:
        services.artifacts.get(probe)
    except MergemillError as error:
        advice = "give all nodes the same --artifacts, a shared folder or s3://BUCKET/PREFIX"
        return replace(report, problem=f"cannot read the artifacts of this run ({error}): {advice}")
    try:
        if database:
            Store.open(own.storage.db, create=False).close()
    except MergemillError as error:
        advice = "several machines need PostgreSQL: --db postgresql+psycopg://..."
        return replace(report, problem=f"cannot read the database ({error}): {advice}")
    free = shutil.disk_usage(root).free >> 20 if root.is_dir() else None
    return replace(report, disk_slots=None if free is None else free // own.limits.disk_mb)


_draining = Event()


def drain_node() -> None:
    """Let each change of this process end after the step that runs."""
    _draining.set()


def is_draining() -> bool:
    """Return whether the changes of this process are to end early."""
    return _draining.is_set()


_stops: list[Callable[[], object]] = []


def add_stop(stop: Callable[[], object]) -> None:
    """Add the functions that are called, in order, when this process is to end."""
    _stops.append(stop)


def stop_node() -> None:
    """End the containers and model calls that this process waits for, and close the resources that it has open."""
    while _stops:
        _stops.pop(0)()
