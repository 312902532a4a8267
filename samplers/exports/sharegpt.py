"""ShareGPT rows, as LLaMA-Factory reads them: turns of user and model alternate, and the model's comes last.

Structured: calls are a turn `function_call`, a JSON object or a list of them, and their results one turn `observation`.
Hermes: calls stand in `<tool_call>` inside the model's text, results in `<tool_response>`, tools in the system prompt.
The format has no masks, so it holds conversations of which every answer is trained.
"""

from __future__ import annotations

import json
from typing import Any

from samplers.exports.conversations import TrainedConversation
from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.exports.messages import flatten_message
from training_data.sharegpt import TOOL, make_turns
from training_data.sharegpt import make_dataset_info as make_info

HERMES_TOOLS = (
    "You are a function calling AI model. You are provided with function signatures within <tools></tools> XML tags. "
    "You may call one or more functions to assist with the user query. Here are the available tools: <tools> {tools} "
    "</tools> For each function call return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags."
)


def make_dataset_info(*, hermes: bool) -> dict[str, Any]:
    """Return the content of LLaMA-Factory's `dataset_info.json`."""
    return make_info("mergemill", has_tools=not hermes, tags={"observation_tag": TOOL} if hermes else None)


def build_row(item: ExportedTrajectory, conversation: TrainedConversation, *, hermes: bool) -> dict[str, Any]:
    """Return a row. Texts of the system within the conversation become the user's."""
    messages = [flatten_message(message) for message in conversation.messages]
    n_system = next((at for at, message in enumerate(messages) if message["role"] != "system"), len(messages))
    system = "\n\n".join(message["content"] for message in messages[:n_system])
    tools = json.dumps(list(conversation.tools), ensure_ascii=False) if conversation.tools else ""
    if hermes and tools:
        system = "\n\n".join(part for part in (system, HERMES_TOOLS.format(tools=tools)) if part)
    turns = make_turns(messages[n_system:], hermes=hermes)
    exchanges = [one for one in conversation.exchanges if one is not None]
    return {
        **build_identity(item),
        "conversations": [{"from": speaker, "value": text} for speaker, text in turns],
        "system": system,
        **({} if hermes else {"tools": tools}),
        "resolved": item.rollout.resolved,
        "metadata": build_metadata(item, exchanges),
    }
