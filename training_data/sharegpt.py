"""ShareGPT turns, as LLaMA-Factory reads them: turns of user and model alternate, and the model's comes last.

Structured: calls are a turn `function_call`, a JSON object or a list of them, and their results a turn `observation`.
Hermes: calls stand in `<tool_call>` inside the model's text, results in `<tool_response>`, tools in the system prompt.
Messages are OpenAI's, with contents and arguments as strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

HUMAN, MODEL, OBSERVATION, CALL, TOOL = "human", "gpt", "observation", "function_call", "tool"
RESULTS_JOINT = "\n</tool_response>\n<tool_response>\n"
"""Between the results of parallel calls: LLaMA-Factory's own, which templates put into `<tool_response>`."""
QWEN_TOOLS = """\


# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""Text that the chat templates of Qwen 2.5 and 3 write behind a system prompt with tools; `{tools}`: a line each."""
TAGS = {
    "role_tag": "from",
    "content_tag": "value",
    "user_tag": HUMAN,
    "assistant_tag": MODEL,
    "observation_tag": OBSERVATION,
    "function_tag": CALL,
}
Message = Mapping[str, Any]
Turn = tuple[str, str]
"""Speaker and text."""


def make_dataset_info(name: str, *, has_tools: bool, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the content of LLaMA-Factory's `dataset_info.json`.

    Args:
        name: name of the data set.
        has_tools: whether rows have a column `tools`.
        tags: tags that differ from TAGS.
    """
    columns = {"messages": "conversations", "system": "system"}
    return {
        name: {
            "file_name": "train.jsonl",
            "formatting": "sharegpt",
            "columns": {**columns, "tools": "tools"} if has_tools else columns,
            "tags": {**TAGS, **(tags or {})},
        }
    }


def is_alternating(turns: Sequence[Mapping[str, str]]) -> bool:
    """Return whether turns alternate, begin with the user's and end with the model's; LLaMA-Factory drops others.

    `turns`: as rows have them, with a key `from`.
    """
    sides = [turn["from"] in (MODEL, CALL) for turn in turns]
    return bool(sides) and len(sides) % 2 == 0 and sides == [False, True] * (len(sides) // 2)


def make_turns(messages: Sequence[Message], *, hermes: bool) -> list[Turn]:
    """Return messages as turns, with neighbours of one side made one; messages of the system are the user's."""
    return merge_turns(_iterate_turns(messages, hermes=hermes))


def merge_turns(turns: Iterator[Turn]) -> list[Turn]:
    """Return the turns with neighbours of the same side made a single turn; results of tools stay as they are."""
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


def render_calls(calls: Sequence[Mapping[str, Any]], before: str) -> str:
    """Return the text of a turn of calls: a JSON object or a list, within `<tool_call>` where a text goes before it.

    `calls`: each with `name` and `arguments`.
    """
    listed = json.dumps(calls[0] if len(calls) == 1 else list(calls), ensure_ascii=False)
    return f"{before}<tool_call>{listed}</tool_call>" if before else listed


def render_thought(reasoning: str) -> str:
    """Return the text that a text begins with where the model thought before it."""
    return f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""


def _iterate_turns(messages: Sequence[Message], *, hermes: bool) -> Iterator[Turn]:
    for message in messages:
        text = message["content"]
        if message["role"] == "assistant":
            yield _make_hermes_answer(message) if hermes else _make_answer(message)
        elif message["role"] == "tool":
            yield (TOOL, f"<tool_response>\n{text}\n</tool_response>") if hermes else (OBSERVATION, text)
        else:
            yield HUMAN, text


def _make_answer(message: Message) -> Turn:
    before = render_thought(message.get("reasoning_content", "")) + message["content"]
    calls = [_read_call(call) for call in message.get("tool_calls") or ()]
    return (CALL, render_calls(calls, before)) if calls else (MODEL, before)


def _make_hermes_answer(message: Message) -> Turn:
    calls = [json.dumps(_read_call(call), ensure_ascii=False) for call in message.get("tool_calls") or ()]
    parts = [message["content"], *(f"<tool_call>\n{call}\n</tool_call>" for call in calls)]
    text = "\n".join(part for part in parts if part)
    return MODEL, render_thought(message.get("reasoning_content", "")) + text


def _read_call(call: Message) -> dict[str, Any]:
    """Return name and arguments, an object; arguments that are not JSON stay text."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        arguments = function["arguments"]
    return {"name": function["name"], "arguments": arguments}
