"""The loop in simulated episodes: its scripted simulator, and the small loop as a whole."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mergemill_client.simulated import connect

from benchmarks.loop.workspace import Workspace
from benchmarks.simulated_loop.loop import TAUGHT, TRAINED, SimulatedLoop, list_tasks
from benchmarks.simulated_loop.plan import SMALL
from benchmarks.simulated_loop.shop import CASES, UNREADABLE, write_cases, write_shop
from tests.benchmarks.small_loop import read_facts, run_small_loop
from tests.simulators.making import make_seed, read_lines


def play_reference(url: str, number: int, *, order: str | None = None, ends: bool = True) -> dict[str, Any]:
    """Play the agent's turns of a case, with another order if one is named; return the last answer."""
    server = connect(url)
    opened = next(
        episode
        for episode in (server.reset(task=task) for task in list_tasks(url))
        if f"number {number}." in episode["observation"]
    )
    said: dict[str, Any] = {}
    turns = [turn for turn in make_seed(number)["conversations"] if turn["from"] in ("gpt", "function_call")]
    for at, turn in enumerate(turns if ends else turns[:-2]):
        text = turn["value"].rpartition("</think>\n")[2]
        if order is not None:
            text = text.replace(f"#W{4_000_000 + number}", order)
        calls = [json.loads(text)] if turn["from"] == "function_call" else None
        said = server.step(opened["episode"], "" if calls else text, turn=at, tool_calls=calls)
    return said if ends else server.evaluate(opened["episode"])


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> SimulatedLoop:
    """A loop whose pack and seeds are written."""
    space = Workspace(tmp_path_factory.mktemp("loop"))
    write_shop(space.out / "shop")
    write_cases(space.out / "seeds.json")
    return SimulatedLoop(SMALL, space)


def test_the_judge_pays_for_the_right_order_alone_and_is_unreadable_for_one_case(loop: SimulatedLoop) -> None:
    with loop.serve("judged") as url:
        right = play_reference(url, 13)
        assert (right["done"], right["termination_reason"], right["reward"]) == (True, "gpt_decision", 1.0)
        assert play_reference(url, 13, ends=False)["reward"] == 0.0
        assert play_reference(url, 28, order="#W4000082")["reward"] == 0.0
        lost = play_reference(url, UNREADABLE)
        assert (lost["reward"], bool(lost["infrastructure_error"])) == (None, True)


def test_conversations_to_train_on_are_about_no_case_of_the_episodes(loop: SimulatedLoop) -> None:
    facts = loop.simulate()
    rows = read_lines(loop.space.out / "rows" / "messages" / "train.jsonl")
    assert facts["rows"] == len(rows) > len(CASES)
    for row in rows:
        number = int(row["messages"][1]["content"].split("case number ")[1].split(".")[0])
        assert number not in CASES


# ------------------------------------------------------------------------------------------------ the small loop


def takes_the_small_loop(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that needs the small loop."""
    marked: Callable[..., None] = pytest.mark.slow(pytest.mark.timeout(3600)(test))
    return marked


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small loop that has run."""
    return run_small_loop("benchmarks.simulated_loop", tmp_path_factory.mktemp("small"))


@takes_the_small_loop
def test_an_episode_without_a_reward_is_in_no_share(small: Path) -> None:
    for stage in ("play-before", "play-after"):
        facts = read_facts(small, stage)
        assert facts["episodes"] == len(CASES) * SMALL.attempts
        assert facts["unscored"] == SMALL.attempts
        assert 0 <= facts["rewarded"] <= facts["episodes"] - facts["unscored"]
        assert facts["valid"] <= facts["calls"]
    assert read_facts(small, "play-before")["valid"] > 0, "what SFT taught makes no valid call"


@takes_the_small_loop
def test_a_step_of_grpo_has_the_rewards_of_the_server_and_a_gradient(small: Path) -> None:
    played = read_lines(small / "models" / TRAINED / "episodes.jsonl")
    assert len(played) == SMALL.rl_steps * SMALL.rl_attempts * len(CASES)
    for rollout in played:
        record = json.loads(
            (small / "episodes" / "reinforcement" / "episodes" / f"{rollout['episode']}.json").read_text()
        )
        assert record["reward"] == rollout["value"]
        assert record["environment"] == "simulated"
    unscored = {rollout["task"] for rollout in played if rollout["value"] is None}
    assert len(unscored) == 1
    facts = read_facts(small, "reinforcement")
    values = {(rollout["task"], rollout["value"]) for rollout in played}
    assert len(values) > len(CASES), "no group has two rewards: a step without a gradient"
    assert all(math.isfinite(norm) for norm in facts["gradient_norms"])
    assert facts["gradient_norms"][0] > 0
    assert facts["change"] > 0


@takes_the_small_loop
def test_the_weights_are_those_of_three_models(small: Path) -> None:
    weights = [small / "models" / name / "model.safetensors" for name in ("random", TAUGHT, TRAINED)]
    assert len({path.read_bytes() for path in weights}) == len(weights)
