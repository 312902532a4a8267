"""Trajectories of recorded exchanges: values, roles, contents and numbers for the rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import UsageError
from samplers.gateway.exchanges import Exchange, ExchangeError
from samplers.trajectories.build import build_trajectories
from samplers.trajectories.content import read_content
from samplers.trajectories.credit import load_credit
from samplers.trajectories.reading import load_exchanges
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.rollouts import Rollout, Trajectory, TrajectoryRole
from taskdb.store import Store
from tests.samplers.trajectories.making import BASH, SYSTEM, TASK, call, give
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.test_rollouts import make_rollout

STOPPED = {"role": "assistant", "content": "Done."}


def exchange(number: int, messages: list[Any], answer: dict[str, Any] | None, **more: Any) -> Exchange:
    """Return an exchange in the dialect of chat completions."""
    request = {"model": "m", "messages": messages, "tools": [BASH]} | more.pop("body", {})
    choice = {"index": 0, "message": answer, "finish_reason": "tool_calls"}
    fields: dict[str, Any] = {
        "exchange": number,
        "key": f"k{number}",
        "rollout": "r",
        "dialect": "chat",
        "upstream_dialect": "chat",
        "streamed": False,
        "received": "{}",
        "request": json.dumps(request),
        "changes": (),
        "status": 200,
        "response": {"choices": [choice]} if answer is not None else None,
        "error": None,
        "started_at": "2026-01-01T00:00:00+00:00",
        "seconds": 1.5,
        "first_token_seconds": None,
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "cached_tokens": 0,
        "cost": 0.0,
        "prompt_token_ids": None,
        "completion_token_ids": None,
        "logprobs": None,
        "attempts": 1,
        "finish_reason": "tool_calls",
    }
    return Exchange(**fields | more)


def make_exchanges() -> list[Exchange]:
    """Return the exchanges of a rollout with a title, a failed request and an empty answer."""
    title = [{"role": "system", "content": "Write a title."}, TASK]
    opening = [SYSTEM, TASK]
    second = [*opening, call(0), give(0, "Error: no such file")]
    return [
        exchange(0, title, {"role": "assistant", "content": "Greetings"}, body={"tools": []}),
        exchange(1, opening, None, status=500, error=ExchangeError(kind="upstream", detail="down")),
        exchange(2, opening, {"role": "assistant", "content": None}),
        exchange(3, opening, call(0)),
        exchange(4, second, call(1)),
        exchange(5, [*second, call(1), give(1)], STOPPED, finish_reason="stop"),
    ]


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "artifacts")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    with Store.open(make_url(tmp_path)) as store:
        return add_lineage(store)


def build(task: Task, artifacts: Artifacts, **fields: Any) -> tuple[Rollout, list[Trajectory]]:
    submission = artifacts.put(b"diff --git a/greet.py b/greet.py\n--- a/greet.py\n+++ b/greet.py\n@@ -1 +1 @@\n+hi\n")
    rollout = make_rollout(task, submission=submission, **fields)
    return rollout, build_trajectories(rollout, make_exchanges(), artifacts, statement=str(TASK["content"]))


def test_a_rollout_is_split_into_its_conversations(task: Task, artifacts: Artifacts) -> None:
    rollout, made = build(task, artifacts)
    assert [trajectory.role for trajectory in made] == [TrajectoryRole.SIDE, TrajectoryRole.MAIN]
    assert [trajectory.root for trajectory in made] == [0, 1]
    assert [trajectory.n_requests for trajectory in made] == [
        1,
        4,
    ]  # the request that failed is one, the empty answer is none
    assert {trajectory.value for trajectory in made} == {rollout.value} == {1.0}
    assert made[1].completion_tokens == 12
    content = read_content(artifacts.get(made[1].content))
    assert [request.exchange for request in content.requests] == [1, 3, 4, 5]
    assert content.get_answer(0) is None
    assert content.requests[0].error == "upstream: down"
    assert content.answered == (1, 2, 3)
    assert content.leaves == (3,)
    assert [message["role"] for message in content.get_prompt(3)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


def test_every_rule_has_its_number(task: Task, artifacts: Artifacts) -> None:
    _, made = build(task, artifacts)
    assert made[1].metrics == {
        "leaks": 0.0,
        "truncated": 0.0,
        "empty_patch": 0.0,
        "test_only_patch": 0.0,
        "broken_instructions": 0.0,
        "format_errors": 0.0,
        "tool_errors": 0.5,
        "tool_error_run": 1.0,
        "repeats": 0.0,
        "repeat_run": 1.0,
        "loops": 0.0,
        "repetition": 0.0,
    }


def test_equal_exchanges_give_equal_trajectories(task: Task, artifacts: Artifacts) -> None:
    assert build(task, artifacts)[1] == build(task, artifacts)[1]


def test_trajectories_without_a_value_have_none(task: Task, artifacts: Artifacts) -> None:
    submission = artifacts.put(b"")
    rollout = make_rollout(task, value=None, status="infrastructure", submission=submission)
    made = build_trajectories(rollout, make_exchanges(), artifacts, credit=lambda *_: [1.0, 1.0])
    assert [trajectory.value for trajectory in made] == [None, None]


def test_a_function_of_the_user_divides_the_reward(
    task: Task, artifacts: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_credit.py").write_text(
        "def divide(rollout, parts):\n"
        "    return [rollout.value if role == 'main' else 0.25 for role, content in parts]\n"
    )
    monkeypatch.chdir(tmp_path)
    rollout = make_rollout(task)
    credit = load_credit("my_credit:divide")
    made = build_trajectories(rollout, make_exchanges(), artifacts, credit=credit)
    assert [trajectory.value for trajectory in made] == [0.25, 1.0]
    with pytest.raises(UsageError, match="2 trajectories"):
        build_trajectories(rollout, make_exchanges(), artifacts, credit=lambda *_: [1.0])
    with pytest.raises(UsageError, match="the credit function fails: KeyError"):
        build_trajectories(rollout, make_exchanges(), artifacts, credit=lambda *_: {}["share"])


@pytest.mark.parametrize("word", ["no_such_module:f", "json:no_such", "json", "json:__name__"])
def test_a_credit_function_that_is_not_there_is_an_error_of_usage(word: str) -> None:
    with pytest.raises(UsageError, match="--credit"):
        load_credit(word)


def test_token_ids_and_log_probs_of_the_upstream_are_kept(task: Task, artifacts: Artifacts) -> None:
    def tokens(prompt: tuple[int, ...], completion: tuple[int, ...]) -> dict[str, Any]:
        probs = tuple({"token": str(token), "logprob": -token / 10} for token in completion)
        return {"prompt_token_ids": prompt, "completion_token_ids": completion, "logprobs": probs}

    exchanges = [
        exchange(0, [SYSTEM, TASK], call(0), **tokens((1, 2), (3, 4))),
        exchange(1, [SYSTEM, TASK, call(0), give(0)], STOPPED, **tokens((1, 2, 3, 4, 5), (6,))),
    ]
    [made] = build_trajectories(make_rollout(task), exchanges, artifacts)
    content = read_content(artifacts.get(made.content))
    assert made.has_token_ids
    assert [request.new_prompt_token_ids for request in content.requests] == [(1, 2), (5,)]
    assert [request.logprobs for request in content.requests] == [(-0.3, -0.4), (-0.6,)]


def test_the_log_of_a_stored_rollout_is_read_in_the_order_of_its_last_run(task: Task, artifacts: Artifacts) -> None:
    ends = [json.dumps({"event": "end", **logged.model_dump(mode="json")}) for logged in make_exchanges()[:2]]
    lines = ['{"event":"run","run":0}', *ends, '{"event":"run","run":1}']
    lines += ['{"event":"replay","exchange":1,"run":1,"at":""}', '{"event":"begin","exchange":0,"run":1}']
    log = artifacts.put_text("".join(f"{line}\n" for line in lines) + '{"event": "torn')
    rollout = make_rollout(task, exchanges=log)
    assert [logged.exchange for logged in load_exchanges(rollout, artifacts)] == [1, 0]
    assert load_exchanges(make_rollout(task), artifacts) == []
