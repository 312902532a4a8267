"""Which images may go, and in what order. Reading GUARDS is reading what is kept.

Layers go from the top down: an image that another stands on takes no room of its own, so it waits until that has gone.
Of those that may go, the least recently used goes first; what stands on an image counts as a use of it.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from backends.sandbox.base import Sandbox, Stored
from mergemill.errors import MergemillError
from mergemill.images.copies import same
from mergemill.images.ledger import Ledger
from mergemill.images.listing import is_ours, kind_of, stacks
from taskdb.image_queries import Needs
from taskdb.images import ImageCopy

log = logging.getLogger(__name__)

JUST_USED = 60
"""Seconds for which an image counts as in use: what a run made may not be written to its database yet."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What speaks for and against images. `copies`: image -> copies in registries, newest first."""

    needs: Needs
    copies: Mapping[str, tuple[ImageCopy, ...]]
    ledger: Ledger
    everything: bool = False
    """Also images that neither database nor ledger knows: they may be another database's."""
    budget: bool = True
    """Whether room is wanted; else only what no task will ever need goes."""
    now: float = field(default_factory=time.time)


@dataclass(kw_only=True)
class Pruned:
    """What came of pruning; bytes are those of layers, each counted once."""

    removed: list[tuple[Stored, int]] = field(default_factory=list)
    """Images in the order they went, each with the bytes that this freed."""
    before: int = 0
    after: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    """Why how many of the others stayed: words of GUARDS, or what was met at their removal."""


def certified_alone(name: str, known: Known) -> bool:
    """A certified task needs it, and no registry has a copy."""
    return name in known.needs.certified and name not in known.copies


def waited_for(name: str, known: Known) -> bool:
    """A change that still goes on needs it."""
    return name in known.needs.waiting


def just_used(name: str, known: Known) -> bool:
    """It was used a moment ago."""
    return (known.ledger.last(name) or 0.0) > known.now - JUST_USED


def of_a_task(name: str, known: Known) -> bool:
    """Without a budget tasks keep their images: certified or not, copy or none."""
    return not known.budget and name in known.needs.tasked


def a_base(name: str, known: Known) -> bool:
    """Without a budget bases stay."""
    return not known.budget and kind_of(name) == "base"


GUARDS: Mapping[str, Callable[[str, Known], bool]] = {
    "certified tasks need it and no registry has a copy": certified_alone,
    "changes that still go on need it": waited_for,
    "a task needs it": of_a_task,
    "it is a base": a_base,
    "it was used within the last minute": just_used,
}
FOREIGN = "neither this database nor this store knows it"
IN_USE = "it is being used"
BELOW = "others stand on it"
ENOUGH = "there is room enough"


@dataclass
class _Shelf:
    """The images that are there, others' too, and who stands on whom; `total` are the bytes of ours."""

    images: dict[str, Stored]
    under: dict[str, tuple[Stored, ...]] = field(init=False)
    above: Counter[str] = field(init=False)
    """Name -> how many images stand on it."""
    chains: Counter[str] = field(init=False)
    """Layer -> how many images have it."""
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.under = stacks(list(self.images.values()))
        self.above = Counter(other.name for name in self.images for other in self.under[name])
        self.chains = Counter(layer.chain for image in self.images.values() for layer in image.layers)
        mine = [image for name, image in self.images.items() if is_ours(name)]
        self.total = sum({layer.chain: layer.size for image in mine for layer in image.layers}.values())

    def take(self, name: str) -> int:
        """Take an image away; the bytes that this frees."""
        image = self.images.pop(name)
        self.above.subtract(other.name for other in self.under[name])
        self.chains.subtract(layer.chain for layer in image.layers)
        freed = sum(layer.size for layer in image.layers if not self.chains[layer.chain])
        self.total -= freed
        return freed


def prune(
    sandbox: Sandbox, known: Known, *, limit: int, dry_run: bool = False, check: Callable[[ImageCopy], bool]
) -> Pruned:
    """Remove images, least recently used first, until they take no more than `limit` bytes.

    Args:
        sandbox: the engine.
        known: what is known of them.
        limit: bytes; 0 removes all that may go.
        dry_run: only say what would go.
        check: whether a copy is still where it was pushed to; asked before a certified task's image goes.

    Raises:
        Transient: the engine failed.
    """
    shelf = _Shelf({image.name: image for image in sandbox.inventory("")})
    last = _last_uses(shelf, known.ledger)
    may_go = _may_go(shelf, known)
    done = Pruned(before=shelf.total)
    queue = [(last[name], name) for name in may_go if not shelf.above[name]]
    heapq.heapify(queue)
    while queue and shelf.total > limit:
        _, name = heapq.heappop(queue)
        may_go[name] = _why_not(shelf.images[name], known, check) or ("" if dry_run else _removed(sandbox, name))
        if may_go[name]:
            continue
        done.removed.append((shelf.images[name], shelf.take(name)))
        for other in filter(is_ours, (image.name for image in shelf.under[name])):
            if not dry_run and last[other]:
                known.ledger.touch(other, last[other])
            if not shelf.above[other] and not may_go.get(other, FOREIGN):
                heapq.heappush(queue, (last[other], other))
        if not dry_run:
            known.ledger.forget(name)
    done.after = shelf.total
    done.kept = Counter(_kept(shelf, may_go, known))
    return done


def _last_uses(shelf: _Shelf, ledger: Ledger) -> dict[str, float]:
    """When each image or what stands on it was last used; 0 when this store never did."""
    used = ledger.all()
    last = {name: used.get(name, 0.0) for name in shelf.images}
    for name in shelf.images:
        for other in shelf.under[name]:
            last[other.name] = max(last[other.name], used.get(name, 0.0))
    return last


def _may_go(shelf: _Shelf, known: Known) -> dict[str, str]:
    """Name of an image that may go -> why it was kept after all, empty so far."""
    ledger = known.ledger.all()
    mine = {name for name in shelf.images if name in known.needs.known or name in ledger}
    mine |= {other.name for name in mine for other in shelf.under[name]}
    return {
        name: ""
        for name in shelf.images
        if is_ours(name)
        and (known.everything or name in mine)
        and not any(guard(name, known) for guard in GUARDS.values())
    }


def _why_not(image: Stored, known: Known, check: Callable[[ImageCopy], bool]) -> str:
    """Why an image that might go stays, looked at in the last moment; empty when nothing speaks for it."""
    if just_used(image.name, known):
        return "it was used within the last minute"
    if image.name not in known.needs.certified:
        return ""
    copies = [copy for copy in known.copies[image.name] if same(copy, image.digest)]
    if not copies:
        return "its registry has another build of it"
    try:
        return "" if any(check(copy) for copy in copies) else "its registry has the copy no more"
    except MergemillError as error:
        log.warning("%s stays: %s", image.name, error.line())
        return "its registry cannot be asked"


def _removed(sandbox: Sandbox, name: str) -> str:
    """Remove an image; why that could not be done, or nothing."""
    return "" if sandbox.prune_image(name) else IN_USE


def _kept(shelf: _Shelf, may_go: Mapping[str, str], known: Known) -> Iterator[str]:
    """Why each image of ours that is left stayed."""
    for name in filter(is_ours, shelf.images):
        if name in may_go:
            yield may_go[name] or (BELOW if shelf.above[name] > 0 else ENOUGH)
        else:
            yield next((word for word, guard in GUARDS.items() if guard(name, known)), FOREIGN)
