"""Gradings of a server: submissions of requests, on a queue that the first of them starts."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.config import Settings
from core.errors import InputError, UsageError
from taskdb.store import Store

if TYPE_CHECKING:
    from mergemill.grading.grading import Submission, TaskGrader
    from mergemill.grading.queue import GradingQueue, GradingTicket, QueueStatus

Forms = Mapping[str, bytes]
"""Form of a submission -> its content; empty for the no-op."""


class GradingService:
    """Grader and queue of a server, made when the first submission comes. `limit`: submissions that may wait."""

    def __init__(self, store: Store, settings: Settings, limit: int) -> None:
        self._store, self._settings, self.limit = store, settings, limit
        self._lock = threading.Lock()
        self._opened: tuple[TaskGrader, GradingQueue] | None = None

    def submit(self, given: Sequence[tuple[str, str, Forms]]) -> list[GradingTicket | InputError | UsageError]:
        """Accept submissions; return for each its place in the queue, or why it cannot be graded.

        Args:
            given: name of the task, form, and content by form.

        Raises:
            QueueFullError: there is no place for all of them.
        """
        grader, queue = self._open()
        resolved = [self._resolve(grader, *entry) for entry in given]
        tickets = iter(queue.submit([entry for entry in resolved if not isinstance(entry, InputError | UsageError)]))
        return [entry if isinstance(entry, InputError | UsageError) else next(tickets) for entry in resolved]

    def count(self) -> QueueStatus:
        """Return the numbers of submissions."""
        return self._open()[1].count()

    def count_opened(self) -> QueueStatus | None:
        """Return the numbers of submissions, or None before the first."""
        return self._opened[1].count() if self._opened else None

    def close(self) -> None:
        """End the gradings in progress."""
        if self._opened:
            self._opened[1].close()

    def _open(self) -> tuple[TaskGrader, GradingQueue]:
        from mergemill.grading.grading import TaskGrader  # noqa: PLC0415 - the pages need no verifiers
        from mergemill.grading.queue import GradingQueue  # noqa: PLC0415

        with self._lock:
            if self._opened is None:
                grader = TaskGrader(self._store, self._settings)
                self._opened = grader, GradingQueue(grader, self._settings.cluster.workers, self.limit)
            return self._opened

    @staticmethod
    def _resolve(grader: TaskGrader, task: str, form: str, forms: Forms) -> Submission | InputError | UsageError:
        from mergemill.grading.grading import make_submission  # noqa: PLC0415

        try:
            return make_submission(grader.find_task(task, form), forms)
        except (InputError, UsageError) as error:
            return error
