"""Removal of images, for `mergemill images prune` and the disk budget of a run. `GUARDS` lists the reasons to keep one.

Images are removed from the top layer down, since removing a parent of another image frees nothing. The least recently
used one is removed first; the use of a child counts as a use of its parents.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from backends.sandbox.images import ImageStore, StoredImage
from core.errors import MergemillError
from mergemill.execution.images.copies import matches_digest
from mergemill.execution.images.inventory import build_ancestry, is_own_image, parse_kind
from mergemill.execution.images.ledger import UsageLedger
from taskdb.queries.images import ImageNeeds
from taskdb.records.images import ImageCopy

log = logging.getLogger(__name__)

RECENT_USE_SECONDS = 60
"""Seconds for which an image counts as in use: the database may not list it yet."""


@dataclass(frozen=True, kw_only=True)
class PruneContext:
    """Facts that decide on images. `copies`: image -> copies in registries, newest first."""

    needs: ImageNeeds
    copies: Mapping[str, tuple[ImageCopy, ...]]
    ledger: UsageLedger
    include_unknown: bool = False
    """Whether images that neither database nor ledger lists are removed; they may belong to another database."""
    has_budget: bool = True
    """Whether a limit is enforced; else only images that no task will ever need are removed."""
    now: float = field(default_factory=time.time)


@dataclass(kw_only=True)
class PruneResult:
    """Result of pruning. Bytes are those of layers, each counted once."""

    removed: list[tuple[StoredImage, int]] = field(default_factory=list)
    """Images in order of removal, each with the bytes it freed."""
    before: int = 0
    after: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    """Reason -> number of images that were kept for it."""


def is_only_certified_copy(name: str, context: PruneContext) -> bool:
    """Return whether a certified task needs the image and no registry has a copy."""
    return name in context.needs.certified and name not in context.copies


def is_needed_by_open_change(name: str, context: PruneContext) -> bool:
    """Return whether a change that is still pending needs the image."""
    return name in context.needs.in_open_changes


def is_recently_used(name: str, context: PruneContext) -> bool:
    """Return whether the image was used within RECENT_USE_SECONDS."""
    return (context.ledger.get_last_use(name) or 0.0) > context.now - RECENT_USE_SECONDS


def is_needed_by_task(name: str, context: PruneContext) -> bool:
    """Return whether a task needs the image; with a budget only the other guards apply."""
    return not context.has_budget and name in context.needs.in_tasks


def is_base(name: str, context: PruneContext) -> bool:
    """Return whether the image is a base image; with a budget only the other guards apply."""
    return not context.has_budget and parse_kind(name) == "base"


GUARDS: Mapping[str, Callable[[str, PruneContext], bool]] = {
    "certified tasks need it and no registry has a copy": is_only_certified_copy,
    "pending changes need it": is_needed_by_open_change,
    "a task needs it": is_needed_by_task,
    "it is a base image": is_base,
    "it was used within the last minute": is_recently_used,
}
UNKNOWN_IMAGE = "neither this database nor this store lists it"
IN_USE = "it is in use"
HAS_CHILDREN = "other images are built on it"
WITHIN_BUDGET = "the budget is met"


@dataclass
class _ImageGraph:
    """All images of the engine with their ancestry; `total_bytes` counts mergemill's images."""

    images: dict[str, StoredImage]
    ancestors: dict[str, tuple[StoredImage, ...]] = field(init=False)
    n_children: Counter[str] = field(init=False)
    """Name -> number of images built on it."""
    layer_uses: Counter[str] = field(init=False)
    """Layer -> number of images that have it."""
    total_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.ancestors = build_ancestry(list(self.images.values()))
        self.n_children = Counter(other.name for name in self.images for other in self.ancestors[name])
        self.layer_uses = Counter(layer.chain for image in self.images.values() for layer in image.layers)
        mine = [image for name, image in self.images.items() if is_own_image(name)]
        self.total_bytes = sum({layer.chain: layer.size for image in mine for layer in image.layers}.values())

    def remove(self, name: str) -> int:
        """Remove an image from the graph and return the bytes this frees."""
        image = self.images.pop(name)
        self.n_children.subtract(other.name for other in self.ancestors[name])
        self.layer_uses.subtract(layer.chain for layer in image.layers)
        freed = sum(layer.size for layer in image.layers if not self.layer_uses[layer.chain])
        self.total_bytes -= freed
        return freed


