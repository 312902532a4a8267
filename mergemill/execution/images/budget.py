"""Disk budget of a run: the least recently used images are removed after builds and when a disk is full."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backends.services import Services
from core.errors import MergemillError
from core.text import format_count
from mergemill.execution.images.copies import RegistryClient
from mergemill.execution.images.ledger import UsageLedger
from mergemill.execution.images.prune import PruneContext, PruneResult, prune_images
from taskdb.queries.images import load_image_copies, load_image_needs
from taskdb.store import Store

log = logging.getLogger(__name__)

CHECK_INTERVAL_SECONDS = 15.0
"""Minimum time between two checks."""
CHECK_TIME_FACTOR = 20
"""Minimum time between two checks, as a multiple of the time that the last check took."""
RESERVED_BYTES = 5 * 1024**3
"""Bytes to keep free on the engine's disk, even where the images are within the budget."""


@dataclass
class ImageBudget:
    """Limit of a run's images, the setting `image_budget`. Used in the driver's thread; `notify` shows messages."""

    services: Services
    store: Store
    notify: Callable[[str], None]
    next_check: float = 0.0
    is_exhausted: bool = False
    """Whether the message that nothing is left to remove was shown."""
    docker_root: Path | None = None
    registries: RegistryClient = field(init=False)

    def __post_init__(self) -> None:
        self.registries = RegistryClient(self.services.images)
        self.docker_root = Path(self.services.images.get_engine_info().root)

    def free_space(self) -> None:
        """Remove images over the budget; an error is logged, and the run continues."""
        started = time.monotonic()
        if started < self.next_check:
            return
        try:
            self._enforce_budget()
        except MergemillError as error:
            log.warning("no image was removed: %s", error.format_line())
        duration = time.monotonic() - started
        self.next_check = started + max(CHECK_INTERVAL_SECONDS, CHECK_TIME_FACTOR * duration)

    def _enforce_budget(self) -> None:
        allowed = self.services.settings.operation.image_budget
        if allowed is None:
            return
        used_bytes = self.services.images.estimate_size("mergemill/")
        limit = max(0, min(int(allowed), used_bytes - self._compute_shortage()))
        if used_bytes <= limit:
            return
        context = PruneContext(
            needs=load_image_needs(self.store),
            copies=load_image_copies(self.store),
            ledger=UsageLedger(self.services.settings.storage.store_dir),
        )
        result = prune_images(self.services.images, context, limit=limit, check=self.registries.has_copy)
        self._report(result, limit)

    def _compute_shortage(self) -> int:
        """Return the bytes that the engine's disk lacks of RESERVED_BYTES; 0 for a disk of another machine."""
        if self.docker_root is None or not self.docker_root.is_dir():
            return 0
        return max(0, RESERVED_BYTES - shutil.disk_usage(self.docker_root).free)

    def _report(self, result: PruneResult, limit: int) -> None:
        if result.removed:
            freed = format_bytes(result.before - result.after)
            self.notify(f"{format_count(len(result.removed), 'image')} removed, {freed} freed")
            self.is_exhausted = False
        if result.after > limit and not self.is_exhausted:
            self.is_exhausted = True
            sizes = f"images take {format_bytes(result.after)}, {format_bytes(limit)} are allowed"
            self.notify(f"{sizes}: {format_kept_reasons(result)}")


def format_bytes(size: int) -> str:
    """Return bytes as MB or GB."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def format_kept_reasons(result: PruneResult) -> str:
    """Return the reasons for which images were kept, most frequent first."""
    return "; ".join(f"{count} kept because {reason}" for reason, count in result.kept.most_common())
