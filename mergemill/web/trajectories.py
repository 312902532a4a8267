"""Trajectories as conversations: ATIF 1.8 or OpenAI messages, read from `rollouts/ID.json` of the store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import InputError

ROLLOUT_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
MAX_FILE_BYTES = 64 * 1024 * 1024
_ATIF_ROLES = {"user": "user", "agent": "assistant", "system": "system"}


@dataclass(frozen=True)
class ToolUse:
    """A tool call and its result. `result` is None where none was recorded."""

    name: str
    arguments: str
    """JSON, indented; as it was written where it is not JSON."""
    result: str | None = None


@dataclass(frozen=True)
class ConversationTurn:
    """A message of a conversation."""

    number: int
    role: str
    text: str
    reasoning: str = ""
    calls: tuple[ToolUse, ...] = ()
    at: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RolloutConversation:
    """A trajectory. `facts`: the facts that its file has besides the messages (model, scaffold, task, reward)."""

    id: str
    turns: tuple[ConversationTurn, ...]
    facts: Mapping[str, str]


def load_conversation(folder: Path, rollout: str) -> RolloutConversation:
    """Return the trajectory of a rollout.

    Args:
        folder: folder of the rollouts.
        rollout: id of the rollout, the name of its file without `.json`.

    Raises:
        InputError: there is none, or its file is neither ATIF nor a list of messages.
    """
    path = folder / f"{rollout}.json"
    if not ROLLOUT_ID.fullmatch(rollout) or not path.is_file():
        raise InputError(f"there is no rollout {rollout}", advice="trajectories are read from rollouts/ID.json")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InputError(f"the trajectory of {rollout} is larger than {MAX_FILE_BYTES >> 20} MB")
    try:
        data = json.loads(path.read_bytes())
        return _read_conversation(rollout, data)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise InputError(f"the trajectory of {rollout} is neither ATIF nor a list of messages") from error


def make_conversation(
    rollout: str, messages: Sequence[Mapping[str, Any]], facts: Mapping[str, str]
) -> RolloutConversation:
    """Return OpenAI messages as a conversation."""
    return RolloutConversation(rollout, tuple(_read_messages(messages)), facts)


def _read_conversation(rollout: str, data: Any) -> RolloutConversation:
    if isinstance(data, list):
        data = {"messages": data}
    if "steps" in data:
        turns: Sequence[ConversationTurn] = [_read_step(step) for step in data["steps"]]
    else:
        turns = list(_read_messages(data["messages"]))
    return RolloutConversation(rollout, tuple(turns), dict(_collect_facts(data)))


def _collect_facts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the short values of a trajectory's file, those of its agent, metrics and metadata among them."""
    for name, value in data.items():
        if isinstance(value, str | int | float | bool) and len(str(value)) < 200:
            yield name, str(value)
        elif name in ("agent", "final_metrics", "metadata", "extra") and isinstance(value, Mapping):
            yield from ((f"{name} {inner}", fact) for inner, fact in _collect_facts(value))


def _read_step(step: Mapping[str, Any]) -> ConversationTurn:
    """Return a step of ATIF, whose tool results stand inside it."""
    results: dict[str, str] = {}
    unassigned: list[str] = []
    for result in (step.get("observation") or {}).get("results") or ():
        text = format_content(result.get("content"))
        if key := result.get("source_call_id"):
            results[str(key)] = text
        else:
            unassigned.append(text)
    calls = [
        ToolUse(
            str(call.get("function_name", "")),
            _format_arguments(call.get("arguments")),
            results.pop(str(call.get("tool_call_id")), None),
        )
        for call in step.get("tool_calls") or ()
    ]
    calls += [ToolUse("", "", text) for text in [*results.values(), *unassigned]]
    metrics = {k: v for k, v in (step.get("metrics") or {}).items() if isinstance(v, int | float)}
    return ConversationTurn(
        number=int(step["step_id"]),
        role=_ATIF_ROLES.get(step["source"], str(step["source"])),
        text=format_content(step.get("message")),
        reasoning=format_content(step.get("reasoning_content")),
        calls=tuple(calls),
        at=str(step.get("timestamp") or ""),
        metrics=metrics,
    )


def _read_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[ConversationTurn]:
    """Yield OpenAI messages; the answer of a tool is shown with its call."""
    answers = {str(m.get("tool_call_id")): format_content(m.get("content")) for m in messages if m["role"] == "tool"}
    shown = {str(call.get("id")) for m in messages for call in m.get("tool_calls") or ()}
    number = 0
    for message in messages:
        if message["role"] == "tool" and str(message.get("tool_call_id")) in shown:
            continue
        number += 1
        calls = tuple(
            ToolUse(
                str((call.get("function") or {}).get("name", "")),
                _format_arguments((call.get("function") or {}).get("arguments")),
                answers.get(str(call.get("id"))),
            )
            for call in message.get("tool_calls") or ()
        )
        reasoning = format_content(message.get("reasoning_content") or message.get("reasoning"))
        yield ConversationTurn(number, str(message["role"]), format_content(message.get("content")), reasoning, calls)


def format_content(content: Any) -> str:
    """Return the text of a message: a string, or parts of which those that are not text are named."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_format_part(part) for part in content)
    return json.dumps(content, indent=2, ensure_ascii=False)


def _format_part(part: Any) -> str:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    return f"[{part.get('type', 'part')}]" if isinstance(part, Mapping) else str(part)


def _format_arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return str(arguments)
    return json.dumps(arguments, indent=2, ensure_ascii=False) if arguments is not None else ""
