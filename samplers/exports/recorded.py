"""Recorded conversations, as rows of supervised training have them.

ShareGPT has no masks, so it holds conversations of which every answer is trained.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from samplers.exports.conversations import Message, TrainedConversation
from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.exports.messages import flatten_message
from training_data.sharegpt import TOOL, Turn, make_turns
from training_data.sources import LeftOutError, Row, RowSource

NO_MASKS = "ShareGPT has no masks, and not every answer in it is trained"
CONVERSATIONS = RowSource(name="mergemill", hermes_tags={"observation_tag": TOOL})
HERMES_TOOLS = (
    "You are a function calling AI model. You are provided with function signatures within <tools></tools> XML tags. "
    "You may call one or more functions to assist with the user query. Here are the available tools: <tools> {tools} "
    "</tools> For each function call return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags."
)


@dataclass(frozen=True, kw_only=True)
class RecordedConversation:
    """A conversation of a trajectory: a `training_data.conversations.TrainingConversation`.

    `per_request`: whether its last answer alone is trained, which needs no masks.
    """

    item: ExportedTrajectory
    conversation: TrainedConversation
    per_request: bool

    @property
    def identity(self) -> Row:
        """Columns that every row begins with."""
        return build_identity(self.item)

    @property
    def origin(self) -> Row:
        """Whether the task was resolved, and the provenance of a row."""
        exchanges = [exchange for exchange in self.conversation.exchanges if exchange is not None]
        metadata = build_metadata(self.item, exchanges)
        # As text, like the tools: a list that is empty in the first rows of a file has no type to readers of tables.
        metadata["constraints"] = json.dumps(metadata["constraints"], ensure_ascii=False)
        return {"resolved": self.item.rollout.resolved, "metadata": metadata}

    @property
    def messages(self) -> Sequence[Message]:
        """OpenAI's messages. Where not every answer is trained, those of the assistant have `weight`, 0 or 1."""
        messages = []
        for message, exchange in zip(self._flat, self.conversation.exchanges, strict=True):
            is_masked = not self.conversation.is_whole and message["role"] == "assistant"
            messages.append({**message, "weight": int(exchange is not None)} if is_masked else message)
        return messages

    @property
    def tools(self) -> Sequence[Message] | None:
        """Tools of the request; None where it had none."""
        return self.conversation.tools or None

    @property
    def system(self) -> str:
        """Texts of the system that the conversation begins with; those within it become the user's turns."""
        return "\n\n".join(message["content"] for message in self._flat[: self._n_system])

    @property
    def turns(self) -> Sequence[Turn]:
        """Turns with calls as turns of their own.

        Raises:
            LeftOutError: not every answer is trained.
        """
        return self._make_turns(hermes=False)

    @property
    def functions(self) -> Sequence[Message] | None:
        """Tools of the request; None where it had none."""
        return self.tools

    @property
    def hermes_system(self) -> str:
        """Texts of the system, and the tools."""
        if not self.conversation.tools:
            return self.system
        tools = json.dumps(list(self.conversation.tools), ensure_ascii=False)
        return "\n\n".join(part for part in (self.system, HERMES_TOOLS.format(tools=tools)) if part)

    @property
    def hermes_turns(self) -> Sequence[Turn]:
        """Turns with calls and results in the text.

        Raises:
            LeftOutError: not every answer is trained.
        """
        return self._make_turns(hermes=True)

    @cached_property
    def _flat(self) -> list[Message]:
        return [flatten_message(message) for message in self.conversation.messages]

    @property
    def _n_system(self) -> int:
        return next((at for at, message in enumerate(self._flat) if message["role"] != "system"), len(self._flat))

    def _make_turns(self, *, hermes: bool) -> list[Turn]:
        if not (self.conversation.is_whole or self.per_request):
            raise LeftOutError(NO_MASKS)
        return make_turns(self._flat[self._n_system :], hermes=hermes)
