"""Which images on this engine are mergemill's, and which of them nothing needs any more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from backends.sandbox.base import ImageInfo, Sandbox
from builders import bases, layers
from taskdb import queries
from taskdb.records import BuildPlan
from taskdb.store import Store

OURS = "mergemill/"
"""How the names of mergemill's images begin. Others may carry our labels: whoever builds on an image inherits them."""
LAYERS = ("source", "dependencies", "base")
"""From the top down: what stands on a layer goes before it."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image of ours. `layer` is one of LAYERS, `layer_mb` the mebibytes it has beyond the one below."""

    name: str
    layer: str
    digest: str
    layer_mb: float

    def row(self) -> dict[str, Any]:
        """The image as `images list --json` tells it."""
        return asdict(self)


def described(info: ImageInfo) -> Image:
    """What the engine says of an image, in our words."""
    layer = info.labels.get(layers.LABEL, "base")
    return Image(name=info.name, layer=layer, digest=info.digest, layer_mb=round(info.layer_bytes / 2**20, 1))


def ours(sandbox: Sandbox) -> list[Image]:
    """All of mergemill's images, by name."""
    found = {info.name: info for label in (bases.LABEL, layers.LABEL) for info in sandbox.images(label)}
    return [described(info) for name, info in sorted(found.items()) if name.startswith(OURS)]


def unused(sandbox: Sandbox, store: Store, *, everything: bool) -> list[Image]:
    """Environment images that no task and no waiting change of the database needs, in the order to remove them.

    Args:
        sandbox: the engine.
        store: the database.
        everything: also images that the database knows nothing of. They may belong to other databases.
    """
    every, needed = queries.environments(store)
    known = {name for environment in every for name in _stands_on(environment.image, environment.plan)}
    keep = {name for e in every if e.id in needed for name in _stands_on(e.image, e.plan)}
    found = [
        image
        for image in ours(sandbox)
        if image.layer != "base" and image.name not in keep and (everything or image.name in known)
    ]
    return sorted(found, key=lambda image: LAYERS.index(image.layer))


def remove(sandbox: Sandbox, images: list[Image]) -> list[Image]:
    """Remove images; those that are gone. One that a container uses stays."""
    for image in images:
        sandbox.remove_image(image.name)
    return [image for image in images if sandbox.image(image.name) is None]


def _stands_on(image: str, plan: BuildPlan) -> tuple[str, str]:
    """The names of an environment's own layer and of the dependency layer below (as `builders.layers` names it)."""
    return image, plan.dependency_image
