"""Playing scenarios for a bundle: the known solution against the world, and the reward that doing nothing gives."""

from __future__ import annotations

import json
from collections.abc import Sequence

from worlds.bundles.contents import ORACLE, BundledScenario, Message, WorldConversation
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.gates.solutions import run_calls
from worlds.rewards import compute_reward, find_kept_checks
from worlds.server.service import CallResult, ServedWorld, WorldServer

COMPLETED = "Task Completed"
"""Words by which an agent ends an episode (EnvScaler, arXiv 2601.05808, section 3.3)."""
INSTRUCTION = (
    "You work in an environment through its tools. Make one tool call at a time and look at its result before the "
    f"next one. When the task is done, answer `{COMPLETED}` and nothing else."
)


class UnplayableScenarioError(Exception):
    """A scenario that a bundle cannot hold; the text is the reason."""


def build_system_prompt(definition: WorldDefinition) -> str:
    """Return the text that an agent in a world is given first: how it acts, and the documentation."""
    return f"{INSTRUCTION}\n\n{definition.documentation}"


def build_prompt(definition: WorldDefinition, scenario: ScenarioDefinition) -> list[Message]:
    """Return the messages that an episode begins with."""
    return [
        {"role": "system", "content": build_system_prompt(definition)},
        {"role": "user", "content": scenario.task},
    ]


def play_scenario(scenario: ScenarioDefinition, world: ServedWorld, server: WorldServer) -> BundledScenario:
    """Return a scenario with the conversation that its solution gives.

    Raises:
        UnplayableScenarioError: its checks cannot earn anything, or its solution does not earn 1.
        Transient: the container has ended, or the engine cannot be reached.
    """
    kept = find_kept_checks(server.run_checks(scenario.checks, scenario.state, scenario.state))
    if len(kept) == len(scenario.checks):
        raise UnplayableScenarioError("doing nothing fulfils all of its checks")
    if not scenario.solution:
        return BundledScenario(definition=scenario, kept=kept, conversation=None)
    run = run_calls(world, scenario.state, scenario.solution)
    if run.fault is not None:
        raise UnplayableScenarioError(f"its solution has a fault: {run.fault.reason.value}: {run.fault.detail}")
    reward = compute_reward(server.run_checks(scenario.checks, scenario.state, run.final), kept)
    if reward < 1.0:
        raise UnplayableScenarioError(f"its solution earns {reward:g}")
    conversation = WorldConversation(
        messages=tuple(build_messages(world.definition, scenario, run.calls, run.results)),
        calls=run.calls,
        source=ORACLE,
        model="",
        reward=reward,
    )
    return BundledScenario(definition=scenario, kept=kept, conversation=conversation)


def build_messages(
    definition: WorldDefinition, scenario: ScenarioDefinition, calls: Sequence[Call], results: Sequence[CallResult]
) -> list[Message]:
    """Return the conversation of an agent that makes these calls and ends the episode."""
    messages = build_prompt(definition, scenario)
    for number, (call, result) in enumerate(zip(calls, results, strict=True), start=1):
        key = f"call_{number}"
        function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)}
        tool_calls = [{"id": key, "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": "", "tool_calls": tool_calls})
        content = json.dumps(dict(result.value), ensure_ascii=False)
        messages.append({"role": "tool", "tool_call_id": key, "content": content})
    return [*messages, {"role": "assistant", "content": COMPLETED}]
