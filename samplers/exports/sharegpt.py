"""ShareGPT rows, as LLaMA-Factory reads them: turns of user and model alternate, and the model's comes last.

Structured: calls are a turn `function_call`, a JSON object or a list of them, and their results one turn `observation`.
Hermes: calls stand in `<tool_call>` inside the model's text, results in `<tool_response>`, tools in the system prompt.
The format has no masks, so it holds conversations of which every answer is trained.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from samplers.exports.conversations import Message, TrainedConversation
from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.exports.messages import flatten_message

HUMAN, MODEL, OBSERVATION, CALL, TOOL = "human", "gpt", "observation", "function_call", "tool"
RESULTS_JOINT = "\n</tool_response>\n<tool_response>\n"
"""Between the results of parallel calls: LLaMA-Factory's own, which templates put into `<tool_response>`."""
HERMES_TOOLS = (
    "You are a function calling AI model. You are provided with function signatures within <tools></tools> XML tags. "
    "You may call one or more functions to assist with the user query. Here are the available tools: <tools> {tools} "
    "</tools> For each function call return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags."
)
DATASET_INFO = {
    "mergemill": {
        "file_name": "train.jsonl",
        "formatting": "sharegpt",
        "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
        "tags": {
            "role_tag": "from",
            "content_tag": "value",
            "user_tag": HUMAN,
            "assistant_tag": MODEL,
            "observation_tag": OBSERVATION,
            "function_tag": CALL,
        },
    }
}
"""Content of LLaMA-Factory's `dataset_info.json`."""

Turn = tuple[str, str]
"""Speaker and text."""


def make_dataset_info(*, hermes: bool) -> dict[str, Any]:
    """Return the content of `dataset_info.json`."""
    info: dict[str, Any] = json.loads(json.dumps(DATASET_INFO))
    if hermes:
        info["mergemill"]["tags"]["observation_tag"] = TOOL
        del info["mergemill"]["columns"]["tools"]
    return info


def build_row(item: ExportedTrajectory, conversation: TrainedConversation, *, hermes: bool) -> dict[str, Any]:
    """Return a row. Texts of the system within the conversation become the user's."""
    messages = [flatten_message(message) for message in conversation.messages]
    n_system = next((at for at, message in enumerate(messages) if message["role"] != "system"), len(messages))
    system = "\n\n".join(message["content"] for message in messages[:n_system])
    tools = json.dumps(list(conversation.tools), ensure_ascii=False) if conversation.tools else ""
    if hermes and tools:
        system = "\n\n".join(part for part in (system, HERMES_TOOLS.format(tools=tools)) if part)
    turns = merge_turns(_make_turns(messages[n_system:], hermes=hermes))
    exchanges = [one for one in conversation.exchanges if one is not None]
    return {
        **build_identity(item),
        "conversations": [{"from": speaker, "value": text} for speaker, text in turns],
        "system": system,
        **({} if hermes else {"tools": tools}),
        "resolved": item.rollout.resolved,
        "metadata": build_metadata(item, exchanges),
    }


def is_alternating(row: dict[str, Any]) -> bool:
    """Return whether the turns alternate, begin with the user's and end with the model's; others are dropped."""
    speakers = [turn["from"] in (MODEL, CALL) for turn in row["conversations"]]
    return len(speakers) % 2 == 0 and speakers == [False, True] * (len(speakers) // 2)


def merge_turns(turns: Iterator[Turn]) -> list[Turn]:
    """Return the turns with neighbours of one side made one; results of tools stay what they are."""
    merged: list[Turn] = []
    for side, group in groupby(turns, key=lambda turn: turn[0] in (MODEL, CALL)):
        listed = list(group)
        if side:
            merged += listed
            continue
        results = [text for speaker, text in listed if speaker in (OBSERVATION, TOOL)]
        rest = [text for speaker, text in listed if speaker == HUMAN]
        speaker = next((speaker for speaker, _ in listed if speaker != HUMAN), HUMAN)
        joined = [RESULTS_JOINT.join(results)] if speaker == OBSERVATION else ["\n".join(results)] if results else []
        merged.append((speaker, "\n\n".join([*joined, *rest])))
    return merged


def _make_turns(messages: Sequence[Message], *, hermes: bool) -> Iterator[Turn]:
    for message in messages:
        text = message["content"]
        if message["role"] == "assistant":
            yield _make_hermes_answer(message) if hermes else _make_answer(message)
        elif message["role"] == "tool":
            yield (TOOL, f"<tool_response>\n{text}\n</tool_response>") if hermes else (OBSERVATION, text)
        else:
            yield HUMAN, text


def _make_answer(message: Message) -> Turn:
    before = _think(message) + message["content"]
    calls = [_read_call(call) for call in message.get("tool_calls") or ()]
    if not calls:
        return MODEL, before
    listed = json.dumps(calls[0] if len(calls) == 1 else calls, ensure_ascii=False)
    return CALL, f"{before}<tool_call>{listed}</tool_call>" if before else listed


def _make_hermes_answer(message: Message) -> Turn:
    calls = [json.dumps(_read_call(call), ensure_ascii=False) for call in message.get("tool_calls") or ()]
    parts = [_think(message) + message["content"], *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)]
    return MODEL, "\n".join(part for part in parts if part)


def _think(message: Message) -> str:
    return f"<think>\n{message['reasoning_content']}\n</think>\n\n" if message.get("reasoning_content") else ""


def _read_call(call: Message) -> dict[str, Any]:
    """Return name and arguments, an object; arguments that are no JSON stay text."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return {"name": function["name"], "arguments": arguments}
