"""Discrete events: a clock, processes, and the resources that processes wait for.

A process is a generator. It yields actions; an action is called with the function that continues the process, and calls
it when what the process waits for has happened. Times are seconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Sequence
from itertools import count

Resume = Callable[[], None]
Action = Callable[[Resume], None]
Process = Generator[Action, None, None]

_ROUNDING = 1e-9
"""Seconds by which two ends of work may differ and still be one moment."""


class EventLoop:
    """A clock that jumps from one event to the next."""

    def __init__(self) -> None:
        self.now = 0.0
        self.n_events = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def call_at(self, time: float, function: Callable[[], None]) -> None:
        """Call a function at a time; calls of the same time keep their order."""
        heapq.heappush(self._events, (time, next(self._numbers), function))

    def wait(self, seconds: float) -> Action:
        """Return the action that takes some seconds."""
        return lambda resume: self.call_at(self.now + seconds, resume)

    def start(self, process: Process) -> RunningProcess:
        """Start a process at once."""
        running = RunningProcess(process)
        running.advance()
        return running

    def run(self) -> None:
        """Run until no event is left."""
        while self._events:
            self.now, _, function = heapq.heappop(self._events)
            self.n_events += 1
            function()

    def stop(self) -> None:
        """Forget all events to come, which ends `run`."""
        self._events.clear()


class RunningProcess:
    """A started process; a stopped one ignores what it still waits for."""

    __slots__ = ("_process",)

    def __init__(self, process: Process) -> None:
        self._process: Process | None = process

    def advance(self) -> None:
        """Continue up to the next action."""
        if self._process is not None:
            action = next(self._process, None)
            if action is None:
                self._process = None
            else:
                action(self.advance)

    def stop(self) -> None:
        """End the process where it is."""
        if self._process is not None:
            self._process.close()
            self._process = None


class Usage:
    """Busy time of a resource, up to now and up to the moment of `mark`."""

    def __init__(self, loop: EventLoop, capacity: float) -> None:
        self._loop, self.capacity = loop, capacity
        self.level = 0.0
        """Share of the capacity that is busy now, in its unit."""
        self._sum = self._since = 0.0

    def change(self, difference: float) -> None:
        """Change what is busy now."""
        self._sum += self.level * (self._loop.now - self._since)
        self._since = self._loop.now
        self.level += difference

    def read(self) -> float:
        """Return busy seconds times what was busy."""
        self.change(0)
        return self._sum


class Servers:
    """One queue in front of some equal servers, first come, first served."""

    def __init__(self, loop: EventLoop, servers: int = 1) -> None:
        self._loop, self._free = loop, servers
        self._waiting: deque[tuple[float, Resume]] = deque()
        self.usage = Usage(loop, servers)

    def use(self, seconds: float) -> Action:
        """Return the action of being served for some seconds, after those who came before."""

        def request(resume: Resume) -> None:
            if self._free:
                self._free -= 1
                self._serve(seconds, resume)
            else:
                self._waiting.append((seconds, resume))

        return request

    def _serve(self, seconds: float, resume: Resume) -> None:
        self.usage.change(1)
        self._loop.call_at(self._loop.now + seconds, lambda: self._end(resume))

    def _end(self, resume: Resume) -> None:
        self.usage.change(-1)
        if self._waiting:
            self._serve(*self._waiting.popleft())
        else:
            self._free += 1
        resume()


class RateLimit:
    """A budget that refills evenly: `rate` units a second, of which at most `burst` are saved up."""

    def __init__(self, loop: EventLoop, rate: float, burst: float) -> None:
        self._loop, self._rate, self._burst = loop, rate, burst
        self._paid_until = -burst / rate
        self._n_waiting = 0
        self.usage = Usage(loop, 1)
        """Busy while anything waits for it."""

    def spend(self, units: float) -> Action:
        """Return the action that waits until the budget has some units, after those who came before."""

        def request(resume: Resume) -> None:
            self._paid_until = max(self._paid_until, self._loop.now - self._burst / self._rate) + units / self._rate
            start = max(self._loop.now, self._paid_until)
            if start > self._loop.now:
                self._wait(1)
                self._loop.call_at(start, lambda: self._end(resume))
            else:
                resume()

        return request

    def _wait(self, difference: int) -> None:
        self._n_waiting += difference
        self.usage.change(min(1, self._n_waiting) - self.usage.level)

    def _end(self, resume: Resume) -> None:
        self._wait(-1)
        resume()


class SharedCores:
    """Cores that all running work shares: when more are wanted than there are, all of it is slowed down alike.

    `efficiency[k]` is the speed of each core when k + 1 of them are busy (cores share caches and execution units); the
    last value is that of more.
    """

    def __init__(self, loop: EventLoop, cores: float, efficiency: Sequence[float] = (1.0,)) -> None:
        self._loop, self.cores, self._efficiency = loop, cores, efficiency
        self._work: list[tuple[float, int, float, Resume]] = []
        """Heap of (end on the virtual clock, number, cores, continuation)."""
        self._numbers = count()
        self._virtual = self._since = 0.0
        """The virtual clock runs at the speed of the work."""
        self._wanted = 0.0
        self._version = 0
        self.usage = Usage(loop, cores)

    def compute(self, seconds: float, cores: float = 1.0) -> Action:
        """Return the action of work that needs some seconds where nothing else runs. `cores`: those it keeps busy."""

        def request(resume: Resume) -> None:
            self._move_clock()
            heapq.heappush(self._work, (self._virtual + seconds, next(self._numbers), cores, resume))
            self._change_wanted(cores)
            self._schedule()

        return request

    def clear(self) -> None:
        """Forget all work, which never ends."""
        self._move_clock()
        self._work.clear()
        self._change_wanted(-self._wanted)
        self._version += 1

    def _change_wanted(self, difference: float) -> None:
        self._wanted = self._wanted + difference if self._work else 0.0
        self.usage.change(min(self._wanted, self.cores) - self.usage.level)

    def _get_speed(self) -> float:
        if self._wanted <= 0:
            return 1.0
        busy = min(self._wanted, self.cores)
        below = max(0, int(busy) - 1)
        slow, last = self._efficiency, len(self._efficiency) - 1
        share = min(max(busy - 1 - below, 0.0), 1.0)
        each = slow[min(below, last)] * (1 - share) + slow[min(below + 1, last)] * share
        return each * busy / self._wanted

    def _move_clock(self) -> None:
        self._virtual += (self._loop.now - self._since) * self._get_speed()
        self._since = self._loop.now

    def _schedule(self) -> None:
        self._version += 1
        if self._work:
            version = self._version
            left = max(0.0, self._work[0][0] - self._virtual)
            self._loop.call_at(self._loop.now + left / self._get_speed(), lambda: self._end_first(version))

    def _end_first(self, version: int) -> None:
        if version != self._version:
            return
        self._move_clock()
        self._virtual = max(self._virtual, self._work[0][0])
        ended: list[Resume] = []
        while self._work and self._work[0][0] <= self._virtual + _ROUNDING:
            _, _, cores, resume = heapq.heappop(self._work)
            self._change_wanted(-cores)
            ended.append(resume)
        self._schedule()
        for resume in ended:
            resume()
