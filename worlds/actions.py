"""Actions of an agent: a tool call, words for the user, the end; as data or as the text of a model.

Texts are the texts that models write: a thought, then a call as a `<tool_call>` tag (Hermes), a fenced block of JSON or
bare JSON with `name` and `arguments`, or the phrase that ends the episode (EnvScaler, arXiv 2601.05808, section 3.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backends.llm.base import ToolCall
from backends.llm.text_tool_calls import extract_tool_calls

STOP = "stop"
"""Key of the action that ends an episode: `{"stop": true}`."""
COMPLETED = "Task Completed"
"""Phrase by which an agent ends an episode without a user."""
CHAT_TOOL = "chat_with_user"
"""Tool of conversational episodes."""
CHAT_SCHEMA: Mapping[str, Any] = {
    "name": CHAT_TOOL,
    "description": "Say something to the user and get the user's answer.",
    "parameters": {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "What to say."}},
        "required": ["message"],
        "additionalProperties": False,
    },
}
MAX_TEXT = 200_000
"""Characters of a model's text; a longer text is not parsed."""
_CLOSED_THOUGHT = re.compile(r"\A.*</think(ing)?>", re.DOTALL)
_OPEN_THOUGHT = re.compile(r"<think(ing)?>.*", re.DOTALL)


@dataclass(frozen=True)
class ToolAction:
    """Call of a tool of the world."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChatAction:
    """Words for the user."""

    text: str


@dataclass(frozen=True)
class StopAction:
    """End of the episode."""


@dataclass(frozen=True)
class UnreadableAction:
    """Action that cannot be read. `problem` is the answer that the agent gets."""

    problem: str


Action = ToolAction | ChatAction | StopAction | UnreadableAction


def read_action(given: object, tools: Collection[str], *, is_conversation: bool) -> Action:
    """Return the action that an agent's message stands for.

    Args:
        given: `{"tool", "arguments"}`, `{"stop": true}`, a model's text or `{"text": TEXT}`, or an assistant's message
            of the chat completions API (`content`, `tool_calls`).
        tools: names of the world's tools.
        is_conversation: whether there is a user: then words without a call are for the user, and no phrase ends the
            episode.
    """
    match given:
        case {"stop": True}:
            return StopAction()
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return _make_call(tool, arguments, is_conversation=is_conversation)
        case {"tool_calls": [_, *_] as calls}:
            return _read_api_calls(calls, is_conversation=is_conversation)
        case str(text) | {"text": str(text)} | {"content": str(text)}:
            return _read_text(text, tools, is_conversation=is_conversation)
    return UnreadableAction(_describe_forms(is_conversation=is_conversation))


def _read_api_calls(calls: Sequence[object], *, is_conversation: bool) -> Action:
    if len(calls) > 1:
        return _refuse_several(len(calls))
    match calls[0]:
        case {"function": {"name": str(name), "arguments": str(text)}}:
            arguments = _load_object(text)
            if arguments is None:
                return UnreadableAction(f"the arguments of {name} are no JSON object")
            return _make_call(name, arguments, is_conversation=is_conversation)
    return UnreadableAction(_describe_forms(is_conversation=is_conversation))


def _read_text(text: str, tools: Collection[str], *, is_conversation: bool) -> Action:
    if len(text) > MAX_TEXT:
        return UnreadableAction(f"the message has more than {MAX_TEXT} characters")
    words = _OPEN_THOUGHT.sub("", _CLOSED_THOUGHT.sub("", text)).strip()
    match _load_object(words):
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return _make_call(tool, arguments, is_conversation=is_conversation)
        case dict():
            words = f"```tool\n{words}\n```"
    rest, calls = extract_tool_calls(words, tools)
    if calls:
        return _read_call(calls, is_conversation=is_conversation)
    if is_conversation and rest:
        return ChatAction(rest)
    if not is_conversation and COMPLETED in rest:
        return StopAction()
    return UnreadableAction(_describe_forms(is_conversation=is_conversation))


def _read_call(calls: Sequence[ToolCall], *, is_conversation: bool) -> Action:
    if len(calls) > 1:
        return _refuse_several(len(calls))
    name, arguments = calls[0].name, calls[0].arguments
    if arguments is None:
        return UnreadableAction(f"the tool call cannot be read: {calls[0].problem}")
    return _make_call(name, arguments, is_conversation=is_conversation)


def _make_call(name: str, arguments: Mapping[str, Any], *, is_conversation: bool) -> Action:
    if name != CHAT_TOOL or not is_conversation:
        return ToolAction(name, arguments)
    match arguments:
        case {"message": str(message)} if len(arguments) == 1 and message.strip():
            return ChatAction(message)
    return UnreadableAction(f'the arguments of {CHAT_TOOL} are {{"message": TEXT}}')


def _load_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_several(number: int) -> UnreadableAction:
    return UnreadableAction(f"an action is one tool call, not {number}")


def _describe_forms(*, is_conversation: bool) -> str:
    end = "words for the user" if is_conversation else f'the words "{COMPLETED}"'
    return f'an action is one tool call, such as {{"name": NAME, "arguments": {{...}}}}, or {end}'
