"""The pipeline's steps in worker processes of other machines.

The driver alone writes the database; a worker reads where registries have copies of images, and which are needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from backends.sandbox.image_registry import parse_registry
from core.errors import MergemillError
from mergemill.execution.images.budget import ImageBudget
from mergemill.execution.images.copies import TransferRequest, push_images
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.nodes import add_stop, is_draining, localize_settings, share_settings
from mergemill.execution.services import make_services
from mergemill.pipeline.pipeline import (
    RETRY_POLICY,
    ChangeEvent,
    ChangeProcessor,
    ImagePushed,
    PipelineStep,
    ProcessChange,
    StageOutcome,
    list_outcomes,
    list_steps,
    make_failure,
    process_change,
)
from mergemill.pipeline.renewal import ChangeRenewal
from taskdb.queries.repository_history import HistoryReader
from taskdb.records import Environment, Record, Stage, Task, Verification
from taskdb.records.images import ImageCopy
from taskdb.store import Store

if TYPE_CHECKING:
    from backends.services import Services
    from core.config import Settings
    from taskdb.records.lineage import Lineage

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeSteps:
    """Function of a map: takes a change through some stages in a worker process."""

    settings: Settings
    stages: tuple[Stage, ...]
    engine: bool

    def __call__(self, lineage: Lineage) -> Iterator[ChangeEvent]:
        """Yield the events of a change."""
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
    history: HistoryReader = field(init=False)

    def __post_init__(self) -> None:
        self.history = HistoryReader(self.store)
        if self.services.settings.operation.image_budget is not None:
            self.budget = ImageBudget(self.services, self.store, lambda _: None)

    def process(self, stages: Sequence[Stage], lineage: Lineage) -> Iterator[ChangeEvent]:
        """Take a change through stages; push its images to the registry between the nodes."""
        environment = lineage.environment.image if lineage.environment else ""
        images = [image for image in (environment, *(task.image for task in lineage.tasks)) if image]
        services = enable_fetching(self.services, self.store, images)
        self._restore_environment(lineage, services)
        steps = tuple(step for step in list_steps() if step.stage in stages)
        processor = ChangeRenewal if lineage.is_renewal else ChangeProcessor
        events = process_change(
            steps, services, RETRY_POLICY, is_draining, lineage, find_history=self.history.find, processor=processor
        )
        for event in events:
            yield event
            for outcome in list_outcomes([event]):
                if not isinstance(outcome, StageOutcome):
                    continue
                if outcome.stage is Stage.BUILD and self.budget:
                    self.budget.free_space()
                if isinstance(outcome.result, Environment):
                    environment = outcome.result.image
                if (image := _find_new_image(outcome.result, environment)) and image not in images:
                    images.append(image)
                    yield from self._push(image, outcome.change.name)

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
        registry, info = self.services.settings.cluster.node_registry, self.services.images.inspect(image)
        if registry is None or info is None:
            return
        request = TransferRequest(image=image, digest=info.digest, tasks=(name,))
        for _, outcome in push_images(self.services.images, [request], parse_registry(registry), self.services.clock):
            if isinstance(outcome, ImageCopy):
                yield ImagePushed(outcome)
            else:
                log.warning("%s was not pushed: %s", image, outcome.format_line())


def _find_new_image(result: Record | Exception, environment: str) -> str:
    """Return the image that other nodes may need after a result; empty for none. `environment`: that of the change."""
    if isinstance(result, Verification):
        return environment
    return result.image if isinstance(result, Task) else ""


@cache
def open_worker(settings: Settings, *, engine: bool) -> NodeWorker:
    """Return the services of this process for some settings, made by the first call.

    `engine`: whether a Docker engine must answer.

    Raises:
        MachineError: no engine answers.
        InputError: the database cannot be read.
    """
    own = localize_settings(settings)
    store = Store.open(own.storage.db, create=False, patience=own.cluster.db_patience)
    services = make_services(own, engine=engine)
    add_stop(services.sandbox.stop)
    if services.model is not None:
        add_stop(services.model.stop)
    return NodeWorker(services, store)
