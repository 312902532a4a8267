"""How the real program of each scaffold ends where its model talks, hangs, goes on for ever or fails.

One case runs with every change: a program whose turns the gateway alone limits. The others are slow tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from samplers.scaffolds.base import AgentLimits
from samplers.scaffolds.registry import load_scaffold
from taskdb.records.rollouts import RolloutStatus
from tests.samplers.bench import AgentBench
from tests.samplers.scripted_model import Call, ModelRequest, Turn
from tests.samplers.shell_player import count_calls, find_shell_tool, make_call

pytestmark = pytest.mark.docker

SCAFFOLDS = ("react", "mini-swe-agent", "claude-code", "codex", "opencode", "qwen-code", "openhands")
TURNS = 4
LIMITS = AgentLimits(seconds=180.0, turns=TURNS)
TIME_LIMITS = AgentLimits(seconds=45.0, turns=100)
"""Long enough for the slowest program to start on a busy machine. Codex goes on when a command takes 10 seconds."""
MOST_REQUESTS = 10
"""Requests that a program makes to a model that always fails; the gateway sends each of them several times."""
MISSING_TOOL = "no_such_tool"
UNLIMITED = "codex"
"""A program that keeps no limit of turns by itself; OpenCode is another."""
ACTS = frozenset(("react", "mini-swe-agent"))
"""Scaffolds that an answer without a call does not end: they want an action."""


def act(request: ModelRequest, command: str) -> Turn:
    """Run a command; a request without a shell tool, such as one for a title, gets a short text."""
    tool = find_shell_tool(request.body)
    return Turn(text="Next.", calls=(make_call(tool, command),)) if tool else Turn(text="A short text")


def talk(request: ModelRequest) -> Turn:
    """Answer without calling a tool."""
    return Turn(text=f"I think about message {len(request.body['messages'])}.")


def count_commands(request: ModelRequest) -> int:
    """Return the number of commands so far."""
    tool = find_shell_tool(request.body)
    return count_calls(request.body, tool["name"]) if tool else 0


def hang(request: ModelRequest) -> Turn:
    """Run a command that does not end. Claude Code refuses `sleep`."""
    return act(request, "tail -f /dev/null")


def go_on(request: ModelRequest) -> Turn:
    """Run another command for ever."""
    return act(request, f"echo {count_commands(request)}")


def fail(fault: str) -> Callable[[ModelRequest], Turn]:
    """Fail in one way for ever."""
    return lambda _: Turn(fault=fault)


@dataclass(frozen=True)
class EndCase:
    """What a model does, and how the rollout ends: status, reason, and a text that its detail has."""

    answer: Callable[[ModelRequest], Turn]
    status: RolloutStatus
    reason: str | None
    detail: str = ""
    limits: AgentLimits = LIMITS


FAILED, DONE, INFRASTRUCTURE = RolloutStatus.FAILED, RolloutStatus.DONE, RolloutStatus.INFRASTRUCTURE
CASES = {
    "goes on": EndCase(go_on, FAILED, "turn-limit"),
    "hangs": EndCase(hang, FAILED, "time-limit", limits=TIME_LIMITS),
    "rejects": EndCase(fail("400"), FAILED, "model-failed", "This request has no right form"),
    "overflows": EndCase(fail("context"), FAILED, "model-failed", "context|too long"),
    "fails": EndCase(fail("500"), INFRASTRUCTURE, "upstream-server", "The server had an error"),
    "locks out": EndCase(fail("401"), INFRASTRUCTURE, "upstream-key", "Incorrect API key"),
}

OWN_ENDS = {
    ("openhands", "hangs"): EndCase(hang, FAILED, "agent-failed", "stuck", limits=AgentLimits(seconds=180.0, turns=100))
}
"""Ends that a program finds by itself: OpenHands goes on when a command takes 10 seconds, and gives up equal ones."""


@pytest.mark.parametrize(
    "name", [name if name == UNLIMITED else pytest.param(name, marks=pytest.mark.slow) for name in SCAFFOLDS]
)
def test_a_model_that_goes_on_for_ever_is_stopped_at_the_limit_of_turns(name: str, bench: AgentBench) -> None:
    check_end(name, CASES["goes on"], bench)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCAFFOLDS)
@pytest.mark.parametrize("case", [name for name in CASES if name != "goes on"])
def test_every_failure_of_a_model_ends_the_rollout_with_its_reason(name: str, case: str, bench: AgentBench) -> None:
    check_end(name, OWN_ENDS.get((name, case), CASES[case]), bench)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCAFFOLDS)
def test_a_model_that_only_talks_ends_soon(name: str, bench: AgentBench) -> None:
    result = bench.run(load_scaffold(name), talk, limits=LIMITS)
    wanted = (FAILED, "no-action") if name in ACTS else (DONE, None)
    assert (result.rollout.status, result.rollout.reason) == wanted, result.log[-2000:]
    with_tools = [request for request in result.requests if request.tools]
    assert len(with_tools) <= TURNS if name in ACTS else len(with_tools) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SCAFFOLDS)
def test_a_call_of_an_unknown_tool_is_answered_and_the_work_goes_on(name: str, bench: AgentBench) -> None:
    player = bench.make_player()

    def answer(request: ModelRequest) -> Turn:
        is_first = find_shell_tool(request.body) and MISSING_TOOL not in request.raw.decode()
        return Turn(text="I try.", calls=(Call(MISSING_TOOL, {"n": 1}),)) if is_first else player(request)

    result = bench.run(load_scaffold(name), answer)
    rollout = result.rollout
    assert (rollout.status, rollout.reason, rollout.value) == (DONE, None, 1.0), result.log[-2000:]


def check_end(name: str, case: EndCase, bench: AgentBench) -> None:
    """Run a case and compare."""
    result = bench.run(load_scaffold(name), case.answer, limits=case.limits)
    rollout = result.rollout
    assert (rollout.status, rollout.reason) == (case.status, case.reason), result.log[-2000:]
    assert any(word in rollout.detail for word in case.detail.split("|")), rollout.detail
    assert case.status is not INFRASTRUCTURE or rollout.requests <= MOST_REQUESTS
    with_tools = [request for request in result.requests if request.tools]
    assert len(with_tools) > 0
    assert case.reason != "turn-limit" or len(with_tools) == TURNS
