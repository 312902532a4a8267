"""Observe the state of an agent's tree: once for each request, as it is when the request is sent."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from core.errors import CancelledRunError, InputError, Transient
from samplers.gateway.process import GatewayUsage
from samplers.rollouts.container import RolloutContainer
from taskdb.records.rollouts import ObservedState

POLL_SECONDS = 0.5


class StateObserver:
    """Records states from a thread of its own while requests are answered, and before a scaffold sends a request.

    Several requests within a single poll give a state, that of the last. The thread may look up to `POLL_SECONDS` after
    a request came, when a fast model's answer is already being carried out; before a request the state is exact.

    Args:
        container: container whose tree is hashed.
        read_usage: function that returns the amounts that the rollout has used.
        states: function that receives the states.
    """

    def __init__(
        self, container: RolloutContainer, read_usage: Callable[[], GatewayUsage], states: list[ObservedState]
    ) -> None:
        self._container = container
        self._read_usage = read_usage
        self._states = states
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> StateObserver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        with contextlib.suppress(Transient, InputError):
            received = self._read_usage().requests
            while self._states and self._states[-1].exchange >= received:  # the request was never sent
                self._states.pop()

    def observe_before_request(self) -> None:
        """Record the state that the next request is sent in."""
        self._observe(ahead=1)

    def _observe(self, *, ahead: int) -> None:
        """Record the state of the last request, or of one that comes after it, unless it is recorded.

        Args:
            ahead: number of requests after the last.
        """
        with self._lock:
            try:
                number = self._read_usage().requests - 1 + ahead
                is_new = number >= 0 and (not self._states or self._states[-1].exchange < number)
                if is_new and (tree := self._container.hash_tree()):
                    self._states.append(ObservedState(exchange=number, tree=tree))
            except (Transient, InputError):  # the gateway is being started again, or the container has ended
                return

    def _watch(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self._observe(ahead=0)
            except CancelledRunError:
                return
