"""Guidance reaches the model of each scaffold's real program, by every source that it delivers, and nothing else does.

One rollout of a program has the instructions of all its sources at once.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from samplers.gateway.exchanges import Exchange
from samplers.gateway.translation import to_chat_messages
from samplers.rollouts.wordings import RequestTexts, list_wordings, squeeze
from samplers.scaffolds.base import AgentLimits, AgentSession
from samplers.scaffolds.react import MEMORY_FILE
from samplers.scaffolds.registry import load_scaffold
from samplers.subjects.guidance import Guidance
from samplers.trajectories.requests import get_text
from taskdb.records.instructions import InstructionSource
from taskdb.records.rollouts import RolloutStatus
from tests.samplers.bench import AgentBench, BenchResult
from tests.samplers.guidance import GUIDANCE, keep_sources
from tests.samplers.recorded_runs import check_recorded
from tests.samplers.scaffolds.page import RECORDED
from tests.samplers.scaffolds.test_programs import DIALECTS, QUICK
from tests.samplers.scripted_model import Call, ModelRequest, Turn
from tests.samplers.shell_player import ShellPlayer, count_calls, find_shell_tool, list_tools, make_call

pytestmark = pytest.mark.docker

(TOOL,), (SKILL, _) = GUIDANCE.tools, GUIDANCE.skills
SKILL_TOOLS = ("skill", "invoke_skill")
SYSTEM = "Answer in English."
SKILL_FOLDER = "/opt/mergemill/agent/skills"


class GuidedPlayer:
    """Model that calls the guidance's tool and reads a skill, where they are offered, before it solves the task."""

    def __init__(self, player: ShellPlayer, guidance: Guidance) -> None:
        self.player, self.guidance = player, guidance

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next call, or the player's answer."""
        if find_shell_tool(request.body):
            for call in self.list_openings(request):
                if not count_calls(request.body, call.name):
                    return Turn(text="I look.", calls=(call,))
        return self.player(request)

    def list_openings(self, request: ModelRequest) -> Iterator[Call]:
        """Yield the calls that come before the work."""
        for tool in list_tools(request.body):
            if tool["name"].endswith(TOOL.name):
                yield Call(tool["name"], {"version": "1"})
            elif tool["name"].lower() in SKILL_TOOLS and self.guidance.skills:
                fields: Mapping[str, Any] = tool["schema"]["properties"]
                yield Call(tool["name"], {"skill" if "skill" in fields else "name": SKILL.name})


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in DIALECTS]
)
def test_a_program_gives_its_model_the_instructions_of_every_source_it_delivers(name: str, bench: AgentBench) -> None:
    scaffold = load_scaffold(name)
    guidance = keep_sources(GUIDANCE, scaffold.delivers)
    result = bench.run(scaffold, GuidedPlayer(make_player(bench, name), guidance), system=SYSTEM, guidance=guidance)
    rollout = result.rollout
    assert (rollout.status, rollout.reason, rollout.value) == (RolloutStatus.DONE, None, 1.0), (
        f"{rollout.detail}\n{rollout.delivered}\n{result.log[-3000:]}"
    )
    assert result.patch == bench.gold
    first = 1 if name == "opencode" else 0  # that asks for a title first
    assert rollout.system_exchange == first
    turns = {key: number for key, number in rollout.delivered.items() if key.startswith(InstructionSource.TURN)}
    assert set(rollout.delivered.values()) - set(turns.values()) == {first}, rollout.delivered
    check_order(result)
    check_turns(result, turns, guidance)
    check_recorded(name, list_parts(result, guidance), folder=RECORDED)
    if guidance.tools:
        assert squeeze(TOOL.answer) in read_results(result)
    if guidance.skills:
        assert squeeze(SKILL.text) in read_results(result)


def make_player(bench: AgentBench, name: str) -> ShellPlayer:
    """Return a player that solves the task; Codex, which has no tool for skills, reads the file of one first."""
    player = bench.make_player()
    if name != "codex":
        return player
    return ShellPlayer(
        {match: [f"cat {SKILL_FOLDER}/{SKILL.name}/SKILL.md", *commands] for match, commands in player.commands.items()}
    )


def read_messages(exchange: Exchange) -> list[dict[str, Any]]:
    """Return the messages of a request in the form of chat completions."""
    return list(to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect)[0])


def read_results(result: BenchResult) -> str:
    """Return the results of all calls."""
    messages = [message for exchange in result.exchanges for message in read_messages(exchange)]
    return squeeze(
        " ".join(get_text(message) for message in messages if message["role"] not in ("system", "assistant"))
    )


