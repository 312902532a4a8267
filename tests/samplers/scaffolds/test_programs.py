"""The real program of each scaffold, in a task's container, against a scripted model: from a certified task to a
reward."""

from __future__ import annotations

import pytest

from samplers.scaffolds.registry import load_scaffold
from taskdb.records.rollouts import RolloutStatus
from tests.samplers.bench import AgentBench
from tests.samplers.shell_player import ShellPlayer

pytestmark = pytest.mark.docker

DIALECTS = {
    "react": "chat",
    "mini-swe-agent": "chat",
    "claude-code": "messages",
    "codex": "responses",
    "opencode": "chat",
    "qwen-code": "chat",
    "openhands": "chat",
}
"""Scaffold -> dialect that its program speaks."""


QUICK = ("react", "mini-swe-agent", "claude-code", "codex")
"""One of each dialect, and our own; the others have the dialect of one of them."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DIALECTS]
)
def test_a_program_works_from_a_certified_task_to_its_reward_and_leaves_nothing_else(
    name: str, bench: AgentBench
) -> None:
    scaffold = load_scaffold(name)
    result = bench.run(scaffold, bench.make_player())
    rollout = result.rollout
    assert (rollout.status, rollout.reason, rollout.value) == (RolloutStatus.DONE, None, 1.0), result.log[-2000:]
    assert result.patch == bench.gold
    assert {exchange.dialect for exchange in result.exchanges} == {DIALECTS[name]}
    assert [exchange.request for exchange in result.exchanges] == [request.raw.decode() for request in result.requests]
    assert all(exchange.error is None for exchange in result.exchanges)
    assert rollout.leaks == ()


def test_tabs_in_a_command_are_kept_where_it_is_typed_into_a_terminal(bench: AgentBench) -> None:
    player = ShellPlayer({"": ["cat > notes.txt <<'END'\n\tone\n\t\ttwo\nEND"]})
    result = bench.run(load_scaffold("openhands"), player)
    assert b"+\tone\n+\t\ttwo\n" in result.patch, result.patch
