"""Sub-agents of real programs: their requests are trajectories of their own, beside the main conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from samplers.scaffolds.registry import load_scaffold
from samplers.trajectories.content import read_content
from samplers.trajectories.requests import get_text
from taskdb.records.rollouts import RolloutStatus, Trajectory, TrajectoryRole
from tests.samplers.bench import AgentBench
from tests.samplers.scripted_model import Call, ModelRequest, Turn
from tests.samplers.shell_player import find_shell_tool, make_call

pytestmark = pytest.mark.docker

ORDER = "ORDER-FOR-THE-SUB-AGENT: list the files"
SPAWNING: dict[str, dict[str, Any]] = {
    "Agent": {"description": "list files", "prompt": ORDER, "subagent_type": "general-purpose"},
    "spawn_agent": {"message": ORDER},
}
"""End of a tool's name -> arguments that start a sub-agent."""


def delegate(request: ModelRequest) -> Turn:
    """Start a sub-agent, wait for it where that is a call, and end; the sub-agent lists files and ends."""
    messages = request.body["messages"]
    results = [message for message in messages if message["role"] == "tool"]
    if any(message["role"] == "user" and ORDER in json.dumps(message) for message in messages) and not any(
        ORDER in json.dumps(message) for message in messages if message["role"] == "assistant"
    ):
        tool = find_shell_tool(request.body)
        assert tool is not None
        return Turn(text="There is nothing.") if results else Turn(text="I list.", calls=(make_call(tool, "ls"),))
    spawn = next((name for name in request.tools if name.endswith(tuple(SPAWNING))), None)
    wait = next((name for name in request.tools if name.endswith("wait_agent")), None)
    if spawn and not results:
        arguments = next(value for name, value in SPAWNING.items() if spawn.endswith(name))
        return Turn(text="I delegate.", calls=(Call(spawn, arguments),))
    if wait and len(results) == 1:
        agent = json.loads(get_text(results[0]))["agent_id"]
        return Turn(text="I wait.", calls=(Call(wait, {"targets": [agent], "timeout_ms": 60_000}),))
    return Turn(text="All is done.")


@pytest.mark.parametrize("name", ["claude-code", pytest.param("codex", marks=pytest.mark.slow)])
def test_a_sub_agent_has_a_trajectory_of_its_own(name: str, bench: AgentBench) -> None:
    result = bench.run(load_scaffold(name), delegate)
    assert result.rollout.status is RolloutStatus.DONE, result.log[-2000:]
    by_role: dict[TrajectoryRole, list[Trajectory]] = {}
    for trajectory in result.trajectories:
        by_role.setdefault(trajectory.role, []).append(trajectory)
    [main], [sub] = by_role[TrajectoryRole.MAIN], by_role[TrajectoryRole.SUB_AGENT]
    assert list_answers(bench, sub) == ["I list.", "There is nothing."]
    assert {"I list.", "There is nothing."}.isdisjoint(list_answers(bench, main))
    assert list_answers(bench, main)[0] == "I delegate."
    assert list_answers(bench, main)[-1] == "All is done."
    assert sub.value == main.value == result.rollout.value
    assert sum(trajectory.n_requests for trajectory in result.trajectories) == len(result.exchanges)


def list_answers(bench: AgentBench, trajectory: Trajectory) -> list[str]:
    content = read_content(bench.services.artifacts.get(trajectory.content))
    return [get_text(content.get_answer(place) or {}) for place in content.answered]
