"""States are those that requests are sent in, however slowly or quickly the thread looks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import cast

import pytest

from samplers.gateway.process import GatewayUsage
from samplers.rollouts import observer as observing
from samplers.rollouts.container import RolloutContainer
from samplers.rollouts.observer import StateObserver
from taskdb.records.rollouts import ObservedState

LOOKS = 5


@dataclass
class FakeRollout:
    """A container and the gateway's count of its requests."""

    tree: str = "start"
    requests: int = 0
    looks: int = 0
    states: list[ObservedState] = field(default_factory=list)

    def hash_tree(self) -> str:
        """Return the tree."""
        return self.tree

    def read_usage(self) -> GatewayUsage:
        """Return the count, as each look does first."""
        self.looks += 1
        return GatewayUsage(requests=self.requests)

    def observe(self) -> StateObserver:
        """Return an observer of this."""
        return StateObserver(cast(RolloutContainer, self), self.read_usage, self.states)

    def await_looks(self) -> None:
        """Wait until the thread has looked some times."""
        looks = self.looks
        while self.looks < looks + LOOKS:
            time.sleep(0.001)

    @property
    def recorded(self) -> list[tuple[int, str]]:
        """Number and tree of each state."""
        return [(state.exchange, state.tree) for state in self.states]


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread look all the time."""
    monkeypatch.setattr(observing, "POLL_SECONDS", 0.001)


def test_a_state_before_a_request_is_not_that_after_its_answer() -> None:
    rollout = FakeRollout()
    with rollout.observe() as observer:
        for tree in ("edited", "tested"):
            observer.observe_before_request()
            rollout.requests += 1
            rollout.tree = tree  # before the thread looks again
            rollout.await_looks()
    assert rollout.recorded == [(0, "start"), (1, "edited")]


def test_a_request_that_is_never_sent_has_no_state() -> None:
    rollout = FakeRollout()
    with rollout.observe() as observer:
        observer.observe_before_request()
        rollout.requests += 1
        observer.observe_before_request()
    assert rollout.recorded == [(0, "start")]


def test_a_scaffold_that_says_nothing_is_observed_while_it_is_answered() -> None:
    rollout = FakeRollout()
    with rollout.observe():
        rollout.await_looks()
        assert not rollout.states
        rollout.requests = 2
        rollout.await_looks()
        rollout.tree = "edited"
        rollout.await_looks()
    assert rollout.recorded == [(1, "start")]
