"""Conversations to train on: every answer once, as the answer to its own request, in every form."""

from __future__ import annotations

from typing import Any

import pytest

from samplers.exports.conversations import TrainedConversation, make_conversations, replace_system, strip_system
from samplers.exports.lengths import count_lengths
from samplers.exports.messages import flatten_message
from samplers.scaffolds.base import SYSTEM_FILE
from samplers.trajectories.content import TrajectoryContent, pack_content
from samplers.trajectories.forest import build_forest
from samplers.trajectories.requests import ModelRequest
from tests.samplers.trajectories.making import SYSTEM, TASK, ask, call, give
from training_data.sharegpt import Turn, make_turns

DONE = {"role": "assistant", "content": "Done."}
FIRST = [SYSTEM, TASK, call(0), give(0)]
SECOND = [*FIRST, call(1), give(1)]
EDITED = [*FIRST, call(1), give(1, "[deleted]"), call(2), give(2)]


def pack(requests: list[ModelRequest]) -> list[TrajectoryContent]:
    forest = build_forest(requests)
    made = []
    for tree in forest.list_trees():
        parents = [forest.parents[place] for place in tree]
        places = [None if parent is None else tree.index(parent) for parent in parents]
        made.append(pack_content([requests[place] for place in tree], places, has_token_ids=False))
    return made


def make_edited() -> list[ModelRequest]:
    """Return requests of which the last has its history edited."""
    return [
        ask(0, [SYSTEM, TASK], call(0)),
        ask(1, FIRST, call(1)),
        ask(2, SECOND, call(2)),
        ask(3, [*SECOND, call(2), give(2)], DONE),
        ask(4, EDITED, DONE),
    ]


def list_trained(conversations: list[TrainedConversation]) -> list[int]:
    return sorted(exchange for made in conversations for exchange in made.exchanges if exchange is not None)


@pytest.mark.parametrize("per_request", [True, False])
def test_every_answer_is_trained_once_behind_the_messages_of_its_own_request(per_request: bool) -> None:
    requests = make_edited()
    conversations = [
        made for content in pack(requests) for made in make_conversations(content, per_request=per_request)
    ]
    assert list_trained(conversations) == [0, 1, 2, 3, 4]
    for made in conversations:
        for at, exchange in enumerate(made.exchanges):
            if exchange is not None:
                assert list(made.messages[:at]) == [*requests[exchange].messages]
                assert made.messages[at] == requests[exchange].answer


def test_a_branch_has_the_answers_it_shares_as_context() -> None:
    [content] = pack(make_edited())
    longest, branch = make_conversations(content, per_request=False)
    assert [exchange for exchange in longest.exchanges if exchange is not None] == [0, 1, 2, 3]
    assert longest.is_whole
    assert [exchange for exchange in branch.exchanges if exchange is not None] == [4]
    assert not branch.is_whole


def test_an_answer_that_no_later_message_repeats_is_a_conversation_of_its_own() -> None:
    """With token ids, messages may differ where tokens agree."""
    other = [SYSTEM, TASK, {"role": "assistant", "content": "paraphrased"}, give(0)]
    content = pack_content([ask(0, [SYSTEM, TASK], call(0)), ask(1, other, DONE)], [None, 0], has_token_ids=False)
    assert [list_trained([conversation]) for conversation in make_conversations(content, per_request=False)] == [
        [1],
        [0],
    ]


def test_texts_of_the_system_are_dropped_or_replaced() -> None:
    [content] = pack([ask(0, [SYSTEM, TASK, SYSTEM], DONE)])
    [made] = make_conversations(content, per_request=False)
    assert [message["role"] for message in replace_system(made, None).messages] == ["user", "assistant"]
    replaced = replace_system(made, "Fix it.")
    assert replaced.messages[0] == {"role": "system", "content": "Fix it."}
    assert replaced.exchanges == [None, None, 0]


