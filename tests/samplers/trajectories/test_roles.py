"""Roles by structure: the main conversation, sub-agents, titles, summaries, and edited histories."""

from __future__ import annotations

from typing import Any

from samplers.trajectories.forest import build_forest
from samplers.trajectories.requests import ModelRequest
from samplers.trajectories.roles import assign_roles
from taskdb.records.rollouts import TrajectoryRole
from tests.samplers.trajectories.making import BASH, SYSTEM, TASK, ask, call, give

MAIN, SUB_AGENT, SIDE = TrajectoryRole.MAIN, TrajectoryRole.SUB_AGENT, TrajectoryRole.SIDE
STATEMENT = TASK["content"]
SEARCH = {"type": "function", "function": {"name": "search"}}
TITLE = {"role": "system", "content": "Write a title of at most five words."}


def list_roles(requests: list[ModelRequest], statement: str = STATEMENT) -> list[TrajectoryRole]:
    return assign_roles(requests, build_forest(requests).list_trees(), statement)


def make_main(first: int = 0, **more: Any) -> list[ModelRequest]:
    opening = [SYSTEM, TASK]
    return [
        ask(first, opening, call(first), **more),
        ask(first + 1, [*opening, call(first), give(first)], call(first + 1), **more),
    ]


def test_a_call_for_a_title_is_beside_the_work() -> None:
    title = ask(0, [TITLE, TASK], {"role": "assistant", "content": "Polite greetings"}, tools=())
    assert list_roles([title, *make_main(1)]) == [SIDE, MAIN]


def test_a_sub_agent_has_other_instructions_and_tools() -> None:
    helper = {"role": "system", "content": "You search files."}
    query = {"role": "user", "content": "Where are greetings?"}
    sub = [ask(2 + n, [helper, query, *([call(7), give(7)] * n)], call(7 + n), tools=(SEARCH,)) for n in range(5)]
    assert list_roles([*make_main(), *sub])[0] is MAIN
    assert set(list_roles([*make_main(), *sub])[1:]) == {SUB_AGENT}


def test_the_statement_decides_before_the_number_of_requests() -> None:
    helper = {"role": "system", "content": "You search files."}
    opening = [helper, {"role": "user", "content": "Where?"}]
    sub = [ask(2, opening, call(5)), ask(3, [*opening, call(5), give(5)], call(6))]
    sub.append(ask(4, [*opening, call(5), give(5), call(6), give(6)], call(7)))
    assert list_roles([*make_main(), *sub]) == [MAIN, SUB_AGENT]
    assert list_roles([*make_main(), *sub], statement="") == [SUB_AGENT, MAIN]


def test_a_summarised_history_after_the_end_of_the_main_one_is_main() -> None:
    summary = {"role": "user", "content": "Summary of the work so far: the greeting was found."}
    assert list_roles([*make_main(), ask(2, [SYSTEM, summary], call(9))]) == [MAIN, MAIN]


def test_an_agent_with_the_same_instructions_that_runs_meanwhile_is_a_sub_agent() -> None:
    first, last = make_main()
    other = ask(5, [SYSTEM, {"role": "user", "content": "Look at the tests only."}], call(9))
    assert list_roles([first, other, last]) == [MAIN, SUB_AGENT]


def test_a_history_edited_from_its_beginning_is_main_although_the_work_goes_on() -> None:
    first, last = make_main()
    edited = ask(5, [SYSTEM, TASK, {"role": "assistant", "content": "[cut]"}, give(0)], call(9))
    assert list_roles([first, edited, last]) == [MAIN, MAIN]


def test_a_scaffold_without_tools_has_a_main_conversation_too() -> None:
    title = ask(0, [TITLE, TASK], {"role": "assistant", "content": "Polite greetings"}, tools=())
    assert list_roles([title, *make_main(1, tools=())]) == [SIDE, MAIN]
    assert BASH["type"] == "function"
