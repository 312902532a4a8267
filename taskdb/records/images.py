"""Records of images: copies in registries."""

from __future__ import annotations

from typing import Annotated

from taskdb.records.base import MEASURED, Record


class ImageCopy(Record):
    """An image that was pushed. Of several of an image the newest counts."""

    image: str
    """The image's own name, made from its content: the same on every machine."""
    image_digest: str
    """The engine's id of the image that was pushed (`sha256:...`); records of runs and certificates name it."""
    reference: str
    """`HOST/PREFIX/env@sha256:...`, the digest being that of the manifest: whoever pulls it gets the same bytes."""
    at: Annotated[str, MEASURED]
