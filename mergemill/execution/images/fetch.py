"""Sandbox that pulls missing images from the registries that the database names.

So a task can be graded, certified or audited on a machine that never built it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from backends.sandbox.base import ContainerPool, Sandbox
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.images import ImageInfo, ImageStore
from mergemill.execution.images.copies import fetch_first_copy
from taskdb.queries.images import load_image_copies

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records.images import ImageCopy
    from taskdb.store import Store

log = logging.getLogger(__name__)


class FetchingSandbox:
    """Sandbox that pulls the images in `copies` (image -> copies, newest first) before they are used."""

    def __init__(self, sandbox: Sandbox, copies: Mapping[str, Sequence[ImageCopy]]) -> None:
        self._sandbox = sandbox
        self._images = FetchingImageStore(sandbox.images, copies)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    @property
    def images(self) -> ImageStore:
        """Image store that pulls missing images."""
        return cast("ImageStore", self._images)

    def run(self, image: str, command: Sequence[str], **options: Any) -> ExecResult:
        """Run a command; see `Sandbox.run`."""
        self._images.ensure(image)
        return self._sandbox.run(image, command, **options)

    def open_pool(self, image: str, *, limits: ResourceLimits) -> AbstractContextManager[ContainerPool]:
        """Open a container pool; see `Sandbox.open_pool`."""
        self._images.ensure(image)
        return self._sandbox.open_pool(image, limits=limits)


class FetchingImageStore:
    """Image store in which the images of `copies` exist: a missing image is pulled when it is looked up."""

    def __init__(self, store: ImageStore, copies: Mapping[str, Sequence[ImageCopy]]) -> None:
        self._store = store
        self._copies = copies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def inspect(self, name: str) -> ImageInfo | None:
        """Return the image of that name, pulled if need be; see `ImageStore.inspect` and `copies.fetch_first_copy`."""
        image_info = self._store.inspect(name)
        if image_info is not None or name not in self._copies:
            return image_info
        log.info("fetching %s", name)
        if (copy := fetch_first_copy(self._store, self._copies[name])) is None:
            log.warning("no registry has %s any more", name)
        return copy

    def open_layers(self, name: str) -> Any:
        """Open the layers of an image; see `ImageStore.open_layers`."""
        self.ensure(name)
        return self._store.open_layers(name)

    def ensure(self, name: str) -> None:
        """Pull the image if it is missing and a registry has a copy."""
        if name in self._copies:
            self.inspect(name)


def enable_fetching(services: Services, store: Store, images: Collection[str] | None = None) -> Services:
    """Return the services with a sandbox that pulls missing images of which the database has a copy.

    `images`: those that may be missing; None for any.
    """
    copies = load_image_copies(store, images)
    return replace(services, sandbox=cast("Sandbox", FetchingSandbox(services.sandbox, copies))) if copies else services
