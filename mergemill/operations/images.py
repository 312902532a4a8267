"""Settings and results of `mergemill images`; the work itself, such as removal, is in `execution/images/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from backends.sandbox.image_registry import parse_registry
from core.config import Settings
from core.errors import InputError, MergemillError
from core.settings.storage import StorageSettings
from mergemill.execution.images import copies, inventory
from mergemill.execution.images.copies import TransferRequest, TransferResult
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.images.inventory import ImageSummary
from mergemill.execution.images.ledger import UsageLedger, format_timestamp
from mergemill.execution.images.prune import PruneContext, PruneResult, prune_images
from mergemill.execution.services import make_services
from taskdb.queries import images as image_queries
from taskdb.queries import tasks as queries
from taskdb.queries.images import ImageNeeds
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Task
from taskdb.records.images import ImageCopy
from taskdb.schema.database import database_exists
from taskdb.store import Store

if TYPE_CHECKING:
    from backends.sandbox.images import ImageStore
    from verifiers import ImageLeak


def bootstrap(language: str, versions: Sequence[str] | None, settings: Settings) -> list[ImageSummary]:
    """Make the base images of a language that are missing and return all that were requested.

    Raises:
        MachineError: no engine answers, or no base image can be made.
        UsageError: the language or a version is unknown.
    """
    from builders import bases  # noqa: PLC0415 - the other operations do not pay for the builders

    services = make_services(settings, engine=True)
    names = {info.name for info in bases.ensure_bases(language, tuple(versions) if versions else None, services)}
    return [image for image in _describe_images(settings.storage, services.images) if image.name in names]


def describe_own_images(settings: Settings) -> list[ImageSummary]:
    """Return mergemill's images on this engine."""
    return _describe_images(settings.storage, make_services(settings, engine=True).images)


def prune(
    settings: Settings, *, limit: int | None, include_unknown: bool, dry_run: bool
) -> tuple[PruneResult, list[dict[str, Any]]]:
    """Remove images; return the result and a row for each removed image.

    Args:
        settings: database and store.
        limit: bytes that all images may take; None removes the images that no task will ever need.
        include_unknown: whether images of other databases are removed, too.
        dry_run: whether nothing is removed.
    """
    image_store = make_services(settings, engine=True).images
    ledger = UsageLedger(settings.storage.store_dir)
    last_uses = ledger.read_all()
    needs, known_copies = _load_image_facts(settings.storage, required=True)
    context = PruneContext(
        needs=needs, copies=known_copies, ledger=ledger, include_unknown=include_unknown, has_budget=limit is not None
    )
    has_copy = copies.RegistryClient(image_store).has_copy
    result = prune_images(image_store, context, limit=limit or 0, dry_run=dry_run, check=has_copy)
    rows = [
        {
            "kind": inventory.parse_kind(image.name),
            "name": image.name,
            "digest": image.digest,
            "freed_bytes": freed,
            "last_used": format_timestamp(last_uses.get(image.name)),
        }
        for image, freed in result.removed
    ]
    return result, rows


def push(
    registry: str, filters: TaskFilters, settings: Settings, *, rebuilt: bool
) -> Iterator[tuple[TransferResult, MergemillError | None]]:
    """Push the images of tasks and record the copies; yield each result, with the error where it failed.

    Raises:
        UsageError: `registry` is not `HOST/PREFIX`.
        InputError: no task matches.
    """
    prefix = parse_registry(registry)
    services = make_services(settings, engine=True)
    with Store.open(settings.storage.db, create=False) as store:
        requests = _collect_images(store, filters)
        for result, outcome in copies.push_images(services.images, requests, prefix, services.clock, rebuilt=rebuilt):
            if isinstance(outcome, ImageCopy):
                store.add(outcome)
                yield result, None
            else:
                yield result, outcome


def pull(filters: TaskFilters, settings: Settings) -> Iterator[tuple[TransferResult, MergemillError | None]]:
    """Pull the images of tasks; yield each result, with the error where it failed.

    Raises:
        InputError: no task matches.
    """
    image_store = make_services(settings, engine=True).images
    with Store.open(settings.storage.db, create=False) as store:
        requests = _collect_images(store, filters)
        known_copies = image_queries.load_image_copies(store)
    yield from copies.pull_images(image_store, requests, known_copies)


def audit(words: Sequence[str], settings: Settings) -> Iterator[tuple[Task, tuple[ImageLeak, ...]]]:
    """Yield each task with the facts that its image gives away: the named tasks, or all certified tasks.

    Raises:
        InputError: a word names no task, or an image is missing.
        Transient: the engine failed.
    """
    with Store.open(settings.storage.db, create=False) as store:
        if words:
            tasks = [queries.resolve_task(store, word) for word in words]
        else:
            tasks = [task for task, _ in queries.load_tasks(store, TaskFilters(status="certified"))]
        services = enable_fetching(make_services(settings, engine=True), store)
    import verifiers  # noqa: PLC0415 - loaded when the tasks are resolved

    for task in tasks:
        with services.images.hold():
            leaks = tuple(verifiers.audit_image(task, services))
        yield task, leaks


def _load_image_facts(
    storage: StorageSettings, *, required: bool
) -> tuple[ImageNeeds, Mapping[str, tuple[ImageCopy, ...]]]:
    """Return which images are needed and where copies are; nothing where there is no database yet."""
    if not required and not database_exists(storage.db):
        return ImageNeeds(), {}
    with Store.open(storage.db, create=False) as store:
        return image_queries.load_image_needs(store), image_queries.load_image_copies(store)


def _describe_images(storage: StorageSettings, image_store: ImageStore) -> list[ImageSummary]:
    needs, known_copies = _load_image_facts(storage, required=False)
    own_images = inventory.list_own_images(image_store)
    return inventory.describe_images(own_images, needs, known_copies, UsageLedger(storage.store_dir))


def _collect_images(store: Store, filters: TaskFilters) -> list[TransferRequest]:
    if not (requests := copies.collect_images(queries.load_tasks(store, filters))):
        raise InputError("no task matches", advice="`mergemill tasks list` shows the tasks")
    return requests
