"""The real program of each scaffold, in a task's container, against a scripted model: from a certified task to a
reward."""

from __future__ import annotations

import json

import pytest

from samplers.exports.conversations import TrainedConversation, make_conversations, strip_system
from samplers.scaffolds.base import SYSTEM_FILE
from samplers.scaffolds.registry import load_scaffold
from samplers.trajectories.content import read_content
from samplers.trajectories.requests import get_text
from taskdb.records.rollouts import RolloutStatus, TrajectoryRole
from tests.samplers.bench import AgentBench, BenchResult
from tests.samplers.scripted_model import Call, ModelRequest, Turn
from tests.samplers.shell_player import ShellPlayer, count_calls

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


SYSTEM = """Work as a careful engineer: read before you edit.

- Say "done" in Gruß, `$(id)`, {{ braces }}, 100 % and \\ at the end.
- Change nothing that was not asked for.   🙂"""
"""Text of which no program may take anything for markup of its own."""
QUICK = ("react", "mini-swe-agent", "claude-code", "codex")
"""One of each dialect, and our own; the others have the dialect of one of them."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DIALECTS]
)
def test_a_program_works_from_a_certified_task_to_its_reward_and_leaves_nothing_else(
    name: str, bench: AgentBench
) -> None:
    scaffold = load_scaffold(name)
    result = bench.run(scaffold, bench.make_player(), system=SYSTEM)
    rollout = result.rollout
    assert (rollout.status, rollout.reason, rollout.value) == (RolloutStatus.DONE, None, 1.0), result.log[-2000:]
    assert result.patch == bench.gold
    assert {exchange.dialect for exchange in result.exchanges} == {DIALECTS[name]}
    assert [exchange.request for exchange in result.exchanges] == [request.raw.decode() for request in result.requests]
    assert all(exchange.error is None for exchange in result.exchanges)
    assert rollout.leaks == ()
    assert rollout.added_system is not None
    assert bench.services.artifacts.get_text(rollout.added_system) == SYSTEM
    assert rollout.system_exchange == (1 if name == "opencode" else 0)  # that asks for a title first
    check_that_the_text_is_cut_out(bench, result)


def check_that_the_text_is_cut_out(bench: AgentBench, result: BenchResult) -> None:
    """Check that the rows of an export have all that the model was sent but the added text."""
    (main,) = [trajectory for trajectory in result.trajectories if trajectory.role is TrajectoryRole.MAIN]
    content = read_content(bench.services.artifacts.get(main.content))
    for conversation in make_conversations(content, per_request=False):
        before, after = list_system_words(conversation), list_system_words(strip_system(conversation, SYSTEM))
        added = SYSTEM.split()
        at = next(at for at in range(len(before)) if before[at : at + len(added)] == added)
        rest = before[:at] + before[at + len(added) :]
        # OpenCode names the file before its text; the line goes with it.
        assert after == rest or (SYSTEM_FILE in rest and after == rest[: at - 3] + rest[at:])
        assert conversation.messages[-1] == strip_system(conversation, SYSTEM).messages[-1]


def list_system_words(conversation: TrainedConversation) -> list[str]:
    texts = [get_text(message) for message in conversation.messages if message["role"] == "system"]
    return " ".join(texts).split()


@pytest.mark.parametrize(
    "name", [name if name == "codex" else pytest.param(name, marks=pytest.mark.slow) for name in DIALECTS]
)
def test_commands_of_an_agent_have_the_programs_of_the_task(name: str, bench: AgentBench) -> None:
    result = bench.run(load_scaffold(name), ShellPlayer({"": ["command -v pytest"]}))
    messages = json.loads(result.exchanges[-1].request)["messages"]
    results = [get_text(message) for message in messages if message["role"] == "tool"]
    assert any("/opt/venv/bin/pytest" in text for text in results), results


@pytest.mark.slow
def test_tabs_in_a_command_are_kept_where_it_is_typed_into_a_terminal(bench: AgentBench) -> None:
    player = ShellPlayer({"": ["cat > notes.txt <<'END'\n\tone\n\t\ttwo\nEND"]})
    result = bench.run(load_scaffold("openhands"), player)
    assert b"+\tone\n+\t\ttwo\n" in result.patch, result.patch


@pytest.mark.slow
def test_opencode_searches_with_the_program_that_it_would_download(bench: AgentBench) -> None:
    player = bench.make_player()

    def search_first(request: ModelRequest) -> Turn:
        if "grep" in request.tools and not count_calls(request.body, "grep"):
            return Turn(text="I search.", calls=(Call("grep", {"pattern": "def "}),))
        return player(request)

    result = bench.run(load_scaffold("opencode"), search_first)
    assert result.rollout.value == 1.0, result.log[-2000:]
    messages = json.loads(result.exchanges[-1].request)["messages"]
    (result, *_) = [message["content"] for message in messages if message["role"] == "tool"]
    assert "def " in result
    assert "ripgrep" not in result
