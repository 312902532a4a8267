"""Recorded messages in the form that rows have: contents and arguments are strings."""

from __future__ import annotations

from samplers.exports.conversations import Message
from samplers.trajectories.requests import get_text

NO_TEXT = "[{}]"
"""Replaces a part of a content that is not text, such as an image, by its type."""


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
