"""Nodes of a simulated cluster: cores, workers, and a disk of images."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Hashable

from benchmarks.scale.events import Action, EventLoop, Process, Resume, SharedCores, Usage
from benchmarks.scale.plan import Plan

GIGA = 1e9


class ImageCache:
    """Images on the disk of a node."""

    def __init__(self, loop: EventLoop, capacity: float) -> None:
        self._loop, self._capacity = loop, capacity
        self._images: OrderedDict[Hashable, float] = OrderedDict()
        """Image -> bytes; the least recently used first."""
        self._users: Counter[Hashable] = Counter()
        self._pending: dict[Hashable, list[Resume]] = {}
        self.bytes = 0.0
        self.n_evicted = 0

    def hold(self, image: Hashable, size: float, make: Callable[[], Process]) -> Generator[Action, None, bool]:
        """Make an image unless it is there, and return whether it was made; it stays until it is released.

        While one process makes an image, others that need it wait.
        """
        while image in self._pending:
            yield self._pending[image].append
        self._users[image] += 1
        if image in self._images:
            self._images.move_to_end(image)
            return False
        self._pending[image] = []
        yield from make()
        self._images[image] = size
        self.bytes += size
        self._evict()
        for resume in self._pending.pop(image):
            self._loop.call_at(self._loop.now, resume)
        return True

    def release(self, image: Hashable) -> None:
        """End a hold."""
        self._users[image] -= 1

    def clear(self) -> None:
        """Lose all images; those who waited for one wait for ever."""
        self._images.clear()
        self._users.clear()
        self._pending.clear()
        self.bytes = 0.0

    def _evict(self) -> None:
        """Remove images that nothing uses, least recently used first, until the rest fits."""
        too_many, unused = self.bytes - self._capacity, []
        for image in self._images:
            if too_many <= 0:
                break
            if self._users[image] <= 0:
                unused.append(image)
                too_many -= self._images[image]
        for image in unused:
            self.bytes -= self._images.pop(image)
        self.n_evicted += len(unused)


class Node:
    """A machine of the cluster."""

    def __init__(self, loop: EventLoop, plan: Plan, number: int) -> None:
        self.number = number
        self.cores = SharedCores(loop, plan.cores, plan.efficiency)
        self.workers = Usage(loop, plan.sandboxes_per_node)
        self.images = ImageCache(loop, plan.disk_gb * GIGA)
        self.is_down = False
