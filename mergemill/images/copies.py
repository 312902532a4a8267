"""Tasks' images in registries: pushed by name, fetched by digest, and looked for before the last one here goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from backends.sandbox.base import ImageInfo, Sandbox
from mergemill.errors import InputError, MergemillError, Transient, UsageError
from mergemill.images.listing import OURS
from taskdb.images import ImageCopy
from taskdb.records import Certificate, Task

_REGISTRY = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+(?=:))(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
)
"""HOST[:PORT]/PREFIX. Without a dot, a port or `localhost` the first word would be a user of Docker Hub's."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """An image of tasks. `digest` is the engine's id of the one that was certified."""

    image: str
    digest: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Moved:
    """What came of one image: `status` is pushed, pulled, here, or failed; `problem` then says why."""

    image: str
    registry: str | None
    status: str
    tasks: tuple[str, ...]
    problem: str | None = None

    def row(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def wanted(chosen: Sequence[tuple[Task, Certificate | None]]) -> list[Wanted]:
    """The images of tasks, each once, by name."""
    found: dict[str, tuple[str, list[str]]] = {}
    for task, certificate in chosen:
        digest = certificate.image_digest if certificate else task.image_digest
        found.setdefault(task.image, (digest, []))[1].append(task.name)
    return [
        Wanted(image=image, digest=digest, tasks=tuple(sorted(names)))
        for image, (digest, names) in sorted(found.items())
    ]


def copies_of(
    tasks: Sequence[Task], certificates: Mapping[str, Certificate], copies: Mapping[str, tuple[ImageCopy, ...]]
) -> dict[str, str]:
    """Image -> where a registry has the very one that was certified; what leaves the house names that.

    Args:
        tasks: whose images.
        certificates: task id -> certificate.
        copies: image -> its copies, newest first.
    """
    found: dict[str, str] = {}
    for task in tasks:
        digest = certificates[task.id].image_digest if task.id in certificates else task.image_digest
        same = [copy.reference for copy in copies.get(task.image, ()) if copy.image_digest == digest]
        found |= {task.image: same[0]} if same else {}
    return found


def checked_registry(word: str) -> str:
    """`HOST/PREFIX` as it is, without a slash at its end.

    Raises:
        UsageError: it is no such thing.
    """
    word = word.rstrip("/")
    if not _REGISTRY.fullmatch(word):
        raise UsageError(
            f"{word!r} is no registry", advice="HOST/PREFIX in small letters, such as localhost:5000/tasks"
        )
    return word


def push(
    sandbox: Sandbox, images: Sequence[Wanted], registry: str, clock: Callable[[], str], *, rebuilt: bool = False
) -> Iterator[tuple[Moved, ImageCopy | MergemillError]]:
    """Push images as `registry/env:...`; each with its copy, or with why there is none. Layers are sent once.

    Ends early when the registry does not answer. `rebuilt`: also images that are not the very ones certified.
    """
    for one in images:
        target = f"{registry}/{one.image.removeprefix(OURS)}"
        try:
            info = sandbox.image(one.image)
            if info is None:
                raise InputError(f"{one.image} is not here", advice="push from the machine that built it")
            if info.digest != one.digest and not rebuilt:
                advice = f"certified was {one.digest}; --rebuilt pushes it all the same, `grade --gold` tries it"
                raise InputError(f"{one.image} was built anew here and is not the one certified", advice=advice)
            digest = sandbox.push(one.image, target)
        except MergemillError as error:
            yield _failed(one, None, error), error
            if isinstance(error, Transient):
                return
            continue
        reference = f"{target.rpartition(':')[0]}@{digest}"
        copy = ImageCopy(image=one.image, image_digest=info.digest, reference=reference, at=clock())
        yield Moved(image=one.image, registry=reference, status="pushed", tasks=one.tasks), copy


def pull(
    sandbox: Sandbox, images: Sequence[Wanted], copies: Mapping[str, tuple[ImageCopy, ...]]
) -> Iterator[tuple[Moved, MergemillError | None]]:
    """Bring images here that are not; each with why it could not be brought, or None."""
    for one in images:
        known = copies.get(one.image, ())
        reference = known[0].reference if known else None
        try:
            here = sandbox.image(one.image) is not None
            if not here and fetched(sandbox, known) is None:
                lacks = "no registry has a copy that we know of" if not known else f"{reference} is gone"
                raise InputError(f"{one.image}: {lacks}", advice="mergemill images push where the image is")
        except MergemillError as error:
            yield _failed(one, reference, error), error
        else:
            status = "here" if here else "pulled"
            yield Moved(image=one.image, registry=reference, status=status, tasks=one.tasks), None


def fetched(sandbox: Sandbox, copies: Sequence[ImageCopy]) -> ImageInfo | None:
    """An image from the first of its copies that can be had; None when no registry has one any more.

    Raises:
        InputError: a registry refuses it or holds something else, and no other has it.
        Transient: a registry does not answer, and no other has it.
    """
    trouble: MergemillError | None = None
    for copy in copies:
        try:
            info = sandbox.fetch(copy.reference, copy.image)
        except (InputError, Transient) as error:
            trouble = error
            continue
        if info is None:
            continue
        if same(copy, info.digest):
            return info
        sandbox.remove_image(copy.image)
        trouble = InputError(f"{copy.reference} is {info.digest} and should be {copy.image_digest}")
    if trouble is not None:
        raise trouble
    return None


def same(copy: ImageCopy, digest: str) -> bool:
    """Whether an image of this id is what was pushed. Engines that keep images as containerd does name manifests."""
    return digest in (copy.image_digest, copy.reference.partition("@")[2])


class Registries:
    """Looks whether copies are still there. A registry that did not answer is not asked again."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._dead: dict[str, Transient] = {}

    def have(self, copy: ImageCopy) -> bool:
        """Whether the copy is there.

        Raises:
            InputError: the registry does not let us in.
            Transient: it does not answer.
        """
        host = copy.reference.partition("/")[0]
        if host in self._dead:
            raise self._dead[host]
        try:
            return self._sandbox.registry_has(copy.reference)
        except Transient as error:
            self._dead[host] = error
            raise


def _failed(one: Wanted, reference: str | None, error: MergemillError) -> Moved:
    return Moved(image=one.image, registry=reference, status="failed", tasks=one.tasks, problem=error.line())
