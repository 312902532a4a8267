"""What images the engine has, layer by layer, and how many bytes each layer takes."""

from __future__ import annotations

import hashlib
import http
from collections.abc import Sequence
from typing import Any

from backends.sandbox.base import Layer, Stored
from backends.sandbox.removal import AWAY


def inventory(client: Any, prefix: str) -> list[Stored]:
    """The images whose names begin so, by name. `client` is the engine's; one question an image, mostly."""
    told = [
        (entry, names, inspected, chained(inspected["RootFS"].get("Layers") or ()))
        for entry in client.images()
        if (names := [name for name in entry["RepoTags"] or () if name.startswith(prefix)])
        and (inspected := _if_there(client.inspect_image, entry["Id"]))
    ]
    found, sizes = [], dict[str, int]()
    for entry, names, inspected, chains in sorted(told, key=lambda row: len(row[3])):
        unknown = [chain for chain in chains if chain not in sizes]
        if len(unknown) == 1:
            sizes[unknown[0]] = max(0, entry["Size"] - sum(sizes.get(chain, 0) for chain in chains))
        elif unknown:
            steps = _if_there(client.history, entry["Id"]) or ()
            sizes |= dict(zip(chains, of_layers(len(chains), [step["Size"] for step in reversed(steps)]), strict=True))
        layers = tuple(Layer(chain=chain, size=sizes[chain]) for chain in chains)
        labels = inspected["Config"].get("Labels") or {}
        found += [Stored(name=name, digest=inspected["Id"], layers=layers, labels=labels) for name in names]
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


def chained(diff_ids: Sequence[str]) -> list[str]:
    """Names for the layers of an image, base first: each is the digest of a layer's content with all below it."""
    chain, found = "", []
    for diff_id in diff_ids:
        chain = hashlib.sha256(f"{chain} {diff_id}".encode()).hexdigest()
        found.append(chain)
    return found


def of_layers(count: int, sizes: Sequence[int]) -> list[int]:
    """Bytes of an image's `count` layers, base first, from those of the steps of its history in the same order.

    Steps that made no layer have no bytes; which of several without bytes made one, the engine does not say.
    """
    if len(sizes) != count:
        sizes = [size for size in sizes if size]
    return [*sizes, *[0] * count][:count]


def _if_there(ask: Any, image: str) -> Any:
    """What the engine says of an image, None when it was removed meanwhile."""
    try:
        return ask(image)
    except AWAY as error:
        if getattr(error, "status_code", None) == http.HTTPStatus.NOT_FOUND:
            return None
        raise
