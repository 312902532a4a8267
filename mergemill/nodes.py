"""Worker processes of other machines: each makes its own services from the driver's settings.

The functions here are pickled by name and run on a node of a cluster. The driver alone writes the database; a worker
reads where registries have copies of images, and which images are needed.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from backends.cluster.nodes import NodeFunctions, NodeReport, get_node_name, make_picklable
from backends.sandbox.image_registry import parse_registry
from core.errors import MergemillError
from mergemill.grader_version import compute_grader_version
from mergemill.images.budget import ImageBudget
from mergemill.images.copies import TransferRequest, push_images
from mergemill.images.fetch import enable_fetching
from mergemill.pipeline import (
    RETRY_POLICY,
    ChangeEvent,
    ImagePushed,
    PipelineStep,
    ProcessChange,
    StageOutcome,
    list_steps,
    make_failure,
    process_change,
)
from mergemill.services import make_services
from taskdb.artifacts import require_writable_folder
from taskdb.images import ImageCopy
from taskdb.records import Stage, Task, Verification
from taskdb.store import Store

if TYPE_CHECKING:
    from backends.services import Services
    from core.config import Settings
    from taskdb.lineage import Lineage

log = logging.getLogger(__name__)

NODE_SETTINGS: Mapping[str, str] = {
    "MERGEMILL_NODE_STORE": "store",
    "MERGEMILL_NODE_CLONES": "clones",
    "MERGEMILL_NODE_CA_BUNDLE": "ca_bundle",
}
"""Variable of a node's environment -> setting that it replaces there."""
PROBE = b"mergemill: a node reads this to see whether it has the artifacts of a run\n"


def make_node_functions(settings: Settings, services: Services, *, engine: bool) -> NodeFunctions:
    """Return what the nodes of a cluster run besides steps.

    Args:
        settings: of the driver.
        services: of the driver.
        engine: whether a Docker engine must answer.
    """
    check = partial(check_node, share_settings(settings), services.artifacts.put(PROBE), engine=engine)
    return NodeFunctions(check=check, stop=stop_node, drain=drain_node)


def share_settings(settings: Settings) -> Settings:
    """Return the settings for other processes: with absolute paths."""
    prefix = "sqlite:///"
    place = settings.artifact_place  # of all nodes, whatever stores of their own they have
    changes: dict[str, object] = {
        "store": settings.store_dir.absolute(),
        "artifacts": str(place.absolute()) if isinstance(place, Path) else place,
    }
    if settings.db.startswith(prefix):
        changes["db"] = prefix + str(Path(settings.db.removeprefix(prefix)).absolute())
    for name in ("clones", "ca_bundle"):
        if (path := getattr(settings, name)) is not None:
            changes[name] = path.absolute()
    return settings.model_copy(update=changes)


def localize_settings(settings: Settings) -> Settings:
    """Return the driver's settings as they are on this node."""
    own = {name: Path(os.environ[variable]) for variable, name in NODE_SETTINGS.items() if os.environ.get(variable)}
    return settings.model_copy(update=own)


