"""Rows in OpenAI's message form: contents and arguments are strings, tools are a JSON string, an answer comes last."""

from __future__ import annotations

import json
from typing import Any

from samplers.exports.conversations import Message, TrainedConversation
from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.trajectories.requests import get_text

NO_TEXT = "[{}]"
"""Replaces a part of a content that is no text, such as an image, by its type."""


def build_row(item: ExportedTrajectory, conversation: TrainedConversation) -> dict[str, Any]:
    """Return a row. Where not every answer in it is trained, messages of the assistant have `weight`, 0 or 1."""
    pairs = zip(conversation.messages, conversation.exchanges, strict=True)
    messages = []
    for message, exchange in pairs:
        made = flatten_message(message)
        if not conversation.is_whole and made["role"] == "assistant":
            made["weight"] = int(exchange is not None)
        messages.append(made)
    exchanges = [one for one in conversation.exchanges if one is not None]
    return {
        **build_identity(item),
        "messages": messages,
        "tools": json.dumps(list(conversation.tools), ensure_ascii=False) if conversation.tools else "",
        "resolved": item.rollout.resolved,
        "metadata": build_metadata(item, exchanges),
    }


def flatten_message(message: Message) -> Message:
    """Return a message whose content is a string."""
    made: Message = {"role": message["role"], "content": flatten_content(message)}
    if reasoning := get_text(message, "reasoning_content"):
        made["reasoning_content"] = reasoning
    if calls := message.get("tool_calls"):
        made["tool_calls"] = [
            {
                "id": str(call.get("id", "")),
                "type": "function",
                "function": {
                    "name": str(call["function"].get("name", "")),
                    "arguments": str(call["function"].get("arguments") or "{}"),
                },
            }
            for call in calls
        ]
    if message.get("tool_call_id"):
        made["tool_call_id"] = message["tool_call_id"]
    return made


def flatten_content(message: Message) -> str:
    """Return the content of a message as text."""
    content = message.get("content")
    if not isinstance(content, list):
        return get_text(message)
    parts = (part if isinstance(part, dict) else {"text": str(part)} for part in content)
    return "\n".join(str(part.get("text") or NO_TEXT.format(part.get("type", "part"))) for part in parts)