def prune_images(
    image_store: ImageStore,
    context: PruneContext,
    *,
    limit: int,
    dry_run: bool = False,
    check: Callable[[ImageCopy], bool],
) -> PruneResult:
    """Remove images, least recently used first, until they take no more than `limit` bytes.

    Args:
        image_store: images of the engine.
        context: facts that decide on images.
        limit: bytes; 0 removes every image without a guard.
        dry_run: whether nothing is removed.
        check: whether a copy still exists; called before the image of a certified task is removed.

    Raises:
        Transient: the engine failed.
    """
    graph = _ImageGraph({image.name: image for image in image_store.list_images("")})
    last = _compute_last_uses(graph, context.ledger)
    removable = _select_removable(graph, context)
    result = PruneResult(before=graph.total_bytes)
    # An image can be removed only after those that are built on it.
    queue = [(last[name], name) for name in removable if not graph.n_children[name]]
    heapq.heapify(queue)
    while queue and graph.total_bytes > limit:
        _, name = heapq.heappop(queue)
        removable[name] = _recheck_image(graph.images[name], context, check) or (
            "" if dry_run else _remove_image(image_store, name)
        )
        if removable[name]:
            continue
        result.removed.append((graph.images[name], graph.remove(name)))
        for other in filter(is_own_image, (image.name for image in graph.ancestors[name])):
            # The use of a removed image counts for the images that it was built on.
            if not dry_run and last[other]:
                context.ledger.touch(other, last[other])
            if not graph.n_children[other] and not removable.get(other, UNKNOWN_IMAGE):
                heapq.heappush(queue, (last[other], other))
        if not dry_run:
            context.ledger.remove(name)
    result.after = graph.total_bytes
    result.kept = Counter(_list_kept_reasons(graph, removable, context))
    return result


def _compute_last_uses(graph: _ImageGraph, ledger: UsageLedger) -> dict[str, float]:
    """Return the last use of each image or its children; 0 when this store never used them."""
    uses = ledger.read_all()
    last = {name: uses.get(name, 0.0) for name in graph.images}
    for name in graph.images:
        for other in graph.ancestors[name]:
            last[other.name] = max(last[other.name], uses.get(name, 0.0))
    return last


def _select_removable(graph: _ImageGraph, context: PruneContext) -> dict[str, str]:
    """Return the names of images without a guard, each with an empty reason to keep it."""
    ledger = context.ledger.read_all()
    mine = {name for name in graph.images if name in context.needs.known or name in ledger}
    mine |= {other.name for name in mine for other in graph.ancestors[name]}
    return {
        name: ""
        for name in graph.images
        if is_own_image(name)
        and (context.include_unknown or name in mine)
        and not any(guard(name, context) for guard in GUARDS.values())
    }


def _recheck_image(image: StoredImage, context: PruneContext, check: Callable[[ImageCopy], bool]) -> str:
    """Return the reason to keep an image, checked right before its removal, or an empty string."""
    if is_recently_used(image.name, context):
        return "it was used within the last minute"
    if image.name not in context.needs.certified:
        return ""
    copies = [copy for copy in context.copies[image.name] if matches_digest(copy, image.digest)]
    if not copies:
        return "its registry has another build of it"
    try:
        return "" if any(check(copy) for copy in copies) else "its registry no longer has the copy"
    except MergemillError as error:
        # A copy that cannot be confirmed does not count, since a certified task needs the image.
        log.warning("%s is kept: %s", image.name, error.format_line())
        return "its registry cannot be queried"


def _remove_image(image_store: ImageStore, name: str) -> str:
    """Remove an image; return the reason where that failed, or an empty string."""
    return "" if image_store.prune(name) else IN_USE


def _list_kept_reasons(graph: _ImageGraph, removable: Mapping[str, str], context: PruneContext) -> Iterator[str]:
    """Yield the reason for which each remaining image was kept."""
    for name in filter(is_own_image, graph.images):
        if name in removable:
            yield removable[name] or (HAS_CHILDREN if graph.n_children[name] > 0 else WITHIN_BUDGET)
        else:
            yield next((reason for reason, guard in GUARDS.items() if guard(name, context)), UNKNOWN_IMAGE)
