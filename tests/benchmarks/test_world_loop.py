"""The loop in worlds: its scenarios, its expert, and the small loop as a whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.world_loop.expert import SolutionPlayer
from benchmarks.world_loop.loop import EXPERT, MODELS, STEP, TAUGHT, TRAINED
from benchmarks.world_loop.plan import FULL, SMALL
from benchmarks.world_loop.scenarios import (
    DEMONSTRATED,
    FAMILIES,
    MEASURED,
    PURPOSES,
    draw_scenarios,
    write_worlds,
)
from taskdb.records.rollouts import RolloutStatus
from tests.benchmarks.small_loop import load_rollouts, run_small_loop
from tests.samplers.scripted_model import ModelRequest
from tests.samplers.worlds.local_server import needs_root, open_local_server
from worlds.examples.loading import read_scenarios, read_world
from worlds.gates.scenario_gates import assess_scenario
from worlds.server.service import WorldServer


@pytest.fixture(scope="module")
def server() -> Iterator[WorldServer]:
    with open_local_server() as server:
        yield server


@needs_root
def test_scenarios_of_every_family_pass_all_gates(server: WorldServer, tmp_path: Path) -> None:
    drawn = [scenario for some in draw_scenarios(dict.fromkeys(PURPOSES, 2)).values() for scenario in some]
    assert len(drawn) == 6 * len(FAMILIES)
    known = {}
    for folder in write_worlds(tmp_path, drawn):
        world = server.load(read_world(folder))
        for scenario in read_scenarios(folder):
            report = assess_scenario(scenario, world, server)
            known[scenario.name] = report.reason and (report.reason.value, report.results[-1].detail)
    assert known == {scenario.full_name: None for scenario in drawn}


def test_no_task_is_there_for_two_purposes() -> None:
    for plan in (FULL, SMALL):
        drawn = draw_scenarios(plan.scenarios, plan.families)
        for kind in plan.families:
            numbers = [sum(scenario.name.startswith(f"{kind}_") for scenario in drawn[purpose]) for purpose in PURPOSES]
            assert numbers == [plan.scenarios[purpose] for purpose in PURPOSES]
        texts = [scenario.task.text for purpose in PURPOSES for scenario in drawn[purpose]]
        assert len(set(texts)) == len(texts)


def test_the_expert_looks_up_what_is_owed() -> None:
    scenario = next(
        scenario for scenario in draw_scenarios(FULL.scenarios)[DEMONSTRATED] if scenario.name.startswith("settle_")
    )
    member = next(key for key in scenario.state["members"] if key in scenario.task.text)
    first, second = scenario.task.text.split(". ")
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"{first}."}]

    def act() -> Any:
        request = ModelRequest(path="", headers={}, body={"messages": messages}, raw=b"", at=0.0)
        return SolutionPlayer([scenario])(request)

    assert (act().text, act().calls) == ("Go on.", ())
    messages.append({"role": "user", "content": second})
    assert (act().calls[0].name, act().calls[0].arguments) == ("get_member", {"member_id": member})
    owed = {"success": True, "data": {"fine_cents": 15}}
    messages.append({"role": "tool", "content": json.dumps(owed)})
    assert act().calls[0].arguments == {"member_id": member, "cents": 15}
    messages.append({"role": "tool", "content": json.dumps({"success": True})})
    assert (act().text, act().calls) == ("That is done.", ())


# ------------------------------------------------------------------------------------------------ the small loop


def takes_the_small_loop(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that needs the small loop."""
    marked: Callable[..., None] = pytest.mark.docker(pytest.mark.slow(pytest.mark.timeout(3600)(test)))
    return marked


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small loop that has run."""
    return run_small_loop("benchmarks.world_loop", tmp_path_factory.mktemp("loop"))


@takes_the_small_loop
def test_every_reward_is_that_of_the_checks(small: Path) -> None:
    rollouts = load_rollouts(small)
    drawn = draw_scenarios(SMALL.scenarios, SMALL.families)
    n_taught, n_reinforced, n_measured = (len(drawn[purpose]) for purpose in PURPOSES)
    n_sampled = len(MODELS) * SMALL.attempts * (n_reinforced + n_measured)
    assert len(rollouts) == n_taught + n_sampled + SMALL.rl_steps * SMALL.rl_attempts * n_reinforced
    for rollout in rollouts:
        assert rollout.environment == "synthetic"
        assert rollout.status is not RolloutStatus.INFRASTRUCTURE
        assert rollout.score is not None
        assert rollout.value == rollout.score.value
    shown = {rollout.name: rollout.value for rollout in rollouts if rollout.model == EXPERT}
    assert shown == {scenario.full_name: 1.0 for scenario in drawn[DEMONSTRATED]}
    measured = {scenario.full_name for scenario in drawn[MEASURED]}
    assert measured & {rollout.name for rollout in rollouts if rollout.model in MODELS} == measured
    assert not measured & {rollout.name for rollout in rollouts if rollout.model not in MODELS}, (
        "nothing is learned in these"
    )


@takes_the_small_loop
def test_tokens_and_rewards_of_rl_are_those_of_the_rollouts(small: Path) -> None:
    rollouts = {
        (rollout.name, rollout.attempt): rollout for rollout in load_rollouts(small) if rollout.model == f"{STEP}-0"
    }
    files = (small / "models" / TRAINED / "rollouts" / f"{STEP}-0").rglob("*.parquet")
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    tokens: Counter[tuple[str, int]] = Counter()
    for row in rows:
        key = (row["instance_id"], json.loads(row["metadata"])["attempt"])
        assert row["value"] == rollouts[key].value
        tokens[key] += sum(row["loss_mask"])
    assert tokens == {key: rollout.completion_tokens for key, rollout in rollouts.items()}


@takes_the_small_loop
def test_every_training_changes_the_weights(small: Path) -> None:
    weights = [small / "models" / name / "model.safetensors" for name in ("random", TAUGHT, TRAINED)]
    assert len({path.read_bytes() for path in weights}) == len(weights)
    facts = json.loads((small / "stages" / "reinforcement.json").read_text())["facts"]
    assert facts["gradient_norms"][0] > 0
