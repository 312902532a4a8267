"""Conversations that solve scenarios, as rows of supervised training have them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from training_data.sharegpt import QWEN_TOOLS, Turn, make_turns
from training_data.sources import Row, RowSource
from worlds.bundles.contents import ENVIRONMENT, BundledScenario, BundledWorld, Message, WorldConversation

CONVERSATIONS = RowSource(name="worlds")


@dataclass(frozen=True)
class SolvedScenario:
    """A conversation that solves a scenario of a world: a `training_data.conversations.TrainingConversation`."""

    world: BundledWorld
    scenario: BundledScenario
    conversation: WorldConversation

    @property
    def identity(self) -> Row:
        """Columns that every row begins with."""
        world, scenario, conversation = self.world, self.scenario, self.conversation
        return {
            "id": f"{scenario.definition.name}/{conversation.label}",
            "environment": ENVIRONMENT,
            "world": world.name,
            "scenario": scenario.definition.name,
            "license": world.contents.license,
            "origin": world.contents.origin,
            "certified": world.contents.certification is not None,
            "source": conversation.source,
            "model": conversation.model,
            "reward": conversation.reward,
            "n_calls": len(conversation.calls),
        }

    @property
    def origin(self) -> Row:
        """No further columns."""
        return {}

    @property
    def messages(self) -> Sequence[Message]:
        """OpenAI's messages. Those of the assistant have `weight` 1, and are the part that is trained."""
        return [
            {**message, "weight": 1} if message["role"] == "assistant" else message
            for message in self.conversation.messages
        ]

    @property
    def tools(self) -> Sequence[Message]:
        """The world's tools in OpenAI's form."""
        return self.world.function_tools

    @property
    def system(self) -> str:
        """Text that the agent was given first."""
        return self.conversation.system

    @property
    def turns(self) -> Sequence[Turn]:
        """Turns with calls as turns of their own."""
        return make_turns(self.conversation.turns, hermes=False)

    @property
    def functions(self) -> Sequence[Message]:
        """The world's tools."""
        return [tool.to_json() for tool in self.world.analysis.tools]

    @property
    def hermes_system(self) -> str:
        """Text that the agent was given first, with tools as the chat template of Qwen 3 writes them."""
        tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in self.world.function_tools)
        return f"{self.conversation.messages[0]['content'].rstrip()}{QWEN_TOOLS.format(tools=tools)}"

    @property
    def hermes_turns(self) -> Sequence[Turn]:
        """Turns with calls and results in the text."""
        return make_turns(self.conversation.turns, hermes=True)
