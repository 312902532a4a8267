"""Copies of tasks' images in registries: pushed by name, pulled by digest, verified before a local image is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from backends.sandbox.images import ImageInfo, ImageStore
from core.errors import InputError, MergemillError, Transient
from mergemill.execution.images.inventory import IMAGE_PREFIX
from taskdb.records import Certificate, Task
from taskdb.records.images import ImageCopy


@dataclass(frozen=True, kw_only=True)
class TransferRequest:
    """Image of one or several tasks. `digest` is the engine's id of the certified image."""

    image: str
    digest: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TransferResult:
    """Result for an image. `status`: pushed, pulled, here or failed; `problem`: the error where it failed."""

    image: str
    registry: str | None
    status: str
    tasks: tuple[str, ...]
    problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


def collect_images(chosen: Iterable[tuple[Task, Certificate | None]]) -> list[TransferRequest]:
    """Return the images of tasks, each once, sorted by name; tasks without an environment have none."""
    images: dict[str, tuple[str, list[str]]] = {}
    for task, certificate in chosen:
        if not task.image:
            continue
        digest = certificate.image_digest if certificate else task.image_digest
        images.setdefault(task.image, (digest, []))[1].append(task.name)
    return [
        TransferRequest(image=image, digest=digest, tasks=tuple(sorted(names)))
        for image, (digest, names) in sorted(images.items())
    ]


def find_certified_copy(
    task: Task, certificate: Certificate | None, copies: Mapping[str, tuple[ImageCopy, ...]]
) -> str | None:
    """Return the reference of the copy of a task's certified image, which exports name; None where there is none.

    `copies`: image -> its copies, newest first.
    """
    digest = certificate.image_digest if certificate else task.image_digest
    return next((copy.reference for copy in copies.get(task.image, ()) if copy.image_digest == digest), None)


def push_images(
    image_store: ImageStore,
    images: Sequence[TransferRequest],
    registry: str,
    clock: Callable[[], str],
    *,
    rebuilt: bool = False,
) -> Iterator[tuple[TransferResult, ImageCopy | MergemillError]]:
    """Push images as `registry/env:...`; yield each with its copy, or with the error.

    Ends early when the registry does not answer. `rebuilt`: whether images other than the certified images are pushed.
    """
    for request in images:
        target = f"{registry}/{request.image.removeprefix(IMAGE_PREFIX)}"
        try:
            info = image_store.inspect(request.image)
            if info is None:
                raise InputError(f"{request.image} is not here", advice="push from the machine that built it")
            if info.digest != request.digest and not rebuilt:
                advice = f"certified was {request.digest}; --rebuilt pushes it anyway, `grade --gold` tests it"
                raise InputError(f"{request.image} was rebuilt here and is not the certified image", advice=advice)
            digest = image_store.push(request.image, target)
        except MergemillError as error:
            yield _build_failure(request, None, error), error
            if isinstance(error, Transient):
                return
            continue
        reference = f"{target.rpartition(':')[0]}@{digest}"
        copy = ImageCopy(image=request.image, image_digest=info.digest, reference=reference, at=clock())
        yield TransferResult(image=request.image, registry=reference, status="pushed", tasks=request.tasks), copy


def pull_images(
    image_store: ImageStore, images: Sequence[TransferRequest], copies: Mapping[str, tuple[ImageCopy, ...]]
) -> Iterator[tuple[TransferResult, MergemillError | None]]:
    """Pull the images that are missing; yield each with the error, or None."""
    for request in images:
        known = copies.get(request.image, ())
        reference = known[0].reference if known else None
        try:
            here = image_store.inspect(request.image) is not None
            if not here and fetch_first_copy(image_store, known) is None:
                problem = "the database lists no copy of it" if not known else f"{reference} no longer exists"
                raise InputError(f"{request.image}: {problem}", advice="run mergemill images push where the image is")
        except MergemillError as error:
            yield _build_failure(request, reference, error), error
        else:
            status = "here" if here else "pulled"
            yield TransferResult(image=request.image, registry=reference, status=status, tasks=request.tasks), None


def fetch_first_copy(image_store: ImageStore, copies: Sequence[ImageCopy]) -> ImageInfo | None:
    """Pull an image from the first copy that works; return None when no registry has the image any more.

    Raises:
        InputError: a registry denies access or has another image, and no other copy works.
        Transient: a registry does not answer, and no other copy works.
    """
    last_error: MergemillError | None = None
    for copy in copies:
        try:
            info = image_store.pull_by_digest(copy.reference, copy.image)
        except (InputError, Transient) as error:
            last_error = error
            continue
        if info is None:
            continue
        if matches_digest(copy, info.digest):
            return info
        image_store.remove(copy.image)
        last_error = InputError(f"{copy.reference} is {info.digest}, expected {copy.image_digest}")
    if last_error is not None:
        raise last_error
    return None


def matches_digest(copy: ImageCopy, digest: str) -> bool:
    """Return whether an image of this id is the pushed image.

    With containerd's image store the id is the manifest's.
    """
    return digest in (copy.image_digest, copy.reference.partition("@")[2])


class RegistryClient:
    """Check that copies still exist. A registry that did not answer is not queried again."""

    def __init__(self, image_store: ImageStore) -> None:
        self._image_store = image_store
        self._unreachable: dict[str, Transient] = {}

    def has_copy(self, copy: ImageCopy) -> bool:
        """Return whether the copy exists.

        Raises:
            InputError: the registry denies access.
            Transient: the registry does not answer.
        """
        host = copy.reference.partition("/")[0]
        if host in self._unreachable:
            raise self._unreachable[host]
        try:
            return self._image_store.has_remote(copy.reference)
        except Transient as error:
            self._unreachable[host] = error
            raise


def _build_failure(request: TransferRequest, reference: str | None, error: MergemillError) -> TransferResult:
    return TransferResult(
        image=request.image, registry=reference, status="failed", tasks=request.tasks, problem=error.format_line()
    )
