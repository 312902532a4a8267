"""Images of a Docker engine, with their layers and the size of each layer."""

from __future__ import annotations

import hashlib
import http
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.sandbox.images import ImageLayer, StoredImage
from backends.sandbox.removal import CONNECTION_ERRORS


@dataclass(frozen=True)
class ImageContent:
    """Layers of an image, as ids of `build_chain_ids`, and its labels; the digest is computed from both."""

    digest: str
    chains: Sequence[str]
    labels: Mapping[str, str]


_known: dict[str, ImageContent] = {}
"""Id of an image -> its content, which this process has read: a run lists a thousand images again and again."""


def list_stored_images(client: Any, prefix: str) -> list[StoredImage]:
    """Return the images whose names start with `prefix`, by name. Mostly a request for each image that is new here."""
    images = [
        (entry, names, content)
        for entry in client.images()
        if (names := [name for name in entry["RepoTags"] or () if name.startswith(prefix)])
        and (content := _read_content(client, entry["Id"]))
    ]
    stored_images, sizes = [], dict[str, int]()
    for entry, names, content in sorted(images, key=lambda row: len(row[2].chains)):
        chains = content.chains
        unknown = [chain for chain in chains if chain not in sizes]
        if len(unknown) == 1:
            sizes[unknown[0]] = max(0, entry["Size"] - sum(sizes.get(chain, 0) for chain in chains))
        elif unknown:
            steps = _call_or_none(client.history, entry["Id"]) or ()
            sizes |= dict(
                zip(chains, assign_layer_sizes(len(chains), [step["Size"] for step in reversed(steps)]), strict=True)
            )
        layers = tuple(ImageLayer(chain=chain, size=sizes[chain]) for chain in chains)
        stored_images += [
            StoredImage(name=name, digest=content.digest, layers=layers, labels=content.labels) for name in names
        ]
    return sorted(stored_images, key=lambda image: image.name)


def _read_content(client: Any, image: str) -> ImageContent | None:
    """Return the content of the image with an id, or None when it was removed meanwhile."""
    if image not in _known:
        inspected = _call_or_none(client.inspect_image, image)
        if inspected is None:
            return None
        chains = build_chain_ids(inspected["RootFS"].get("Layers") or ())
        _known[image] = ImageContent(inspected["Id"], chains, inspected["Config"].get("Labels") or {})
    return _known[image]


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