def check_node(settings: Settings, probe: str, *, engine: bool) -> NodeReport:
    """Return what this node can do.

    Args:
        settings: of the driver.
        probe: hash of an artifact of the run.
        engine: whether a Docker engine must answer.
    """
    own = localize_settings(settings)
    report = NodeReport(name=get_node_name(), version=compute_grader_version())
    try:
        require_writable_folder(own.store_dir)
        services = make_services(own, engine=engine)
        root = Path(services.images.get_engine_info().root) if engine else own.store_dir
    except MergemillError as error:
        return replace(report, problem=error.format_line())
    try:
        services.artifacts.get(probe)
    except MergemillError as error:
        advice = "give all nodes the same --artifacts, a shared folder or s3://BUCKET/PREFIX"
        return replace(report, problem=f"cannot read the artifacts of this run ({error}): {advice}")
    try:
        Store.open(own.db, create=False).close()
    except MergemillError as error:
        advice = "several machines need PostgreSQL: --db postgresql+psycopg://..."
        return replace(report, problem=f"cannot read the database ({error}): {advice}")
    free = shutil.disk_usage(root).free >> 20 if root.is_dir() else None
    return replace(report, disk_slots=None if free is None else free // own.disk_mb)


@dataclass(frozen=True)
class NodeSteps:
    """Function of a map: takes a change through some stages in a worker process."""

    settings: Settings
    stages: tuple[Stage, ...]
    engine: bool

    def __call__(self, lineage: Lineage) -> Iterator[ChangeEvent]:
        """Yield the events of a change, whose exceptions can be pickled."""
        for event in self._process(lineage):
            if isinstance(event, StageOutcome) and isinstance(event.result, Exception):
                yield replace(event, result=make_picklable(event.result))
            else:
                yield event

    def _process(self, lineage: Lineage) -> Iterator[ChangeEvent]:
        try:
            yield from open_worker(self.settings, engine=self.engine).process(self.stages, lineage)
        except MergemillError as error:  # of what is around the stages: database, engine
            yield make_failure(lineage, error)


def make_node_steps(settings: Settings, steps: Sequence[PipelineStep], *, engine: bool) -> ProcessChange:
    """Return the function for steps of the pipeline; `engine`: whether a Docker engine must answer."""
    return NodeSteps(share_settings(settings), tuple(step.stage for step in steps), engine)


@dataclass
class NodeWorker:
    """Services of a worker process, with the database for reading."""

    services: Services
    store: Store
    budget: ImageBudget | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.services.settings.image_budget is not None:
            self.budget = ImageBudget(self.services, self.store, lambda _: None)

    def process(self, stages: Sequence[Stage], lineage: Lineage) -> Iterator[ChangeEvent]:
        """Take a change through stages; push its images to the registry between the nodes."""
        images = [lineage.environment.image] if lineage.environment else []
        images += [task.image for task in lineage.tasks if task.image]
        services = enable_fetching(self.services, self.store, images)
        self._restore_environment(lineage, services)
        steps = tuple(step for step in list_steps() if step.stage in stages)
        for event in process_change(steps, services, RETRY_POLICY, _draining.is_set, lineage):
            yield event
            if isinstance(event, StageOutcome):
                if event.stage is Stage.BUILD and self.budget:
                    self.budget.free_space()
                if (image := _find_new_image(event)) and image not in images:
                    images.append(image)
                    yield from self._push(image, event.lineage.candidate.name)

    def _restore_environment(self, lineage: Lineage, services: Services) -> None:
        """Build the image of an environment again where only a lost node has it."""
        environment = lineage.environment
        if environment is None or services.images.inspect(environment.image) is not None:
            return
        from builders.build import build  # noqa: PLC0415 - the other workers need no builders

        log.info("building %s again", environment.image)
        RETRY_POLICY.copy()(build, lineage.candidate, services)

    def _push(self, image: str, name: str) -> Iterator[ImagePushed]:
        """Push an image; a failure is logged, as the change itself does not need it."""
        registry, info = self.services.settings.node_registry, self.services.images.inspect(image)
        if registry is None or info is None:
            return
        request = TransferRequest(image=image, digest=info.digest, tasks=(name,))
        for _, outcome in push_images(self.services.images, [request], parse_registry(registry), self.services.clock):
            if isinstance(outcome, ImageCopy):
                yield ImagePushed(outcome)
            else:
                log.warning("%s was not pushed: %s", image, outcome.format_line())


def _find_new_image(outcome: StageOutcome) -> str:
    """Return the image that other nodes may need after a result; empty for none."""
    if isinstance(outcome.result, Verification):
        return outcome.lineage.require_environment().image
    return outcome.result.image if isinstance(outcome.result, Task) else ""


_workers: dict[str, NodeWorker] = {}
_lock = Lock()


def open_worker(settings: Settings, *, engine: bool) -> NodeWorker:
    """Return the services of this process for some settings, made by the first call.

    `engine`: whether a Docker engine must answer.

    Raises:
        MachineError: no engine answers.
        InputError: the database cannot be read.
    """
    key = settings.model_dump_json()
    with _lock:
        if key not in _workers:
            own = localize_settings(settings)
            store = Store.open(own.db, create=False, patience=own.db_patience)
            services = make_services(own, engine=engine)
            add_stop(services.sandbox.stop)
            if services.model is not None:
                add_stop(services.model.stop)
            _workers[key] = NodeWorker(services, store)
        return _workers[key]


_draining = Event()


def drain_node() -> None:
    """Let each change of this process end after the step that runs."""
    _draining.set()


_stops: list[Callable[[], object]] = []


def add_stop(stop: Callable[[], object]) -> None:
    """Add what is called, in order, when this process is to end."""
    _stops.append(stop)


def stop_node() -> None:
    """End the containers and model calls that this process waits for, and close what it has open."""
    while _stops:
        _stops.pop(0)()
