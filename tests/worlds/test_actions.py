"""Actions: every form that models write, and what cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from worlds.actions import MAX_TEXT, ChatAction, StopAction, ToolAction, UnreadableAction, read_action

CALL = {"name": "get_item", "arguments": {"item_id": "I-1"}}
TEXT = json.dumps(CALL)
OTHER = json.dumps({"name": "add_item", "arguments": {}})
TOOLS = ("get_item", "add_item")
WANTED = ToolAction("get_item", {"item_id": "I-1"})


def api_message(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


@pytest.mark.parametrize(
    "given",
    [
        {"tool": "get_item", "arguments": {"item_id": "I-1"}},
        f"<tool_call>\n{TEXT}\n</tool_call>",
        f"<think>Shall I call {TEXT}?</think>\nI look.\n<tool_call>{TEXT}</tool_call>",
        f"<think><tool_call>{OTHER}</tool_call></think><tool_call>{TEXT}</tool_call>",
        f"I look.\n```json\n{TEXT}\n```",
        f"```tool\n{TEXT}\n```",
        TEXT,
        f"\n  {json.dumps(CALL, indent=2)}\n",
        '{"tool": "get_item", "arguments": {"item_id": "I-1"}}',
        {"text": TEXT},
        {"content": f"<tool_call>{TEXT}</tool_call>", "role": "assistant", "tool_calls": []},
        api_message("get_item", '{"item_id": "I-1"}'),
    ],
)
@pytest.mark.parametrize("is_conversation", [False, True])
def test_a_call_is_read_in_any_form(given: object, is_conversation: bool) -> None:
    assert read_action(given, TOOLS, is_conversation=is_conversation) == WANTED


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "an action is one tool call"),
        (7, "an action is one tool call"),
        ({}, "an action is one tool call"),
        ({"tool": "get_item"}, "an action is one tool call"),
        ({"tool": "get_item", "arguments": "{}"}, "an action is one tool call"),
        ({"stop": 1}, "an action is one tool call"),
        ("", "an action is one tool call"),
        (f"<tool_call>{TEXT}</tool_call><tool_call>{TEXT}</tool_call>", "one tool call, not 2"),
        ('<tool_call>["get_item"]</tool_call>', "the tool call cannot be read"),
        ('<tool_call>{"name": "get_item", "arguments": [1]}</tool_call>', "the tool call cannot be read"),
        ('{"success": true}', "the tool call cannot be read"),
        (api_message("get_item", "{"), "the arguments of get_item are no JSON object"),
        (api_message("get_item", "[]"), "the arguments of get_item are no JSON object"),
        ({"tool_calls": [{}]}, "an action is one tool call"),
        ({"tool_calls": [{}, {}]}, "one tool call, not 2"),
        ("x" * (MAX_TEXT + 1), "more than 200000 characters"),
        (f"<think>I could call <tool_call>{TEXT}</tool_call>", "an action is one tool call"),
    ],
)
@pytest.mark.parametrize("is_conversation", [False, True])
def test_what_cannot_be_read_has_a_reason(given: object, problem: str, is_conversation: bool) -> None:
    action = read_action(given, TOOLS, is_conversation=is_conversation)
    assert isinstance(action, UnreadableAction), action
    assert problem in action.problem


@pytest.mark.parametrize("given", [{"stop": True}, "Task Completed", "<think>Done.</think>\n\nTask Completed."])
def test_the_end_without_a_user(given: object) -> None:
    assert read_action(given, TOOLS, is_conversation=False) == StopAction()


@pytest.mark.parametrize("given", ["<think>Task Completed</think>", "<think>Task Completed", "Is it done?"])
def test_a_thought_of_the_end_is_not_the_end(given: str) -> None:
    assert isinstance(read_action(given, TOOLS, is_conversation=False), UnreadableAction)


@pytest.mark.parametrize(
    "given",
    [
        "Which shelf?",
        "<think>I ask.</think> Which shelf?",
        {"tool": "chat_with_user", "arguments": {"message": "Which shelf?"}},
        '<tool_call>{"name": "chat_with_user", "arguments": {"message": "Which shelf?"}}</tool_call>',
        {"content": "Which shelf?"},
    ],
)
def test_words_for_the_user(given: object) -> None:
    assert read_action(given, TOOLS, is_conversation=True) == ChatAction("Which shelf?")


def test_a_phrase_ends_no_conversation() -> None:
    assert read_action("Task Completed", TOOLS, is_conversation=True) == ChatAction("Task Completed")
    assert read_action({"stop": True}, TOOLS, is_conversation=True) == StopAction()


@pytest.mark.parametrize("arguments", [{}, {"message": ""}, {"message": 5}, {"message": "x", "to": "y"}])
def test_wrong_words_for_the_user(arguments: dict[str, object]) -> None:
    given = {"tool": "chat_with_user", "arguments": arguments}
    assert isinstance(read_action(given, TOOLS, is_conversation=True), UnreadableAction)
    assert read_action(given, TOOLS, is_conversation=False) == ToolAction("chat_with_user", arguments)
