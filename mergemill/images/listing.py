"""Which images on an engine are mergemill's, what each consists of, and who needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from backends.sandbox.base import Sandbox, Stored
from mergemill.images.ledger import Ledger, told
from taskdb.image_queries import Needs
from taskdb.images import ImageCopy

OURS = "mergemill/"
"""How the names of mergemill's images begin. Others may carry our labels: whoever builds on an image inherits them."""
KINDS = ("base", "deps", "env")
"""From the bottom up; a kind is the second word of an image's name, `mergemill/deps:...`."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image of ours, as `images list --json` tells it."""

    kind: str
    """One of KINDS."""
    name: str
    digest: str
    """The engine's id."""
    own_bytes: int
    """Of the layers beyond those of the image it stands on."""
    shared_bytes: int
    """Of the layers of that image: whatever stands on it shares them."""
    last_used: str | None
    """ISO 8601, UTC; null when nobody used it who works with this store."""
    tasks: tuple[str, ...]
    """Certified tasks that need it, by name; of a layer below those of all images that stand on it."""
    registry: str | None
    """Where a registry has a copy, by digest."""

    def row(self) -> dict[str, Any]:
        """The image as plain data."""
        return asdict(self)


def ours(sandbox: Sandbox) -> list[Stored]:
    """All of mergemill's images, by name."""
    return [image for image in sandbox.inventory(OURS) if is_ours(image.name)]


def is_ours(name: str) -> bool:
    """Whether the image has a name of mergemill's own."""
    return name.startswith(OURS) and kind_of(name) in KINDS


def kind_of(name: str) -> str:
    """The kind of image that a name of ours means."""
    return name.removeprefix(OURS).partition(":")[0]


def stacks(images: Sequence[Stored]) -> dict[str, tuple[Stored, ...]]:
    """Name of an image -> those of the images that it stands on, nearest first.

    One stands on another when it begins with all its layers; of two that have the same ones the kind decides.
    """
    tops: dict[str, list[Stored]] = {}
    for image in images:
        tops.setdefault(_top(image), []).append(image)
    found = {}
    for image in images:
        under = [
            other
            for layer in reversed(image.layers)
            for other in sorted(tops.get(layer.chain, ()), key=_rank, reverse=True)
            if layer.chain != _top(image) or _rank(other) < _rank(image)
        ]
        found[image.name] = tuple(under)
    return found


def described(
    images: Sequence[Stored], needs: Needs, copies: Mapping[str, tuple[ImageCopy, ...]], ledger: Ledger
) -> list[Image]:
    """What is known of images, in their order. `copies`: image -> its copies, newest first."""
    under, used = stacks(images), ledger.all()
    tasks = needed_by(images, under, needs)
    found = []
    for image in images:
        shared = sum(layer.size for layer in under[image.name][0].layers) if under[image.name] else 0
        copy = copies.get(image.name)
        found.append(
            Image(
                kind=kind_of(image.name), name=image.name, digest=image.digest,
                own_bytes=sum(layer.size for layer in image.layers) - shared, shared_bytes=shared,
                last_used=told(used.get(image.name)), tasks=tuple(sorted(tasks[image.name])),
                registry=copy[0].reference if copy else None,
            )
        )  # fmt: skip
    return found


def needed_by(images: Iterable[Stored], under: Mapping[str, tuple[Stored, ...]], needs: Needs) -> dict[str, set[str]]:
    """Name of an image -> certified tasks that need it or what stands on it."""
    found: dict[str, set[str]] = {name: set() for name in under}
    for image in images:
        for name in (image.name, *(other.name for other in under[image.name])):
            found[name].update(needs.certified.get(image.name, ()))
    return found


def _top(image: Stored) -> str:
    return image.layers[-1].chain if image.layers else ""


def _rank(image: Stored) -> int:
    kind = kind_of(image.name)
    return KINDS.index(kind) if kind in KINDS else len(KINDS)
