"""mergemill's images on an engine, their layers and the tasks that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from backends.sandbox.images import ImageStore, StoredImage
from mergemill.execution.images.ledger import UsageLedger, format_timestamp
from taskdb.queries.images import ImageNeeds
from taskdb.records.images import ImageCopy

IMAGE_PREFIX = "mergemill/"
"""Prefix of the names of mergemill's images. Labels do not identify them: images built on them inherit labels."""
KINDS = ("base", "deps", "env")
"""Kinds of images from the bottom layer up; the kind is part of the name, `mergemill/deps:...`."""


@dataclass(frozen=True, kw_only=True)
class ImageSummary:
    """An image of mergemill's images, with the fields of `images list --json`."""

    kind: str
    """One of KINDS."""
    name: str
    digest: str
    """The engine's id."""
    own_bytes: int
    """Bytes of the layers above its parent image."""
    shared_bytes: int
    """Bytes of the layers of its parent image, which the children share."""
    last_used: str | None
    """ISO 8601, UTC; None when this store never used it."""
    tasks: tuple[str, ...]
    """Names of certified tasks that need it or any of its children."""
    registry: str | None
    """Reference of the newest copy in a registry, by digest."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


def list_own_images(image_store: ImageStore) -> list[StoredImage]:
    """Return all of mergemill's images, sorted by name."""
    return [image for image in image_store.list_images(IMAGE_PREFIX) if is_own_image(image.name)]


def is_own_image(name: str) -> bool:
    """Return whether the name is among mergemill's images."""
    return name.startswith(IMAGE_PREFIX) and parse_kind(name) in KINDS


def parse_kind(name: str) -> str:
    """Return the kind of the image of that name."""
    return name.removeprefix(IMAGE_PREFIX).partition(":")[0]


def build_ancestry(images: Sequence[StoredImage]) -> dict[str, tuple[StoredImage, ...]]:
    """Return name of an image -> its ancestors among the images, nearest first.

    An ancestor's layers are the first layers of the image; of two images with the same layers the kind decides.
    """
    tops: dict[str, list[StoredImage]] = {}
    for image in images:
        tops.setdefault(_top_layer(image), []).append(image)
    ancestry = {}
    for image in images:
        below = [
            other
            for layer in reversed(image.layers)
            for other in sorted(tops.get(layer.chain, ()), key=_kind_rank, reverse=True)
            if layer.chain != _top_layer(image) or _kind_rank(other) < _kind_rank(image)
        ]
        ancestry[image.name] = tuple(below)
    return ancestry


def describe_images(
    images: Sequence[StoredImage], needs: ImageNeeds, copies: Mapping[str, tuple[ImageCopy, ...]], ledger: UsageLedger
) -> list[ImageSummary]:
    """Return a summary of each image, in the same order. `copies`: image -> its copies, newest first."""
    ancestors, last_uses = build_ancestry(images), ledger.read_all()
    tasks = find_dependent_tasks(images, ancestors, needs)
    image_summaries = []
    for image in images:
        parents = ancestors[image.name][:1]
        shared = sum(layer.size for parent in parents for layer in parent.layers)
        copy = copies.get(image.name)
        image_summaries.append(
            ImageSummary(
                kind=parse_kind(image.name),
                name=image.name,
                digest=image.digest,
                own_bytes=sum(layer.size for layer in image.layers) - shared,
                shared_bytes=shared,
                last_used=format_timestamp(last_uses.get(image.name)),
                tasks=tuple(sorted(tasks[image.name])),
                registry=copy[0].reference if copy else None,
            )
        )
    return image_summaries


def find_dependent_tasks(
    images: Iterable[StoredImage], ancestors: Mapping[str, tuple[StoredImage, ...]], needs: ImageNeeds
) -> dict[str, set[str]]:
    """Return name of an image -> certified tasks that need it or any of its children."""
    dependent_tasks: dict[str, set[str]] = {name: set() for name in ancestors}
    for image in images:
        for name in (image.name, *(other.name for other in ancestors[image.name])):
            dependent_tasks[name].update(needs.certified.get(image.name, ()))
    return dependent_tasks


def _top_layer(image: StoredImage) -> str:
    return image.layers[-1].chain if image.layers else ""


def _kind_rank(image: StoredImage) -> int:
    kind = parse_kind(image.name)
    return KINDS.index(kind) if kind in KINDS else len(KINDS)
