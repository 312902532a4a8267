"""Clock and randomness that depend on the seed of an episode alone.

They are replaced once, in the process that those of worlds and checks are copies of; each of these sets its own seed.

The hash seed is fixed by the command of the server. Programs may not read the clock (`worlds.program.rules`), but the
actions that the standard library does of its own accord shall not differ between runs either.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import time
import uuid
from typing import Any

FIRST_SECOND = 1_704_099_600
"""2024-01-01 09:00:00 UTC."""
SPAN_SECONDS = 366 * 86_400
"""Clocks of episodes are between FIRST_SECOND and so many seconds later."""

read_real_clock = time.monotonic
"""The clock as it was: for the code that is ours in a process whose clock stands still."""
_real_localtime, _real_gmtime, _real_strftime, _real_seed = (
    time.localtime,
    time.gmtime,
    time.strftime,
    random.Random.seed,
)


class StandingClock:
    """Clock of a process. `now`: seconds since 1970."""

    now = FIRST_SECOND


CLOCK = StandingClock()


class SeededBytes:
    """Stream of bytes that stand for the randomness of the operating system."""

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311 - repeatable on purpose

    def restart(self, seed: str) -> None:
        """Begin the stream of a seed."""
        _real_seed(self._random, seed)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return self._random.randbytes(size)


STREAM = SeededBytes()


def freeze_clock() -> None:
    """Let all clocks of this process, and of those forked from it, show CLOCK."""
    patches: dict[str, Any] = {
        **dict.fromkeys(("time", "monotonic", "perf_counter", "process_time", "thread_time"), lambda: float(CLOCK.now)),
        **dict.fromkeys(("time_ns", "monotonic_ns", "perf_counter_ns", "process_time_ns"), lambda: CLOCK.now * 10**9),
        "clock_gettime": lambda _: float(CLOCK.now),
        "clock_gettime_ns": lambda _: CLOCK.now * 10**9,
        "sleep": lambda _: None,
        "localtime": lambda seconds=None: _real_localtime(CLOCK.now if seconds is None else seconds),
        "gmtime": lambda seconds=None: _real_gmtime(CLOCK.now if seconds is None else seconds),
        "strftime": lambda form, parts=None: _real_strftime(form, parts or _real_gmtime(CLOCK.now)),
    }
    for name, patch in patches.items():
        setattr(time, name, patch)
    dt.date = FrozenDate  # type: ignore[misc]
    dt.datetime = FrozenDatetime  # type: ignore[misc]


def set_clock(seed: int) -> None:
    """Set CLOCK to the instant that a seed determines."""
    CLOCK.now = FIRST_SECOND + random.Random(f"clock:{seed}").randrange(SPAN_SECONDS)  # noqa: S311


def seed_step(seed: int, step: int) -> None:
    """Begin the random numbers of a call of an episode: they depend on no earlier call."""
    random.seed(f"{seed}:{step}")
    STREAM.restart(f"{seed}:{step}:bytes")


def replace_randomness() -> None:
    """Draw from STREAM the bytes that are otherwise drawn from the operating system."""
    os.urandom = STREAM.read
    random._urandom = STREAM.read  # type: ignore[attr-defined]
    random.Random.seed = _seed_repeatably  # type: ignore[assignment, method-assign]
    uuid.uuid1 = lambda node=None, clock_seq=None: uuid.UUID(bytes=STREAM.read(16), version=1)  # noqa: ARG005


def _seed_repeatably(generator: random.Random, a: Any = None, version: int = 2) -> None:
    _real_seed(generator, STREAM.read(16) if a is None else a, version)


class _RealInstances(type):
    """Instances of the real class are instances of the class that stands for it."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


class FrozenDate(dt.date, metaclass=_RealInstances):
    """Date whose today is that of CLOCK."""

    @classmethod
    def today(cls) -> Any:
        """Return the date of CLOCK."""
        return cls.fromtimestamp(CLOCK.now)


class FrozenDatetime(dt.datetime, metaclass=_RealInstances):
    """Date and time whose now is that of CLOCK."""

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Any:
        """Return date and time of CLOCK."""
        return cls.fromtimestamp(CLOCK.now, tz)

    @classmethod
    def utcnow(cls) -> Any:
        """Return date and time of CLOCK in UTC, without a zone."""
        return cls.now(dt.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        """Return date and time of CLOCK."""
        return cls.now()
