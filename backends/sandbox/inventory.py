"""What images the engine has, layer by layer, and how many bytes each layer takes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from backends.sandbox.base import Layer, Stored
from backends.sandbox.removal import AWAY


def inventory(client: Any, prefix: str) -> list[Stored]:
    """The images whose names begin so, by name. `client` is the engine's."""
    found = []
    for entry in client.images():
        names = [name for name in entry["RepoTags"] or () if name.startswith(prefix)]
        if not names:
            continue
        try:
            told, steps = client.inspect_image(entry["Id"]), client.history(entry["Id"])
        except AWAY as error:
            if getattr(error, "status_code", None) == 404:  # removed since it was listed
                continue
            raise
        layers = chained(told["RootFS"].get("Layers") or (), [step["Size"] for step in reversed(steps)])
        labels = told["Config"].get("Labels") or {}
        found += [Stored(name=name, digest=told["Id"], layers=layers, labels=labels) for name in names]
    return sorted(found, key=lambda image: image.name)


def taken(client: Any, prefix: str) -> int:
    """Bytes that these images take, from one question. Layers of images that were pulled may count more than once."""
    listed = client.images()
    sizes = {entry["Id"]: entry["Size"] for entry in listed}
    return sum(
        entry["Size"] - sizes.get(entry.get("ParentId"), 0)
        for entry in listed
        if any(name.startswith(prefix) for name in entry["RepoTags"] or ())
    )


def chained(diff_ids: Sequence[str], sizes: Sequence[int]) -> tuple[Layer, ...]:
    """The layers of an image, base first.

    Args:
        diff_ids: digests of the layers' contents.
        sizes: bytes of each step of the image's history, in the same order; steps that made no layer have none.
    """
    if len(sizes) != len(diff_ids):
        sizes = [size for size in sizes if size]
    if len(sizes) < len(diff_ids):  # layers without content were dropped as well: which, the engine does not say
        sizes = [*sizes, *[0] * (len(diff_ids) - len(sizes))]
    chain, found = "", []
    for diff_id, size in zip(diff_ids, sizes, strict=False):
        chain = hashlib.sha256(f"{chain} {diff_id}".encode()).hexdigest()
        found.append(Layer(chain=chain, size=size))
    return tuple(found)
