"""Audits of tasks in the database, and of bundles with nothing but their own files."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import verifiers
from backends.services import Services
from core.config import Settings
from core.errors import InputError
from core.settings.storage import StorageSettings
from exporters import manifest
from exporters.bundle_reader import read_bundle
from mergemill.bundles.contents import fetch_image, open_bundle
from mergemill.execution.images.fetch import enable_fetching
from mergemill.execution.progress import CountProgress
from mergemill.execution.services import make_services
from taskdb.queries import tasks as queries
from taskdb.records import Task
from taskdb.records.audits import Audit
from taskdb.store import Store
from verifiers.base_tree import TreeFiles
from verifiers.exploits import EXPLOITS
from verifiers.probes import PROBES

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TaskAudit:
    """Result for a task. `skipped`: why it was not audited, else None; `clean`: audited without findings."""

    task: str
    id: str
    image: str
    clean: bool
    skipped: str | None
    findings: list[dict[str, Any]]
    probes: list[dict[str, Any]]
    strength: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class BundleAudit:
    """Result for the files of a bundle. `manifest_sha256` identifies its whole content."""

    bundle: str
    format: str
    manifest_sha256: str
    tasks: int
    clean: bool
    findings: list[dict[str, Any]]


@dataclass(frozen=True)
class AuditTargets:
    """Tasks and folders of bundles, in the order of the command line."""

    targets: tuple[Task | Path, ...]

    @property
    def bundles(self) -> list[Path]:
        """Folders of the bundles."""
        return [target for target in self.targets if isinstance(target, Path)]

    @property
    def has_tasks(self) -> bool:
        """Whether a target is a task of the database."""
        return any(isinstance(target, Task) for target in self.targets)


def resolve_targets(words: Sequence[str], storage: StorageSettings) -> AuditTargets:
    """Return the bundles and tasks that words name; the database is opened for tasks only.

    Raises:
        InputError: a word names neither.
    """
    bundles = [find_bundle(word) for word in words]
    if all(bundles):
        return AuditTargets(tuple(folder for folder in bundles if folder))
    with Store.open(storage.db, create=False) as store:
        pairs = zip(words, bundles, strict=True)
        return AuditTargets(tuple(folder or queries.resolve_task(store, word) for word, folder in pairs))


def find_bundle(word: str) -> Path | None:
    """Return the folder of the bundle that a word names, or None when it names a task.

    Raises:
        InputError: the word is a path at which there is no bundle.
    """
    path = Path(word)
    folder = path.parent if path.name == manifest.MANIFEST_NAME else path
    if "/" not in word and not folder.is_dir():
        return None
    if manifest.read_manifest(folder) is None:
        problem = f"{folder} has no {manifest.MANIFEST_NAME}" if folder.is_dir() else f"there is no folder {folder}"
        raise InputError(problem, advice="audit takes a task or the folder of an exported bundle")
    return folder


def audit_targets(
    targets: AuditTargets,
    settings: Settings,
    *,
    with_exploits: bool = False,
    make_progress: Callable[[str, int], CountProgress] = CountProgress,
) -> Iterator[TaskAudit]:
    """Yield the result of each task, those of bundles included.

    Results of the database's own tasks are stored where the database can be written.

    Args:
        targets: tasks and bundles.
        settings: database, engine, limits and workers.
        with_exploits: whether to grade all of `verifiers.exploits.EXPLOITS`, not only the quick exploits.
        make_progress: function that makes the progress of a task, of a noun and the number of submissions or edits.

    Raises:
        InputError: the image of a task of the database, or the clone of its source, is missing.
        MachineError: no engine answers.
        Transient: the engine failed.
    """
    services = make_services(settings, engine=True)
    inspect = partial(_inspect, with_exploits=with_exploits, make_progress=make_progress)
    if not targets.has_tasks:
        for folder in targets.bundles:
            yield from audit_bundle(folder, services, inspect)
        return
    with Store.open(settings.storage.db, create=False) as store:
        services = enable_fetching(services, store)
        if store.is_read_only:
            log.warning("the results are not stored: %s is read-only", settings.storage.db)
        for target in targets.targets:
            if isinstance(target, Path):
                yield from audit_bundle(target, services, inspect)
                continue
            started = time.perf_counter()
            result = audit_task(target, services, inspect)
            if not store.is_read_only:
                store.add(_build_record(result, services, time.perf_counter() - started))
            yield result


Inspect = Callable[[Task, Services, TreeFiles | None], verifiers.Inspection]
"""Function that inspects a task, with the files of its base tree where they are not in a clone."""


def _inspect(
    task: Task,
    services: Services,
    files: TreeFiles | None,
    *,
    with_exploits: bool,
    make_progress: Callable[[str, int], CountProgress],
) -> verifiers.Inspection:
    probes = EXPLOITS if with_exploits else PROBES
    return verifiers.inspect(task, services, files, probes, need_rates=not with_exploits, open_counter=make_progress)


def _build_record(result: TaskAudit, services: Services, seconds: float) -> Audit:
    """Return the record of an audit of a task of the database."""
    image = services.images.inspect(result.image) if result.image else None
    return Audit(
        parent=result.id,
        name=result.task,
        clean=result.clean,
        findings=tuple(result.findings),
        probes=tuple(result.probes),
        strength=result.strength,
        image_digest=image.digest if image else "",
        at=services.clock(),
        seconds=seconds,
    )


def audit_files(folder: Path) -> BundleAudit:
    """Compare a bundle's files with its manifest: missing, changed and additional files. Needs no engine."""
    content = manifest.read_manifest(folder) or {}
    problems = [line.partition(": ") for line in manifest.check_manifest(folder)]
    return BundleAudit(
        bundle=str(folder),
        format=str(content.get("format")),
        tasks=len(content.get("tasks", [])),
        clean=not problems,
        manifest_sha256=manifest.hash_file(folder / manifest.MANIFEST_NAME),
        findings=[{"kind": "file", "location": where, "description": what} for what, _, where in problems],
    )


def audit_bundle(folder: Path, services: Services, inspect: Inspect) -> Iterator[TaskAudit]:
    """Yield the result of each task of a bundle; a task whose image cannot be had is skipped.

    Raises:
        InputError: a task differs from the manifest.
        Transient: the engine failed.
    """
    with open_bundle(folder, services) as bundle_services:
        for bundled in read_bundle(folder):
            if fetch_image(bundled, folder, services):
                inspection = inspect(bundled.task, bundle_services, bundled.read_files())
                yield _build_task_audit(bundled.task, inspection)
            else:
                yield _build_task_audit(bundled.task, skipped=f"the image {bundled.task.image} is not here")


def audit_task(task: Task, services: Services, inspect: Inspect) -> TaskAudit:
    """Audit a task of the database.

    Raises:
        InputError: its image or the clone of its source is missing.
        Transient: the engine failed.
    """
    if task.image and services.images.inspect(task.image) is None:
        raise InputError(f"the image of {task.name} is not here", advice=f"rebuild or pull {task.image}")
    return _build_task_audit(task, inspect(task, services, None))


def _build_task_audit(
    task: Task, inspection: verifiers.Inspection | None = None, *, skipped: str | None = None
) -> TaskAudit:
    return TaskAudit(
        task=task.name,
        id=task.id,
        image=task.image,
        skipped=skipped,
        clean=inspection is not None and not inspection.findings,
        findings=[asdict(finding) for finding in inspection.findings] if inspection else [],
        probes=[asdict(probe) for probe in inspection.probes] if inspection else [],
        strength=asdict(inspection.strength) if inspection else None,
    )
