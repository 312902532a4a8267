"""A queue of rollouts in which slow ones delay little and fast ones are not preferred without bound.

The idea is the windowed FIFO of MiniMax's Forge: strict order waits for the slowest rollout, taking whatever is done
first fills the first batches with short ones. Here a trainer takes in order of completion, yet from a window alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

from mergemill_client.errors import ClientError

Result = TypeVar("Result")
Value = TypeVar("Value")
Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class QueueClosedError(ClientError):
    """The queue is closed: nothing more can be submitted, or everything that was submitted is taken."""


class WindowedQueue(Generic[Result]):
    """At most N rollouts in order of submission, of which a window of W is open to the trainer.

    Let i be the position of the oldest rollout that is neither taken nor dropped, the head. `take` returns those done
    in [i, i + W - 1], in order of completion. i moves when the head is taken or dropped. So before a rollout at most
    W - 1 later ones are taken, however slow it is. W = 1 is strict order; without a bound, whatever is done is taken.

    All methods may be called from any thread; `submit_async` and `take_async` wait without blocking an event loop.

    ::

        queue = WindowedQueue(1000)
        position = queue.submit()          # before a rollout begins
        queue.finish(position, rollout)    # when it is done, in any order
        position, rollout = queue.take()   # in the trainer
    """

    def __init__(self, capacity: int, window: int | None = None) -> None:
        """Make an empty queue.

        Args:
            capacity: N, rollouts that may be submitted and not yet taken or dropped.
            window: W, positions; 0.3 * N rounded up if None.

        Raises:
            ValueError: capacity or window is below 1.
        """
        self.capacity = capacity
        self.window = math.ceil(capacity * 3 / 10) if window is None else window
        if min(capacity, self.window) < 1:
            raise ValueError(f"capacity and window are at least 1, not {capacity} and {self.window}")
        self._changed = threading.Condition()
        self._waiters: list[Waiter] = []
        self._head = 0
        self._next = 0
        self._open: dict[int, bool] = {}  # position -> whether it is done
        self._beyond: dict[int, tuple[int, Result]] = {}  # done, behind the window: completion number, result
        self._ready: list[tuple[int, int, Result]] = []  # heap of those in it: completion number, position, result
        self._completions = 0
        self._closed = False

    def __len__(self) -> int:
        """Return how many rollouts are submitted and neither taken nor dropped."""
        return len(self._open)

    @property
    def head(self) -> int:
        """The position i of the oldest rollout that is neither taken nor dropped; the next position if none is."""
        return self._head

    def submit(self, timeout: float | None = None) -> int:
        """Add a rollout to the end and return its position, 0 for the first; wait while N are in the queue.

        Args:
            timeout: seconds to wait at most; None for as long as it takes, 0 for not at all.

        Raises:
            TimeoutError: the queue stayed full.
            QueueClosedError: the queue is closed.
        """
        return self._wait(self._try_submit, timeout)

    async def submit_async(self) -> int:
        """Do what `submit` does in an event loop."""
        return await self._wait_async(self._try_submit)

    def finish(self, position: int, result: Result) -> bool:
        """Hand in the result of a rollout; return False, and drop the result, if it is not awaited any more.

        Raises:
            LookupError: no rollout was submitted at this position.
        """
        with self._changed:
            if not self._is_awaited(position):
                return False
            self._open[position] = True
            self._completions += 1
            self._beyond[position] = (self._completions, result)
            self._admit(position)
            self._notify()
            return True

    def drop(self, position: int) -> bool:
        """Give up a rollout, as after an infrastructure failure, so that nothing waits for it.

        To replace it instead, run it (or another one) again and finish the same position: nothing else is needed.
        Return False if it was done, taken or dropped before.

        Raises:
            LookupError: no rollout was submitted at this position.
        """
        with self._changed:
            if not self._is_awaited(position):
                return False
            self._remove(position)
            self._notify()
            return True

    def take(self, timeout: float | None = None) -> tuple[int, Result]:
        """Return position and result of the rollout in the window that was done first; wait until there is one.

        Args:
            timeout: seconds to wait at most; None for as long as it takes, 0 for not at all.

        Raises:
            TimeoutError: no rollout of the window was done in time.
            QueueClosedError: the queue is closed and nothing is left in it.
        """
        return self._wait(self._try_take, timeout)

    async def take_async(self) -> tuple[int, Result]:
        """Do what `take` does in an event loop; if the task is cancelled, no rollout is lost."""
        return await self._wait_async(self._try_take)

    def close(self) -> None:
        """Refuse new rollouts; those submitted can still be finished and taken."""
        with self._changed:
            self._closed = True
            self._notify()

    def __iter__(self) -> Iterator[tuple[int, Result]]:
        """Take until the queue is closed and empty."""
        with contextlib.suppress(QueueClosedError):
            while True:
                yield self.take()

    async def __aiter__(self) -> AsyncIterator[tuple[int, Result]]:
        """Take until the queue is closed and empty."""
        with contextlib.suppress(QueueClosedError):
            while True:
                yield await self.take_async()

    def _try_submit(self) -> int | None:
        if self._closed:
            raise QueueClosedError("the queue is closed")
        if len(self._open) >= self.capacity:
            return None
        position = self._next
        self._next += 1
        self._open[position] = False
        return position

    def _try_take(self) -> tuple[int, Result] | None:
        if self._ready:
            _, position, result = heapq.heappop(self._ready)
            self._remove(position)
            return position, result
        if self._closed and not self._open:
            raise QueueClosedError("the queue is closed and empty")
        return None

    def _is_awaited(self, position: int) -> bool:
        if not 0 <= position < self._next:
            raise LookupError(f"no rollout was submitted at position {position}")
        return self._open.get(position) is False

    def _admit(self, position: int) -> None:
        """Make a rollout ready if it is done and in the window."""
        if position < self._head + self.window and position in self._beyond:
            completion, result = self._beyond.pop(position)
            heapq.heappush(self._ready, (completion, position, result))

    def _remove(self, position: int) -> None:
        """Forget a rollout, and move the window past what is gone."""
        del self._open[position]
        while self._head < self._next and self._head not in self._open:
            self._head += 1
            self._admit(self._head + self.window - 1)

    def _notify(self) -> None:
        self._changed.notify_all()
        for loop, future in self._waiters:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                loop.call_soon_threadsafe(_wake, future)
        self._waiters.clear()

    def _attempt(self, attempt: Callable[[], Value | None]) -> Value | None:
        value = attempt()
        if value is not None:
            self._notify()
        return value

    def _wait(self, attempt: Callable[[], Value | None], timeout: float | None) -> Value:
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while (value := self._attempt(attempt)) is None:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"waited {timeout:g} s")
                self._changed.wait(left)
            return value

    async def _wait_async(self, attempt: Callable[[], Value | None]) -> Value:
        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if (value := self._attempt(attempt)) is not None:
                    return value
                future: asyncio.Future[None] = loop.create_future()
                self._waiters.append((loop, future))
            await future


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