@pytest.mark.parametrize(
    ("content", "rest"),
    [
        ("You fix bugs.\n\nBe brief.\n- No tests.", "You fix bugs."),
        ("You fix bugs.\n\n  Be   brief. - No\n  tests.\n\nGo on.", "You fix bugs.\n\nGo on."),
        (f"You fix bugs.\nInstructions from: {SYSTEM_FILE}\nBe brief.\n- No tests.\n", "You fix bugs."),
        ([{"type": "text", "text": "You fix bugs."}, {"type": "text", "text": "Be brief. - No tests."}], None),
        ("Be brief. Always. - No tests.", "Be brief. Always. - No tests."),
    ],
)
def test_an_added_text_is_cut_out_of_the_texts_of_the_system_alone(content: Any, rest: str | None) -> None:
    quoted = {"role": "assistant", "content": "I was asked: Be brief. - No tests."}
    [packed] = pack([ask(0, [{"role": "system", "content": content}, TASK], quoted)])
    [made] = make_conversations(packed, per_request=False)
    stripped = strip_system(made, "Be brief.\n- No tests.")
    assert stripped.messages[0] == {"role": "system", "content": rest or content[:1]}
    assert (list(stripped.messages[1:]), stripped.exchanges) == (list(made.messages[1:]), made.exchanges)
    assert strip_system(made, "") == made
    [packed] = pack([ask(0, [{"role": "system", "content": "Be brief."}, TASK], DONE)])
    [alone] = make_conversations(packed, per_request=False)
    assert [message["role"] for message in strip_system(alone, "Be brief.").messages] == ["user", "assistant"]


def test_contents_and_arguments_of_a_row_are_strings() -> None:
    image = {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]}
    assert flatten_message(image) == {"role": "user", "content": "see\n[image_url]"}
    assert flatten_message(call(0))["tool_calls"][0]["function"]["arguments"] == '{"command": "ls"}'


def turn(messages: list[dict[str, Any]], *, hermes: bool = False) -> list[Turn]:
    flat = [flatten_message(message) for message in messages]
    return make_turns(flat, hermes=hermes)


def test_turns_alternate_although_calls_are_parallel_and_users_interrupt() -> None:
    parallel = call(0)
    parallel["tool_calls"] = [*call(0)["tool_calls"], *call(1, "pwd")["tool_calls"]]
    turns = turn([TASK, TASK, parallel, give(0, "a"), give(1, "b"), {"role": "user", "content": "hurry"}, DONE])
    assert [speaker for speaker, _ in turns] == ["human", "function_call", "observation", "gpt"]
    assert turns[1][1] == (
        '[{"name": "bash", "arguments": {"command": "ls"}}, {"name": "bash", "arguments": {"command": "pwd"}}]'
    )
    assert turns[2][1] == "a\n</tool_response>\n<tool_response>\nb\n\nhurry"


def test_text_and_reasoning_before_a_call_are_kept() -> None:
    spoken = call(0) | {"content": "I look.", "reasoning_content": "Where is it?"}
    structured, hermes = turn([TASK, spoken])[1], turn([TASK, spoken], hermes=True)[1]
    thought = "<think>\nWhere is it?\n</think>\n\nI look."
    call_text = '{"name": "bash", "arguments": {"command": "ls"}}'
    assert structured == ("function_call", f"{thought}<tool_call>{call_text}</tool_call>")
    assert hermes == ("gpt", f"{thought}\n<tool_call>\n{call_text}\n</tool_call>")


def test_results_are_in_tags_in_hermes_form() -> None:
    assert turn([TASK, call(0), give(0, "a"), DONE], hermes=True)[2] == (
        "tool",
        "<tool_response>\na\n</tool_response>",
    )


def test_lengths_are_counted_in_powers_of_two() -> None:
    bins = [(length.low, length.high, length.count) for length in count_lengths([0, 1, 5, 6, 9])]
    assert bins == [(0, 0, 1), (1, 1, 1), (2, 3, 0), (4, 7, 2), (8, 15, 1)]
    assert count_lengths([]) == []
