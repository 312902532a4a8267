"""A conversation is read from every form as it was, for imports and for seeds alike, or refused by name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from samplers.exports.messages import flatten_message
from samplers.imports.foreign import ForeignFormatError, ForeignRollout
from samplers.imports.reading import read_foreign_file
from simulators.conversation import DialogueTurn, FunctionCall, TurnRole
from simulators.seeds.formats import SeedFormatError, find_reader
from tests.samplers.forms.conversations import DONE, FORMER, REFUSED, USER, WRITERS, draw_conversation
from tests.samplers.forms.streams import Json

VARIATIONS = 100


def number_ids(messages: list[Json]) -> list[Json]:
    """Return messages with arguments as objects and ids by their order, as the earlier form has no ids."""
    ids: dict[str, str] = {}
    made = []
    for message in messages:
        shown = {key: value for key, value in message.items() if value not in ("", [], None) or key == "content"}
        if calls := shown.get("tool_calls"):
            shown["tool_calls"] = [number_call(call, ids) for call in calls]
        if shown.get("tool_call_id"):
            shown["tool_call_id"] = ids[shown["tool_call_id"]]
        made.append(shown)
    return made


def number_call(call: Json, ids: dict[str, str]) -> Json:
    arguments = call["function"]["arguments"]
    parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    number = ids.setdefault(call["id"], str(len(ids)))
    return {"id": number, "type": "function", "function": {"name": call["function"]["name"], "arguments": parsed}}


def make_turn(message: Json) -> DialogueTurn:
    """Return the turn that a seed has for a message."""
    calls = tuple(
        FunctionCall(name=call["function"]["name"], arguments=call["function"]["arguments"])
        for call in message.get("tool_calls", ())
    )
    roles = {"system": TurnRole.SYSTEM, "user": TurnRole.HUMAN, "tool": TurnRole.OBSERVATION}
    role = TurnRole.FUNCTION_CALL if calls else roles.get(message["role"], TurnRole.ASSISTANT)
    return DialogueTurn(role=role, text=message["content"], calls=calls, reasoning=message.get("reasoning_content", ""))


def read_import(row: Json, tmp_path: Path) -> ForeignRollout | ForeignFormatError:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"instance_id": "t", **row}))
    [(_, _, read)] = read_foreign_file(path)
    return read


@pytest.mark.parametrize("form", WRITERS)
def test_a_conversation_is_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    for seed in range(VARIATIONS):
        draw = random.Random(seed)
        messages = draw_conversation(draw)
        if form == FORMER and any(len(message.get("tool_calls", ())) > 1 for message in messages):
            continue
        row = WRITERS[form](messages, draw)
        read = read_import(row, tmp_path)
        assert isinstance(read, ForeignRollout), (seed, read)
        shown = [flatten_message(dict(message)) for message in read.conversations[0].messages]
        assert number_ids(shown) == number_ids(messages), seed
        (document,) = find_reader(row).read(row)
        assert list(document.conversation.turns) == [make_turn(message) for message in messages], seed


@pytest.mark.parametrize("form", REFUSED)
def test_other_forms_are_refused_by_name(form: str, tmp_path: Path) -> None:
    entry, words = REFUSED[form]
    row = {"messages": [USER, entry, DONE]}
    read = read_import(row, tmp_path)
    assert isinstance(read, ForeignFormatError), read
    assert words in str(read)
    with pytest.raises(SeedFormatError) as refused:
        list(find_reader(row).read(row))
    assert words in str(refused.value)


def test_tools_of_every_api_are_tools_of_chat_completions(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    plain = {"name": "bash", "description": "Run."}
    forms: list[Any] = [
        {"type": "function", "function": {**plain, "parameters": schema}},
        {**plain, "input_schema": schema},
        {"type": "function", **plain, "parameters": schema},
        {**plain, "parameters": schema},
    ]
    for tool in forms:
        for tools in ([tool], json.dumps([tool])):
            row = {"messages": [USER, DONE], "tools": tools}
            read = read_import(row, tmp_path)
            assert isinstance(read, ForeignRollout), read
            assert list(read.conversations[0].tools) == [forms[0]]
            (document,) = find_reader(row).read(row)
            assert list(document.conversation.tools) == [{**plain, "parameters": schema}]
    read = read_import({"messages": [USER, DONE], "tools": [{"type": "web_search_preview"}]}, tmp_path)
    assert "the tool of type 'web_search_preview' is not read" in str(read)


def test_context_and_images_keep_their_places(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    blocks = [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}, image]}]
    call = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
    messages = [
        USER,
        {"role": "assistant", "content": [call], "weight": 0},
        {"role": "user", "content": blocks},
        {**DONE, "weight": 1},
    ]
    read = read_import({"messages": messages}, tmp_path)
    assert isinstance(read, ForeignRollout), read
    conversation = read.conversations[0]
    assert [message["role"] for message in conversation.messages] == ["user", "assistant", "tool", "user", "assistant"]
    assert conversation.copied == {1}
    assert conversation.messages[3]["content"][0]["image_url"]["url"] == "data:image/png;base64,aGk="
    with pytest.raises(SeedFormatError, match="message 2: it has an image"):
        list(find_reader({"messages": messages}).read({"messages": messages}))