def list_parts(result: BenchResult, guidance: Guidance) -> dict[str, list[str]]:
    """Return source -> parts of the first request with its instruction that have it."""
    by_number = {exchange.exchange: exchange for exchange in result.exchanges}
    parts = dict[str, set[str]]()
    for wording in list_wordings(guidance):
        exchange = by_number[result.rollout.delivered[wording.key] or 0]
        texts = RequestTexts.of(*to_chat_messages(json.loads(exchange.request), exchange.upstream_dialect))
        parts.setdefault(wording.source.value, set()).update(
            part for part, text in texts.parts.items() if squeeze(wording.text) in html.unescape(text)
        )
    return {source: sorted(names) for source, names in parts.items()}


def check_order(result: BenchResult) -> None:
    """Check that the text of the plan comes before that of the guidance in the system prompt."""
    messages = read_messages(result.exchanges[-1])
    prompt = squeeze(" ".join(get_text(message) for message in messages if message["role"] == "system"))
    assert 0 <= prompt.index(SYSTEM) < prompt.index(squeeze(GUIDANCE.system))


def check_turns(result: BenchResult, turns: Mapping[str, int | None], guidance: Guidance) -> None:
    """Check that each message of the user follows the conversation before it, and was sent when that had ended."""
    by_number = {exchange.exchange: exchange for exchange in result.exchanges}
    before: list[str] = []
    for text, number in zip(guidance.turns, turns.values(), strict=True):
        assert number is not None
        sent = [squeeze(get_text(message)) for message in read_messages(by_number[number])]
        place = next(at for at, message in enumerate(sent) if squeeze(text) in message)
        roles = [message["role"] for message in read_messages(by_number[number])]
        assert "assistant" in roles[:place]
        assert roles.count("assistant") == roles[:place].count("assistant"), "nothing was done on the new message yet"
        for earlier in before:
            assert any(squeeze(earlier) in message for message in sent[:place]), earlier
        before.append(text)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "codex" else pytest.param(name, marks=pytest.mark.slow)
        for name in DIALECTS
        if InstructionSource.TURN in load_scaffold(name).delivers
    ],
)
def test_limits_hold_over_all_turns_together(name: str, bench: AgentBench) -> None:
    def answer(request: ModelRequest) -> Turn:
        """Run a command for each message of the user, and end."""
        tool = find_shell_tool(request.body)
        if tool is None:
            return Turn(text="A short text")
        done, reached = count_calls(request.body, tool["name"]), sum(text in read(request) for text in texts)
        return Turn(calls=(make_call(tool, f"echo {done}"),)) if done <= reached else ShellPlayer({}).end(request, tool)

    guidance = keep_sources(GUIDANCE, [InstructionSource.TURN])
    texts = [squeeze(text) for text in guidance.turns]
    result = bench.run(load_scaffold(name), answer, limits=AgentLimits(seconds=120.0, turns=3), guidance=guidance)
    rollout = result.rollout
    assert (rollout.status, rollout.reason) == (RolloutStatus.FAILED, "turn-limit"), result.log[-2000:]
    assert rollout.delivered["turn-2"] is not None
    assert rollout.delivered["turn-3"] is None
    assert sum(bool(request.tools) for request in result.requests) == 3


def read(request: ModelRequest) -> str:
    """Return the text of the messages of a request."""
    return squeeze(" ".join(get_text(message) for message in request.body.get("messages", ())))


def test_an_agent_may_edit_the_file_that_has_the_instructions(bench: AgentBench) -> None:
    scaffold, path = load_scaffold("react"), "AGENTS.md"
    guidance = keep_sources(GUIDANCE, [InstructionSource.REPOSITORY])
    commands = [*bench.script_gold(), f"echo '- Written by the agent.' >> {path} && cat {path}"]
    player = ShellPlayer(dict.fromkeys(bench.make_player().commands, commands))
    result = bench.run(scaffold, player, guidance=guidance)
    assert (result.rollout.status, result.rollout.value) == (RolloutStatus.DONE, 1.0), result.rollout.detail
    assert squeeze(f"{guidance.repository} - Written by the agent.") in read_results(result)
    assert b"+- Written by the agent.\n" in result.patch
    assert b"Rules of the repository" not in result.patch
    trees = [state.tree for state in result.rollout.states]
    assert len(set(trees)) == 3, "the text itself changes no state, the patch and the edit do"


def test_files_with_instructions_are_written_as_the_container_starts(
    bench: AgentBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each further command would be a tenth of the start."""
    scaffold, contents = load_scaffold("react"), list[bytes | None]()
    own = scaffold.agent_preprocess

    def preprocess(session: AgentSession) -> None:
        contents.append(session.shell.read_file("/testbed/AGENTS.md"))
        own(session)
        contents.append(session.shell.read_file("/testbed/AGENTS.md"))
        contents.append(session.shell.read_file(MEMORY_FILE))

    monkeypatch.setattr(scaffold, "agent_preprocess", preprocess)
    guidance = Guidance(repository="- Be kind.", memory="- Be brief.")
    result = bench.run(scaffold, bench.make_player(), guidance=guidance)
    assert (contents, result.rollout.value) == ([b"- Be kind.\n", b"- Be kind.\n", b"- Be brief."], 1.0)
    assert result.patch == bench.gold
