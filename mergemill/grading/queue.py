"""Queue of submissions in front of worker threads: bounded, and equal submissions are graded once.

A submission that was accepted is graded and its score stored, whether or not anybody still waits for it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from core.errors import Transient
from mergemill.grading.grading import Submission
from taskdb.records import Score

log = logging.getLogger(__name__)

SubmissionKey = tuple[str, str]
"""Id of a task, and hash of a submission to it."""
DEFAULT_SECONDS = 10.0
"""Assumed time of a grading before there was any grading."""
MAX_RETRY_SECONDS = 300


class QueueFullError(Exception):
    """No place in the queue. `retry_after`: seconds after which there should be a free place."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("the grading queue is full; try again later")
        self.retry_after = retry_after


class SubmissionGrader(Protocol):
    """Function that grades the submissions of a queue; called from several threads."""

    def find_score(self, submission: Submission) -> Score | None:
        """Return the score of an equal submission that was graded before, or None."""

    def grade_persistently(self, submission: Submission) -> Score:
        """Grade a submission; the value is None after an infrastructure error."""

    def stop(self) -> None:
        """End the gradings in progress."""


@dataclass(frozen=True, kw_only=True)
class QueueStatus:
    """Numbers of submissions since the server was started."""

    workers: int
    """Gradings that run at the same time."""
    limit: int
    """Submissions that may wait."""
    queued: int
    running: int
    done: int
    """Gradings that have ended."""
    unscored: int
    """Those of them that the infrastructure failed."""
    cached: int
    """Submissions answered by an earlier or simultaneous grading of an equal submission."""
    rejected: int
    """Submissions for which there was no place."""


@dataclass(frozen=True, kw_only=True)
class GradingTicket:
    """Place of a submission in the queue. `cached`: whether another grading answers it."""

    future: Future[Score]
    cached: bool


@dataclass
class _Job:
    """A grading. Its future is running from the start, so that nobody who waits for it can cancel it."""

    submission: Submission
    future: Future[Score] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()


class GradingQueue:
    """Queue for at most `limit` submissions that wait, and `workers` threads, which the first submission starts."""

    def __init__(
        self, grader: SubmissionGrader, workers: int, limit: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.grader, self.n_workers, self.limit, self.clock = grader, max(1, workers), limit, clock
        self._waiting: deque[_Job] = deque()
        self._jobs: dict[SubmissionKey, _Job] = {}
        """Waiting and running gradings by the key of their submission."""
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._seconds = 0.0
        self._counts = {"done": 0, "unscored": 0, "cached": 0, "rejected": 0}

    def submit(self, submissions: Sequence[Submission]) -> list[GradingTicket]:
        """Accept submissions, all or none, and return their places in the same order.

        Raises:
            QueueFullError: there is no place for all of them.
            Transient: the queue is closed.
        """
        known = {submission.key: submission for submission in submissions}
        # Held during the look-up, since a score is stored before its grading leaves `_jobs`.
        with self._changed:
            if self._is_closed:
                raise Transient("the server is being stopped")
            scores = {
                key: self.grader.find_score(submission) for key, submission in known.items() if key not in self._jobs
            }
            new = [key for key, score in scores.items() if score is None]
            if len(self._waiting) + len(new) > self.limit:
                self._counts["rejected"] += len(submissions)
                raise QueueFullError(self._estimate_seconds())
            for key in new:
                self._jobs[key] = job = _Job(known[key])
                self._waiting.append(job)
            self._start_threads()
            self._changed.notify(len(new))
            return self._make_tickets(submissions, scores, set(new))

    def _make_tickets(
        self,
        submissions: Sequence[Submission],
        scores: Mapping[tuple[str, str], Score | None],
        new: set[tuple[str, str]],
    ) -> list[GradingTicket]:
        tickets = []
        for submission in submissions:
            job, score = self._jobs.get(submission.key), scores.get(submission.key)
            future = job.future if job else Future[Score]()
            if score is not None:
                future.set_result(score)
            cached = submission.key not in new
            # An equal submission behind it is answered by its grading.
            new.discard(submission.key)
            self._counts["cached"] += cached
            tickets.append(GradingTicket(future=future, cached=cached))
        return tickets

    def count(self) -> QueueStatus:
        """Return the numbers of submissions."""
        with self._changed:
            waiting = len(self._waiting)
            running = len(self._jobs) - waiting
            return QueueStatus(
                workers=self.n_workers, limit=self.limit, queued=waiting, running=running, **self._counts
            )

    def close(self) -> None:
        """Accept nothing more, end the gradings in progress, and drop those that wait; these are graded again later."""
        with self._changed:
            self._is_closed = True
            dropped = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for job in dropped:
            job.future.set_exception(Transient("the server is being stopped"))
        if self._threads:
            self.grader.stop()

    def _estimate_seconds(self) -> int:
        """Return the seconds after which a place should be free."""
        done = self._counts["done"]
        mean = self._seconds / done if done else DEFAULT_SECONDS
        return max(1, min(MAX_RETRY_SECONDS, math.ceil(mean / self.n_workers)))

    def _start_threads(self) -> None:
        while len(self._threads) < min(self.n_workers, len(self._jobs)):
            thread = threading.Thread(target=self._work, daemon=True, name=f"grader-{len(self._threads)}")
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while (job := self._take_job()) is not None:
            started = self.clock()
            score: Score | None = None
            error: BaseException | None = None
            try:
                score = self.grader.grade_persistently(job.submission)
            except BaseException as raised:  # noqa: BLE001
                # Whoever waits for the score gets the error, and the thread goes on with the next submission.
                error = raised
            self._finish(job, score, self.clock() - started)
            if score is not None:
                job.future.set_result(score)
            else:
                job.future.set_exception(error or RuntimeError("a grading has no result"))

    def _take_job(self) -> _Job | None:
        """Wait for a submission and return it; return None once the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return self._waiting.popleft() if self._waiting else None

    def _finish(self, job: _Job, score: Score | None, seconds: float) -> None:
        with self._changed:
            del self._jobs[job.submission.key]
            self._counts["done"] += 1
            self._counts["unscored"] += score is None or score.value is None
            self._seconds += seconds
