"""Requests and answers of one dialect in another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import GatewayFailure
from samplers.gateway.translation import to_chat_answer, to_chat_messages, translate_request

CHAT, RESPONSES, MESSAGES = Dialect.CHAT, Dialect.RESPONSES, Dialect.MESSAGES
PNG = "iVBORw0KGgo="


def translate(body: dict[str, Any], client: Dialect, upstream: Dialect) -> dict[str, Any]:
    return translate_request(body, client, upstream)[0]


def make_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_conversation_of_messages_becomes_chat() -> None:
    body = {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}}]},
            {"role": "system", "content": "A reminder."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Two files.", "signature": "sig"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
                    {"type": "tool_use", "id": "b", "name": "read", "input": {"path": "y"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "X"}]},
                    {"type": "tool_result", "tool_use_id": "b", "content": "no such file", "is_error": True},
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
        "tools": [{"name": "read", "description": "Read.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 100},
    }
    chat, changes, _ = translate_request(body, MESSAGES, CHAT)
    assert chat["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look"},
        {"role": "system", "content": "A reminder."},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Two files.",
            "thinking_blocks": [{"type": "thinking", "thinking": "Two files.", "signature": "sig"}],
            "tool_calls": [make_call("a", "read", '{"path": "x"}'), make_call("b", "read", '{"path": "y"}')],
        },
        {"role": "tool", "tool_call_id": "a", "content": "X"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no such file"},
        {"role": "user", "content": "Go on."},
    ]
    assert chat["tools"] == [
        {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": {"type": "object"}}}
    ]
    assert (chat["tool_choice"], chat["parallel_tool_calls"], chat["stop"]) == ("required", False, ["END"])
    assert changes == ["translated: messages -> chat", "without counterpart: thinking"]


def test_a_conversation_survives_the_way_from_messages_to_chat_and_back() -> None:
    body = {
        "model": "m",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    {"type": "text", "text": "What is it?"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                    {"type": "tool_use", "id": "a", "name": "zoom", "input": {"by": 2}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "Error: no", "is_error": True}],
            },
        ],
        "tools": [{"name": "zoom", "description": "Zoom.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "zoom"},
        "stop_sequences": ["END"],
        "temperature": 0.5,
    }
    assert translate(translate(body, MESSAGES, CHAT), CHAT, MESSAGES) == body


def test_messages_alternate_and_their_length_is_set() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
            {"role": "assistant", "content": None, "tool_calls": [make_call("1", "f", "{}"), make_call("2", "f", "")]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": "two"},
        ],
        "temperature": 1.7,
        "seed": 3,
    }
    made, changes, _ = translate_request(body, CHAT, MESSAGES)
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "user"]
    assert [block["tool_use_id"] for block in made["messages"][2]["content"]] == ["1", "2"]
    assert (made["max_tokens"], made["temperature"]) == (8192, 1.0)
    assert changes[-1] == "without counterpart: seed"


def test_items_of_responses_become_one_message_of_each_turn() -> None:
    body = {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox."}]},
            {"role": "user", "content": [{"type": "input_text", "text": "Go"}]},
            {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I do."}]},
            {"type": "function_call", "call_id": "a", "name": "shell", "arguments": '{"command": ["ls"]}'},
            {"type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": "*** Begin"},
            {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["pwd"]}},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "y"}]},
            {"type": "local_shell_call_output", "id": "c", "output": "z"},
        ],
        "tools": [
            {"type": "function", "name": "shell", "parameters": {"type": "object"}, "strict": False},
            {
                "type": "custom",
                "name": "apply_patch",
                "format": {"type": "grammar", "syntax": "lark", "definition": "s"},
            },
            {"type": "local_shell"},
        ],
        "tool_choice": "auto",
        "reasoning": {"effort": "high"},
        "store": False,
        "max_output_tokens": 9,
    }
    chat, changes, _ = translate_request(body, RESPONSES, CHAT)
    assert chat["messages"] == [
        {"role": "system", "content": "Be brief.\n\nSandbox."},
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": "I do.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                make_call("a", "shell", '{"command": ["ls"]}'),
                make_call("b", "apply_patch", '{"input": "*** Begin"}'),
                make_call("c", "local_shell", '{"command": ["pwd"]}'),
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x"},
        {"role": "tool", "tool_call_id": "b", "content": "y"},
        {"role": "tool", "tool_call_id": "c", "content": "z"},
    ]
    assert [tool["function"]["name"] for tool in chat["tools"]] == ["shell", "apply_patch", "local_shell"]
    assert "lark grammar" in chat["tools"][1]["function"]["description"]
    assert chat["max_tokens"] == 9
    assert changes[-1] == "without counterpart: reasoning"


def test_calls_of_custom_and_built_in_tools_become_their_items() -> None:
    tools = [{"type": "custom", "name": "apply_patch"}, {"type": "local_shell"}]
    tools += [{"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "find"}]}]  # type: ignore[list-item]
    _, _, translation = translate_request({"model": "m", "input": "x", "tools": tools}, RESPONSES, CHAT)
    calls = [
        make_call("a", "apply_patch", '{"input": "*** Begin"}'),
        make_call("b", "local_shell", '{"command": ["ls"]}'),
        make_call("c", "mcp__find", "{}"),
    ]
    answer = {"id": "1", "choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    output = translation.translate_answer(answer)["output"]
    assert [(item["type"], item["call_id"]) for item in output] == [
        ("custom_tool_call", "a"),
        ("local_shell_call", "b"),
        ("function_call", "c"),
    ]
    assert output[0]["input"] == "*** Begin"
    assert output[1]["action"] == {"type": "exec", "command": ["ls"]}
    assert (output[2]["name"], output[2]["namespace"]) == ("find", "mcp")
    again = {"model": "m", "input": output}
    assert translate(again, RESPONSES, CHAT)["messages"][0]["tool_calls"] == calls


def test_reasoning_comes_back_from_a_client_that_keeps_only_what_is_encrypted() -> None:
    _, _, translation = translate_request({"model": "m", "input": "x"}, RESPONSES, MESSAGES)
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    answer = {"content": [thinking, {"type": "text", "text": "Yes"}], "stop_reason": "end_turn"}
    output = translation.translate_answer(answer)["output"]
    output[0] |= {"content": None}
    made = translate({"model": "m", "input": [{"role": "user", "content": "x"}, *output]}, RESPONSES, MESSAGES)
    assert made["messages"][1]["content"] == [thinking, {"type": "text", "text": "Yes"}]


@pytest.mark.parametrize("state", [{"previous_response_id": "r"}, {"store": True}, {"background": True}])
def test_what_needs_a_server_that_stores_is_refused_with_a_reason(state: dict[str, Any]) -> None:
    with pytest.raises(GatewayFailure, match=next(iter(state))) as caught:
        translate({"model": "m", "input": "x", **state}, RESPONSES, CHAT)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("finish", "reason", "status"),
    [
        ("stop", "end_turn", "completed"),
        ("length", "max_tokens", "incomplete"),
        ("tool_calls", "tool_use", "completed"),
        ("content_filter", "refusal", "incomplete"),
    ],
)
def test_every_finish_reason_has_its_counterpart(finish: str, reason: str, status: str) -> None:
    answer = {"id": "1", "choices": [{"message": {"content": "x"}, "finish_reason": finish}]}
    _, _, messages = translate_request({"messages": []}, MESSAGES, CHAT)
    assert messages.translate_answer(answer)["stop_reason"] == reason
    _, _, responses = translate_request({"input": "x"}, RESPONSES, CHAT)
    assert responses.translate_answer(answer)["status"] == status
    _, _, chat = translate_request({"messages": []}, CHAT, MESSAGES)
    back = chat.translate_answer({"content": [], "stop_reason": reason})
    assert back["choices"][0]["finish_reason"] == finish


def test_the_same_conversation_is_the_same_in_every_dialect() -> None:
    """Marks for caches make no difference."""
    calls = [make_call("a", "read", '{"path": "x"}')]
    chat = {
        "messages": [
            {"role": "developer", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "Q", "cache_control": {}}]},
            {"role": "assistant", "content": None, "reasoning": "R", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "X"},
        ],
        "tools": [{"type": "function", "function": {"name": "read", "description": "D", "parameters": {}}}],
    }
    messages = {
        "system": "S",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Q", "cache_control": {"type": "ephemeral"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "R", "signature": ""},
                    {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "X"}]},
        ],
        "tools": [
            {"name": "read", "description": "D", "input_schema": {}},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
    }
    responses = {
        "instructions": "S",
        "input": [
            {"role": "user", "content": "Q"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "R"}]},
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": '{"path": "x"}'},
            {"type": "function_call_output", "call_id": "a", "output": "X"},
        ],
        "tools": [
            {"type": "function", "name": "read", "description": "D", "parameters": {"type": "object", "properties": {}}}
        ],
    }
    expected = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "", "reasoning_content": "R", "tool_calls": calls},
        {"role": "tool", "content": "X", "tool_call_id": "a"},
    ]
    for body, dialect in ((chat, "chat"), (messages, "messages"), (responses, "responses")):
        translated, tools = to_chat_messages(body, dialect)
        assert translated == expected, dialect
        assert [tool["function"]["name"] for tool in tools] == ["read"]


def test_the_same_answer_is_the_same_in_every_dialect() -> None:
    call = make_call("a", "read", '{"path": "x"}')
    chat = {
        "id": "1",
        "choices": [
            {
                "message": {"role": "assistant", "content": "T", "reasoning_content": "R", "tool_calls": [call]},
                "finish_reason": "tool_calls",
            }
        ],
    }
    _, _, to_messages = translate_request({"messages": []}, MESSAGES, CHAT)
    _, _, to_responses = translate_request({"input": "x"}, RESPONSES, CHAT)
    expected = {"role": "assistant", "content": "T", "reasoning_content": "R", "tool_calls": [call]}
    assert to_chat_answer(chat, "chat") == expected
    assert to_chat_answer(to_messages.translate_answer(chat), "messages") == expected
    assert to_chat_answer(to_responses.translate_answer(chat), "responses") == expected


def test_arguments_that_are_no_json_reach_the_agent_as_text() -> None:
    answer = {"id": "1", "choices": [{"message": {"tool_calls": [make_call("a", "f", '{"x": ')]}}]}
    _, _, messages = translate_request({"messages": []}, MESSAGES, CHAT)
    assert messages.translate_answer(answer)["content"][0]["input"] == {"_arguments": '{"x": '}
    _, _, responses = translate_request({"input": "x"}, RESPONSES, CHAT)
    assert responses.translate_answer(answer)["output"][0]["arguments"] == '{"x": '


def test_a_schema_for_the_answer_is_kept() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    body = {"messages": [], "output_config": {"format": {"type": "json_schema", "schema": schema}}}
    chat = translate(body, MESSAGES, CHAT)
    assert chat["response_format"]["json_schema"]["schema"] == schema
    assert translate(chat, CHAT, MESSAGES)["output_config"] == body["output_config"]
    text = {"format": {"type": "json_schema", "name": "t", "schema": schema, "strict": True}}
    made = translate({"input": "x", "text": text}, RESPONSES, CHAT)
    assert made["response_format"]["json_schema"] == {"name": "t", "schema": schema, "strict": True}


@pytest.mark.parametrize(
    ("body", "client", "sentence"),
    [
        ({"messages": [5]}, MESSAGES, "`messages.0` is not an object"),
        ({"messages": [{"role": "user"}]}, MESSAGES, "`messages.0.content` is missing"),
        ({"messages": [{"role": "tool", "content": "x"}]}, MESSAGES, "the role of `messages.0` is none of"),
        (
            {"messages": [{"role": "user", "content": [{"text": 5}]}]},
            MESSAGES,
            "`messages.0.content.0.text` is not text",
        ),
        ({}, RESPONSES, "`input` is missing"),
        ({"input": 5}, RESPONSES, "`input` is not text or a list"),
        ({"input": [{"role": "user", "content": [5]}]}, RESPONSES, "`input.0.content.0` is not an object"),
        ({"input": [], "tools": ["bash"]}, RESPONSES, "`tools.0` is not an object"),
        ({"messages": "x"}, CHAT, "`messages` is not a list"),
        ({"messages": [{"role": "ai", "content": "x"}]}, CHAT, "the role of `messages.0` is none of"),
        ({"messages": [], "functions": [{}]}, CHAT, "`functions` is not available: use `tools`"),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, CHAT, "use `tool_calls`"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{}]}]},
            CHAT,
            "`messages.0.tool_calls.0.function` is missing",
        ),
    ],
)
def test_a_request_of_another_shape_is_refused_in_a_sentence(
    body: dict[str, Any], client: Dialect, sentence: str
) -> None:
    with pytest.raises(GatewayFailure) as refused:
        translate(body, client, MESSAGES if client is CHAT else CHAT)
    assert sentence in refused.value.detail
    assert refused.value.status == 400


def test_content_without_counterpart_is_refused_by_name() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}
    with pytest.raises(GatewayFailure, match="input_audio"):
        translate(body, CHAT, MESSAGES)
    assert json.loads(json.dumps(body)) == body
