"""Images of a Docker engine, with their layers and the size of each layer."""

from __future__ import annotations

import hashlib
import http
from collections.abc import Sequence
from typing import Any

from backends.sandbox.images import ImageLayer, StoredImage
from backends.sandbox.removal import CONNECTION_ERRORS


def list_stored_images(client: Any, prefix: str) -> list[StoredImage]:
    """Return the images whose names start with `prefix`, by name. Mostly a request for each image."""
    images = [
        (entry, names, inspected, build_chain_ids(inspected["RootFS"].get("Layers") or ()))
        for entry in client.images()
        if (names := [name for name in entry["RepoTags"] or () if name.startswith(prefix)])
        and (inspected := _call_or_none(client.inspect_image, entry["Id"]))
    ]
    stored_images, sizes = [], dict[str, int]()
    for entry, names, inspected, chains in sorted(images, key=lambda row: len(row[3])):
        unknown = [chain for chain in chains if chain not in sizes]
        if len(unknown) == 1:
            sizes[unknown[0]] = max(0, entry["Size"] - sum(sizes.get(chain, 0) for chain in chains))
        elif unknown:
            steps = _call_or_none(client.history, entry["Id"]) or ()
            sizes |= dict(
                zip(chains, assign_layer_sizes(len(chains), [step["Size"] for step in reversed(steps)]), strict=True)
            )
        layers = tuple(ImageLayer(chain=chain, size=sizes[chain]) for chain in chains)
        labels = inspected["Config"].get("Labels") or {}
        stored_images += [
            StoredImage(name=name, digest=inspected["Id"], layers=layers, labels=labels) for name in names
        ]
    return sorted(stored_images, key=lambda image: image.name)


def estimate_image_bytes(client: Any, prefix: str) -> int:
    """Return the bytes these images take, from a request. Layers of pulled images may count more than once."""
    listed = client.images()
    sizes = {entry["Id"]: entry["Size"] for entry in listed}
    return sum(
        entry["Size"] - sizes.get(entry.get("ParentId"), 0)
        for entry in listed
        if any(name.startswith(prefix) for name in entry["RepoTags"] or ())
    )


def build_chain_ids(diff_ids: Sequence[str]) -> list[str]:
    """Return ids of an image's layers, base first: each is a digest of the layer together with all layers below."""
    chain, chain_ids = "", []
    for diff_id in diff_ids:
        chain = hashlib.sha256(f"{chain} {diff_id}".encode()).hexdigest()
        chain_ids.append(chain)
    return chain_ids


def assign_layer_sizes(count: int, sizes: Sequence[int]) -> list[int]:
    """Return the bytes of an image's `count` layers, base first, from the sizes of its history's steps, base first.

    Steps without a layer have size 0. The engine does not report which steps of size 0 have a layer.
    """
    if len(sizes) != count:
        sizes = [size for size in sizes if size]
    return [*sizes, *[0] * count][:count]


def _call_or_none(request: Any, image: str) -> Any:
    """Return the response to a request about an image, or None when it was removed meanwhile."""
    try:
        return request(image)
    except CONNECTION_ERRORS as error:
        if getattr(error, "status_code", None) == http.HTTPStatus.NOT_FOUND:
            return None
        raise
