"""Conversations of the rollouts by which a model solved a scenario, from the log of its certificate."""

from __future__ import annotations

import json
from typing import Any

from worlds.bundles.contents import ROLLOUT, Message, WorldConversation
from worlds.definitions import Call


def read_rollouts(log: bytes, model: str) -> tuple[WorldConversation, ...]:
    """Return the rollouts of a log that earned 1 and were ended by the model.

    A with a call that could not be read is left out: its messages do not repeat the text that the model wrote.

    Args:
        log: JSON lines `{"rollout", "reward", "ended", "messages": [{"role", "text", "calls"}]}`.
        model: name of the model.
    """
    rollouts = []
    for line in log.splitlines():
        rollout = json.loads(line)
        if rollout["reward"] != 1.0 or rollout["ended"] != "completed":
            continue
        calls = [call for message in rollout["messages"] for call in message.get("calls", ())]
        if any(call["arguments"] is None for call in calls):
            continue
        rollouts.append(
            WorldConversation(
                messages=tuple(_make_messages(rollout["messages"])),
                calls=tuple(Call(tool=call["name"], arguments=call["arguments"]) for call in calls),
                source=ROLLOUT,
                number=rollout["rollout"],
                model=model,
                reward=1.0,
            )
        )
    return tuple(rollouts)


def _make_messages(given: list[dict[str, Any]]) -> list[Message]:
    """Return messages in OpenAI's form; results of tools follow their calls in the same order."""
    messages: list[Message] = []
    waiting: list[str] = []
    n_calls = 0
    for entry in given:
        message: dict[str, Any] = {"role": entry["role"], "content": entry["text"]}
        if entry["role"] == "tool":
            message["tool_call_id"] = waiting.pop(0)
        ids: list[str] = []
        for call in entry.get("calls", ()):
            n_calls += 1
            function = {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)}
            ids.append(f"call_{n_calls}")
            message.setdefault("tool_calls", []).append({"id": ids[-1], "type": "function", "function": function})
        waiting = ids or waiting
        messages.append(message)
    return messages
