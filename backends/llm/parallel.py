"""Work with calls of models on threads: results in the order of the items, an end after an outage, and sums."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from backends.llm.meter import UsageMeter
from core.errors import CancelledRunError, InputError, MergemillError

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
MAX_FAILURES_IN_ROW = 10
"""Calls in a row that fail before no more are begun."""
WAIT_SECONDS = 1.0
"""Longest wait for a result before Ctrl-C is noticed."""
READY_PER_WORKER = 2
"""Items handed to the pool for each worker, so that a list of any length takes little memory."""


@dataclass
class UsageTotals:
    """Sums of the calls that this process made."""

    requests: int = 0
    failed_requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def add(self, meter: UsageMeter) -> None:
        """Add the usage that a thread's meter counted."""
        self.requests += meter.requests
        self.failed_requests += meter.failed_requests
        self.prompt_tokens += meter.prompt_tokens
        self.completion_tokens += meter.completion_tokens
        self.cost += meter.cost


@dataclass(frozen=True, kw_only=True)
class ParallelCalls(Generic[T, R]):
    """Runs work on threads and returns the results in the order of the items.

    `report` is called in the driver's thread with each result or failure; `stop` cancels the calls that run. `is_known`
    returns whether the endpoint answered before: then a refusal of the first call is not due to a wrong key or name.
    """

    work: Callable[[T], R]
    workers: int
    report: Callable[[T, R | MergemillError], None]
    stop: Callable[[], None]
    is_known: Callable[[], bool] = lambda: False

    def run(self, items: Sequence[T]) -> list[R | MergemillError | None]:
        """Return the result or failure of each item; None for those that an outage left.

        Raises:
            InputError: the first call that ended was refused by the endpoint (a wrong key or name), or a file failed.
            KeyboardInterrupt: Ctrl-C; each reply that was answered is in the ledger.
        """
        results: list[R | MergemillError | None] = [None] * len(items)
        running: dict[Future[R], int] = {}
        threads = ThreadPoolExecutor(self.workers, thread_name_prefix="mergemill-model")
        next_item, n_ended, n_failed_in_row = 0, 0, 0
        try:
            while True:
                is_outage = n_failed_in_row >= MAX_FAILURES_IN_ROW
                while len(running) < self.workers * READY_PER_WORKER and next_item < len(items) and not is_outage:
                    running[threads.submit(self.work, items[next_item])] = next_item
                    next_item += 1
                if not running:
                    return results
                done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=WAIT_SECONDS)
                for future in done:
                    at = running.pop(future)
                    results[at] = outcome = _get_outcome(future)
                    _raise_if_refused(outcome, is_first=not n_ended and not self.is_known())
                    n_ended += 1
                    n_failed_in_row = n_failed_in_row + 1 if isinstance(outcome, MergemillError) else 0
                    self.report(items[at], outcome)
        except BaseException:
            self.stop()
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _get_outcome(future: Future[R]) -> R | MergemillError:
    try:
        return future.result()
    except CancelledRunError:
        raise
    except MergemillError as error:
        return error
    except Exception as error:
        log.exception("a call failed through a bug")
        return MergemillError(f"failed through a bug: {error!r}")


def _raise_if_refused(outcome: object, *, is_first: bool) -> None:
    """Raise the error of a first call that the endpoint refuses: all others would be refused, too."""
    if is_first and isinstance(outcome, InputError):
        raise outcome
