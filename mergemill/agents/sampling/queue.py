"""Which rollout runs next: new rollouts first, then those that infrastructure failed, and none in an outage."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from mergemill.agents.sampling.request import PendingRollout
from taskdb.records.rollouts import Rollout, RolloutStatus

MIN_STREAK = 10
"""Different rollouts that must fail in a row to be an outage; twice the number of workers if that is more."""


class RolloutQueue:
    """Pending rollouts of an invocation. Not thread-safe.

    Where a server or an engine is down, a queue of thousands would start a container for each of them only to fail:
    after a streak of failures nothing more is taken from it.

    Args:
        pending: pending rollouts in the order in which they run.
        retries: how often each is tried again after a failure of infrastructure.
        workers: how many run at once.
    """

    def __init__(self, pending: Sequence[PendingRollout], *, retries: int, workers: int) -> None:
        self._new = deque(pending)
        self._again: deque[PendingRollout] = deque()
        self._retries = retries
        self._n_retries: dict[str, int] = {}
        self._limit = max(MIN_STREAK, 2 * workers)
        self._streak: set[str] = set()
        self.n_finished = 0
        """Rollouts that gave a result."""

    @property
    def n_failed_in_row(self) -> int:
        """Different rollouts that failed since the last result."""
        return len(self._streak)

    @property
    def is_outage(self) -> bool:
        """Whether so many failed in a row that the next rollout would, too."""
        return self.n_failed_in_row >= self._limit

    @property
    def has_more(self) -> bool:
        """Whether `take` returns another."""
        return bool(self._new or self._again) and not self.is_outage

    def take(self) -> PendingRollout | None:
        """Return the next rollout to begin; None if there is none, or an outage."""
        if self.is_outage:
            return None
        source = self._new or self._again
        return source.popleft() if source else None

    def settle(self, pending: PendingRollout, rollout: Rollout | None) -> None:
        """Take note of how a rollout ended; None if it has no record.

        A rollout that infrastructure failed may come again.
        """
        key = pending.plan.key
        if rollout is not None and rollout.status is not RolloutStatus.INFRASTRUCTURE:
            self.n_finished += 1
            self._streak.clear()
            return
        self._streak.add(key)
        tried = self._n_retries.get(key, 0)
        if rollout is not None and tried < self._retries:
            self._n_retries[key] = tried + 1
            self._again.append(replace(pending, retry=pending.retry + 1))
