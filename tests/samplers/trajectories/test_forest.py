"""Prefix forests: continuations, edited histories, retries, other agents, and what is ambiguous."""

from __future__ import annotations

from samplers.trajectories.forest import build_forest
from samplers.trajectories.requests import ModelRequest
from tests.samplers.trajectories.making import BASH, SYSTEM, TASK, ask, ask_tokens, call, give


def test_a_conversation_that_only_grows_is_one_path() -> None:
    opening = [SYSTEM, TASK]
    grown = [*opening, call(0), give(0)]
    forest = build_forest([ask(0, opening, call(0)), ask(1, grown, call(1)), ask(2, [*grown, call(1), give(1)])])
    assert forest.parents == (None, 0, 1)
    assert forest.roots == (0, 0, 0)


def test_a_deleted_tool_result_starts_a_branch_where_the_history_still_agrees() -> None:
    opening = [SYSTEM, TASK]
    second = [*opening, call(0), give(0)]
    edited = [*opening, call(0), give(0, "[deleted]"), call(1), give(1)]
    forest = build_forest([ask(0, opening, call(0)), ask(1, second, call(1)), ask(2, edited, call(2))])
    assert forest.parents == (None, 0, 0)
    assert forest.roots == (0, 0, 0)


def test_the_same_first_question_does_not_glue_two_conversations() -> None:
    other = {"role": "assistant", "content": "Something else was answered here."}
    forest = build_forest([ask(0, [SYSTEM, TASK], call(0)), ask(1, [SYSTEM, TASK, other, give(0)], call(1))])
    assert forest.parents == (None, None)
    assert forest.roots == (0, 1)


def test_a_retry_is_the_sibling_of_the_request_it_repeats() -> None:
    grown = [SYSTEM, TASK, call(0), give(0)]
    requests = [ask(0, [SYSTEM, TASK]), ask(1, [SYSTEM, TASK], call(0)), ask(2, grown), ask(3, grown, call(1))]
    forest = build_forest(requests)
    assert forest.parents == (None, None, 1, 1)
    assert forest.roots == (0, 0, 0, 0)


def test_a_request_that_failed_is_never_a_parent() -> None:
    forest = build_forest([ask(0, [SYSTEM, TASK]), ask(1, [SYSTEM, TASK, TASK], call(0))])
    assert forest.roots == (0, 1)


def test_a_continuation_of_two_equal_answers_is_set_aside() -> None:
    grown = [SYSTEM, TASK, call(0), give(0)]
    requests = [
        ask(0, [SYSTEM, TASK], call(0)),
        ask(1, [SYSTEM, TASK], call(0)),
        ask(2, grown, call(1)),
        ask(3, [*grown, call(1), give(1)], call(2)),
    ]
    forest = build_forest(requests)
    assert forest.ambiguous == {2}
    assert forest.parents == (None, None, None, 2)
    assert forest.list_trees() == [[0, 1], [2, 3]]


def test_other_tools_make_another_prompt() -> None:
    grown = [SYSTEM, TASK, call(0), give(0)]
    requests = [ask(0, [SYSTEM, TASK], call(0)), ask(1, grown, call(1), tools=(BASH, BASH))]
    assert build_forest(requests).roots == (0, 1)


def test_marks_for_caches_and_blanks_of_arguments_move_without_consequences() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": TASK["content"], "cache_control": {"type": "x"}}]}
    compact = call(0)
    compact["tool_calls"][0]["function"]["arguments"] = '{"command":"ls"}'
    requests = [ask(0, [SYSTEM, marked], call(0)), ask(1, [SYSTEM, TASK, compact, give(0)], call(1))]
    assert build_forest(requests).parents == (None, 0)


def test_reasoning_that_is_not_sent_back_breaks_the_prefix() -> None:
    thought = call(0) | {"reasoning_content": "I look around first."}
    requests = [ask(0, [SYSTEM, TASK], thought), ask(1, [SYSTEM, TASK, call(0), give(0)], call(1))]
    assert build_forest(requests).roots == (0, 1)
    kept = [ask(0, [SYSTEM, TASK], thought), ask(1, [SYSTEM, TASK, thought, give(0)], call(1))]
    assert build_forest(kept).roots == (0, 0)


def test_token_ids_decide_where_every_answer_has_them() -> None:
    first = ask_tokens(0, [1, 2, 3], [4, 5])
    same = ask_tokens(1, [1, 2, 3, 4, 5, 6], [7])
    changed = ask_tokens(2, [1, 2, 3, 4, 9, 6], [7])
    forest = build_forest([first, same, changed])
    assert forest.roots == (0, 0, 2)
    failed = ModelRequest(exchange=3, messages=first.messages, error="timeout")
    assert build_forest([first, same, changed, failed]).roots == (0, 0, 2, 3)


def test_a_prompt_that_ends_with_an_answer_does_not_continue_it() -> None:
    assert build_forest([ask_tokens(0, [1, 2], [3]), ask_tokens(1, [1, 2, 3], [4])]).roots == (0, 1)


def test_the_longest_prefix_is_the_parent() -> None:
    requests = [ask_tokens(0, [1], [2]), ask_tokens(1, [1, 2, 3], [4]), ask_tokens(2, [1, 2, 3, 4, 5], [6])]
    assert build_forest(requests).parents == (None, 0, 1)
