"""Ending a run on request: SIGTERM lets the steps that run finish, a second signal stops them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from core.text import format_count
from mergemill.execution.progress import WorkState, format_seconds


@contextmanager
def drain_on_sigterm(work: WorkState, seconds: float, announce: Callable[[str], None]) -> Iterator[None]:
    """Drain a run on SIGTERM within the block, which must be the main thread's.

    `work.is_draining` becomes true. After `seconds`, and on a second SIGTERM, the run is stopped as by Ctrl-C.

    Args:
        work: work of the run.
        seconds: seconds that steps which run may take to finish.
        announce: function that is called with a line for people, in another thread.

    Raises:
        KeyboardInterrupt: the run is to be stopped.
    """
    ended = threading.Event()
    driver = threading.get_ident()

    def stop_later() -> None:
        n_running = len(work.list_running())
        announce(
            f"draining: {format_count(n_running, 'step')} may take {format_seconds(seconds)} to finish, "
            "no other is begun; SIGTERM again, or Ctrl-C, stops at once"
        )
        if not ended.wait(seconds):
            signal.pthread_kill(driver, signal.SIGTERM)

    def handle_signal(_number: int, _frame: FrameType | None) -> None:
        if work.is_draining:
            raise KeyboardInterrupt
        work.is_draining = True
        threading.Thread(target=stop_later, name="mergemill-drain", daemon=True).start()

    previous = signal.signal(signal.SIGTERM, handle_signal)
    try:
        yield
    finally:
        ended.set()
        signal.signal(signal.SIGTERM, previous)
