"""Clock and randomness that depend on the seed of an episode alone.

The hash seed is fixed by the command of the server. Programs may not read the clock (`worlds.program.rules`), but what
the standard library does of its own accord shall not differ between runs either.
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

_real_localtime, _real_gmtime, _real_strftime, _real_seed = (
    time.localtime,
    time.gmtime,
    time.strftime,
    random.Random.seed,
)


class SeededBytes:
    """Stream of bytes that stands for the randomness of the operating system."""

    def __init__(self) -> None:
        self._random = random.Random(0)  # noqa: S311 - repeatable on purpose

    def restart(self, seed: str) -> None:
        """Begin the stream of a seed."""
        _real_seed(self._random, seed)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return self._random.randbytes(size)


STREAM = SeededBytes()


def freeze_clock(seed: int) -> None:
    """Let all clocks of this process stand still at an instant that the seed determines."""
    now = FIRST_SECOND + random.Random(f"clock:{seed}").randrange(SPAN_SECONDS)  # noqa: S311
    patches: dict[str, Any] = {
        **dict.fromkeys(("time", "monotonic", "perf_counter", "process_time", "thread_time"), lambda: float(now)),
        **dict.fromkeys(("time_ns", "monotonic_ns", "perf_counter_ns", "process_time_ns"), lambda: now * 10**9),
        "clock_gettime": lambda _: float(now),
        "clock_gettime_ns": lambda _: now * 10**9,
        "sleep": lambda _: None,
        "localtime": lambda seconds=None: _real_localtime(now if seconds is None else seconds),
        "gmtime": lambda seconds=None: _real_gmtime(now if seconds is None else seconds),
        "strftime": lambda form, parts=None: _real_strftime(form, parts or _real_gmtime(now)),
    }
    for name, patch in patches.items():
        setattr(time, name, patch)
    _freeze_datetime(now)


def seed_step(seed: int, step: int) -> None:
    """Begin the random numbers of one call of an episode: they depend on no earlier call."""
    random.seed(f"{seed}:{step}")
    STREAM.restart(f"{seed}:{step}:bytes")


def replace_randomness() -> None:
    """Draw from STREAM what is otherwise drawn from the operating system."""
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


def _freeze_datetime(now: int) -> None:
    class FrozenDate(dt.date, metaclass=_RealInstances):
        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(now)

    class FrozenDatetime(dt.datetime, metaclass=_RealInstances):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(now, tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now(dt.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    dt.date = FrozenDate  # type: ignore[misc]
    dt.datetime = FrozenDatetime  # type: ignore[misc]
