"""A sandbox that brings the images it lacks from where the database says that a registry has them.

So a task can be graded, certified or audited on a machine that never built it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from backends.sandbox.base import ImageInfo, Limits, Ran, Sandbox, Series
from mergemill.images.copies import fetched
from taskdb.image_queries import copies

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.images import ImageCopy
    from taskdb.store import Store

log = logging.getLogger(__name__)


class Fetching:
    """The sandbox `of`, and all of `known` (image -> copies, newest first) as if it were there."""

    def __init__(self, of: Sandbox, known: Mapping[str, Sequence[ImageCopy]]) -> None:
        self._of = of
        self._known = known

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def image(self, name: str) -> ImageInfo | None:
        """The image of that name, here or fetched; see `Sandbox.image` and `copies.fetched`."""
        found = self._of.image(name)
        if found is not None or name not in self._known:
            return found
        log.info("fetching %s", name)
        if (found := fetched(self._of, self._known[name])) is None:
            log.warning("no registry has %s any more", name)
        return found

    def run(self, image: str, command: Sequence[str], **how: Any) -> Ran:
        """As `Sandbox.run`."""
        self._obtain(image)
        return self._of.run(image, command, **how)

    def series(self, image: str, *, limits: Limits) -> AbstractContextManager[Series]:
        """As `Sandbox.series`."""
        self._obtain(image)
        return self._of.series(image, limits=limits)

    def layers(self, name: str) -> Any:
        """As `Sandbox.layers`."""
        self._obtain(name)
        return self._of.layers(name)

    def _obtain(self, image: str) -> None:
        if image in self._known:
            self.image(image)


def fetching(services: Services, store: Store) -> Services:
    """The services, with images fetched of which the database knows a copy."""
    known = copies(store)
    return replace(services, sandbox=cast("Sandbox", Fetching(services.sandbox, known))) if known else services
