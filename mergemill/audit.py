"""What `mergemill audit` looks at: a task of the database, or a bundle with nothing but what lies in it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import exporters.reading
import verifiers
from backends.services import Services
from exporters import manifest
from mergemill.errors import InputError
from mergemill.images.copies import fetched
from taskdb.artifacts import Artifacts
from taskdb.images import ImageCopy
from taskdb.records import Task


@dataclass(frozen=True, kw_only=True)
class TaskAudit:
    """What was found of one task. `skipped`: why nothing was looked at, else null; `clean`: no findings."""

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
    """What was found of a bundle's files. `manifest_sha256` names its whole content."""

    bundle: str
    format: str
    manifest_sha256: str
    tasks: int
    clean: bool
    findings: list[dict[str, Any]]


def bundle_of(word: str) -> Path | None:
    """The folder that a word of the command line means, or None when it means a task.

    Raises:
        InputError: it can only be a path, and there is no bundle.
    """
    path = Path(word)
    folder = path.parent if path.name == manifest.NAME else path
    if "/" not in word and not folder.is_dir():
        return None
    if manifest.read(folder) is None:
        what = (
            f"{folder} holds no {manifest.NAME} of mergemill's" if folder.is_dir() else f"there is no folder {folder}"
        )
        raise InputError(what, advice="audit takes a task or the folder of a bundle")
    return folder


def audit_files(folder: Path) -> BundleAudit:
    """Whether the bundle is what its manifest says: files missing, changed or foreign. No engine is needed."""
    told = manifest.read(folder) or {}
    wrong = [line.partition(": ") for line in manifest.check(folder)]
    return BundleAudit(
        bundle=str(folder), format=str(told.get("format")), tasks=len(told.get("tasks", [])), clean=not wrong,
        manifest_sha256=manifest.file_sha256(folder / manifest.NAME),
        findings=[{"kind": "file", "where": where, "what": what} for what, _, where in wrong],
    )  # fmt: skip


def audit_bundle(folder: Path, services: Services) -> Iterator[TaskAudit]:
    """The tasks of a bundle whose files are whole; those of which the image is not here are skipped.

    Raises:
        InputError: a task is not what the manifest says.
        Transient: the engine failed.
    """
    for shipped in exporters.reading.read_bundle(folder):
        task = shipped.task
        if services.sandbox.image(task.image) is None and not _fetched(task, shipped.registry, services):
            yield _told(task, skipped=f"the image {task.image} is not here")
            continue
        with tempfile.TemporaryDirectory(prefix="mergemill-") as temporary:
            theirs = replace(services, artifacts=Artifacts(Path(temporary)))
            for content in shipped.artifacts:
                theirs.artifacts.put(content)
            yield _told(task, verifiers.inspect(task, theirs, shipped.files()))


def _fetched(task: Task, reference: str | None, services: Services) -> bool:
    """Bring the image from where the bundle says that it is; whether it is here now."""
    if reference is None:
        return False
    copy = ImageCopy(image=task.image, image_digest=task.image_digest, reference=reference, at="")
    return fetched(services.sandbox, [copy]) is not None


def audit_task(task: Task, services: Services) -> TaskAudit:
    """A task of the database.

    Raises:
        InputError: its image or the clone of its source is not here.
        Transient: the engine failed.
    """
    if task.image and services.sandbox.image(task.image) is None:
        raise InputError(f"the image of {task.name} is not here", advice=f"{task.image} was pruned or is elsewhere")
    return _told(task, verifiers.inspect(task, services))


def _told(task: Task, found: verifiers.Inspection | None = None, *, skipped: str | None = None) -> TaskAudit:
    return TaskAudit(
        task=task.name, id=task.id, image=task.image, skipped=skipped, clean=found is not None and not found.findings,
        findings=[asdict(one) for one in found.findings] if found else [],
        probes=[asdict(one) for one in found.probes] if found else [],
        strength=asdict(found.strength) if found else None,
    )  # fmt: skip
