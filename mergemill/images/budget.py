"""The disk budget of a run: after builds, and where a disk is full, the least recently used images make room."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backends.services import Services
from mergemill.errors import MergemillError
from mergemill.images.copies import Registries
from mergemill.images.ledger import Ledger
from mergemill.images.pruning import Known, Pruned, prune
from taskdb.image_queries import copies, needs
from taskdb.store import Store

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
"""How long a look at the images is good for; a long one is good for longer."""
SHARE = 20
"""At most this fraction of the time is spent on looking: a look of a second is good for twenty."""
RESERVE = 5 * 1024**3
"""Bytes that should be free on the engine's disk. Where they are not, images go though they are within the budget."""


@dataclass
class Budget:
    """Keeps a run's images within `settings.image_budget`, in the driver's thread. `say` tells people."""

    services: Services
    store: Store
    say: Callable[[str], None]
    next_look: float = 0.0
    stuck: bool = False
    """Whether it was said that there is nothing left to remove."""
    root: Path | None = None
    registries: Registries = field(init=False)

    def __post_init__(self) -> None:
        self.registries = Registries(self.services.sandbox)
        self.root = Path(self.services.sandbox.about().root)

    def make_room(self) -> None:
        """Remove images where they are too many; what goes wrong is logged, and the run goes on."""
        started = time.monotonic()
        if started < self.next_look:
            return
        try:
            self._look()
        except MergemillError as error:
            log.warning("images stay as they are: %s", error.line())
        took = time.monotonic() - started
        self.next_look = started + max(LOOK_SECONDS, SHARE * took)

    def _look(self) -> None:
        allowed = self.services.settings.image_budget
        if allowed is None:
            return
        taken = self.services.sandbox.taken("mergemill/")
        limit = max(0, min(int(allowed), taken - self._short()))
        if taken <= limit:
            return
        known = Known(
            needs=needs(self.store), copies=copies(self.store), ledger=Ledger(self.services.settings.store_dir)
        )
        done = prune(self.services.sandbox, known, limit=limit, check=self.registries.have)
        self._tell(done, limit)

    def _short(self) -> int:
        """Bytes that the engine's disk lacks of RESERVE; 0 where it is another machine's."""
        if self.root is None or not self.root.is_dir():
            return 0
        return max(0, RESERVE - shutil.disk_usage(self.root).free)

    def _tell(self, done: Pruned, limit: int) -> None:
        if done.removed:
            self.say(f"{len(done.removed)} images removed, {gigabytes(done.before - done.after)} freed")
            self.stuck = False
        if done.after > limit and not self.stuck:
            self.stuck = True
            self.say(f"images take {gigabytes(done.after)}, there is room for {gigabytes(limit)}: {why_kept(done)}")


def gigabytes(size: int) -> str:
    """Bytes as people read them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def why_kept(done: Pruned) -> str:
    """Why the images stayed that did, most frequent first."""
    return "; ".join(f"{count} kept, as {why}" for why, count in done.kept.most_common())
