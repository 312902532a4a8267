"""The loop from merged changes to a gradient: its history, its expert, its tables, and the small loop as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.loop.expert import answer_as_expert
from benchmarks.loop.loop import DEMONSTRATED, MODELS, REINFORCED, Loop
from benchmarks.loop.plan import FULL, SMALL
from benchmarks.loop.report import SolvedShare, count_solved
from benchmarks.loop.repository import FAMILIES, NOUNS, VERBS, BugFix, plan_fixes
from benchmarks.loop.workspace import Workspace
from taskdb.records.rollouts import RolloutStatus
from tests.benchmarks.small_loop import load_rollouts, read_facts, run_small_loop
from tests.plain_pytest import WITHOUT_PLUGINS
from tests.samplers.scripted_model import ModelRequest

FIRST_STEP = f"{SMALL.rl_model}-0"
FIXES = plan_fixes(FULL.n_train, FULL.n_held_out)


def write_tree(folder: Path, fixes: list[BugFix]) -> None:
    """Write modules with their bugs, and the tests that the fixes add."""
    for fix in fixes:
        (folder / fix.path).parent.mkdir(exist_ok=True)
        (folder / fix.test_path).parent.mkdir(exist_ok=True)
        (folder / fix.path).write_text(fix.write_module(fix.family.old))
        (folder / fix.test_path).write_text(fix.write_tests(repaired=True))


def run_tests(folder: Path) -> str:
    """Return the last line of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = os.environ | WITHOUT_PLUGINS
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[-1]


def run_bash(command: str, folder: Path) -> str:
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True).stdout


def answer(fix: BugFix, *results: str) -> dict[str, Any]:
    """Return the arguments of the expert's next call."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": ""}, {"role": "user", "content": fix.message}]
    for result in results:
        messages += [{"role": "assistant", "content": ""}, {"role": "tool", "content": result}]
    request = ModelRequest(path="/v1/chat/completions", headers={}, body={"messages": messages}, raw=b"", at=0.0)
    arguments = answer_as_expert(request).calls[0].arguments
    assert not isinstance(arguments, str)
    return dict(arguments)


def test_every_bug_fails_its_test_until_the_expert_has_edited_the_module(tmp_path: Path) -> None:
    fixes = list({fix.family.complaint + fix.family.old: fix for fix in FIXES}.values())
    write_tree(tmp_path, fixes)
    (tmp_path / "conftest.py").write_text("")  # so that the package is found
    assert len(fixes) == len(FAMILIES)
    assert run_tests(tmp_path).startswith("6 failed, 6 passed")
    for fix in fixes:
        look = answer(fix)["command"]
        run_bash(answer(fix, run_bash(look, tmp_path))["command"], tmp_path)
        assert (tmp_path / fix.path).read_text() == fix.write_module(fix.family.new)
    assert run_tests(tmp_path).startswith("12 passed")


def test_held_out_modules_have_new_names_of_words_that_training_sees() -> None:
    train = [fix.module for fix in FIXES if not fix.is_held_out]
    held_out = [fix.module for fix in FIXES if fix.is_held_out]
    assert (len(train), len(held_out)) == (FULL.n_train, FULL.n_held_out)
    assert not set(train) & set(held_out)
    words = {word for module in train for word in module.split("_")}
    assert {word for module in held_out for word in module.split("_")} <= words


def test_demonstrations_show_every_word_and_every_kind_of_bug_twice() -> None:
    shown = [fix for fix in FIXES if not fix.is_held_out][: FULL.n_demonstrated]
    words = Counter(word for fix in shown for word in fix.module.split("_"))
    families = Counter(fix.family.old for fix in shown)
    assert set(words) == {*VERBS, *NOUNS}
    assert len(families) == len(FAMILIES)
    assert min([*words.values(), *families.values()]) >= 2


def test_held_out_changes_have_every_kind_of_bug_that_training_has() -> None:
    train, held_out = ({fix.family.old for fix in FIXES if fix.is_held_out == held} for held in (False, True))
    assert train == held_out == {family.old for family in FAMILIES}


def test_a_rollout_without_a_value_is_not_counted_as_unsolved() -> None:
    rollouts = [{"model": "m", "name": "a", "value": value} for value in (1.0, 0.0, None)]
    rollouts += [{"model": "m", "name": "other", "value": 1.0}, {"model": "other", "name": "a", "value": 1.0}]
    share = count_solved(rollouts, "m", ["a"])
    assert share == SolvedShare(solved=1, graded=2)
    assert share.render() == "0.50 (1 of 2; 0.09 to 0.91)"


def test_a_stage_that_was_interrupted_is_done_again_and_one_that_is_done_is_not(tmp_path: Path) -> None:
    space, runs = Workspace(tmp_path), []

    def stage() -> dict[str, Any]:
        runs.append(space.clear(tmp_path / "made"))
        (tmp_path / "made").mkdir()
        if len(runs) == 1:
            raise SystemExit("interrupted")
        return {"runs": len(runs)}

    with pytest.raises(SystemExit):
        space.run_stage("make", stage)
    assert [space.run_stage("make", stage).facts for _ in range(2)] == [{"runs": 2}] * 2


# ------------------------------------------------------------------------------------------------ the small loop


def takes_the_small_loop(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that needs the small loop: 5 minutes on two idle processors, more on busy ones."""
    marked: Callable[..., None] = pytest.mark.docker(pytest.mark.slow(pytest.mark.timeout(3600)(test)))
    return marked


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a small loop that has run."""
    return run_small_loop("benchmarks.loop", tmp_path_factory.mktemp("loop"))


@takes_the_small_loop
def test_every_reward_of_the_loop_is_of_a_real_grading(small: Path) -> None:
    rollouts = load_rollouts(small)
    n_tasks = SMALL.n_train + SMALL.n_held_out
    measured = len(MODELS) * SMALL.attempts * n_tasks
    assert len(rollouts) == SMALL.n_demonstrated + measured + SMALL.rl_steps * SMALL.rl_tasks * SMALL.rl_attempts
    for rollout in rollouts:
        assert rollout.status is not RolloutStatus.INFRASTRUCTURE
        assert rollout.score is not None
        assert rollout.score.evaluations
        assert rollout.value == rollout.score.value
        assert rollout.grade_seconds > 0


@takes_the_small_loop
def test_what_passed_on_tasks_to_train_on_and_nothing_else_is_trained_on(small: Path) -> None:
    held_out = set((small / "held-out.txt").read_text().split())
    passed = {
        rollout.name for rollout in load_rollouts(small) if rollout.model == "demonstrated" and rollout.value == 1
    } - held_out
    rows = [json.loads(line) for line in (small / "data" / "demonstrated" / "train.jsonl").read_text().splitlines()]
    assert {row["instance_id"] for row in rows} == passed
    assert passed, "the small model has solved nothing"


@takes_the_small_loop
def test_tokens_and_rewards_of_rl_are_those_of_the_rollouts(small: Path) -> None:
    rollouts = {
        (rollout.name, rollout.attempt): rollout for rollout in load_rollouts(small) if rollout.model == FIRST_STEP
    }
    rows = pq.read_table(next((small / "models" / REINFORCED / "rollouts" / FIRST_STEP).rglob("*.parquet"))).to_pylist()
    assert len(rows) == len(rollouts) == SMALL.rl_tasks * SMALL.rl_attempts
    for row in rows:
        rollout = rollouts[row["instance_id"], json.loads(row["metadata"])["attempt"]]
        assert row["value"] == rollout.value
        assert sum(row["loss_mask"]) == rollout.completion_tokens
        assert row["parents"] == list(range(-1, len(row["parents"]) - 1))


@takes_the_small_loop
def test_every_training_has_a_gradient_and_changes_the_weights(small: Path) -> None:
    for stage in ("sft-on-demonstrations", "sft-on-filtered"):
        assert read_facts(small, stage)["gradient_norms"][0] > 0
    weights = [small / "models" / name / "model.safetensors" for name in ("random", *MODELS)]
    assert len({path.read_bytes() for path in weights}) == len(weights)
    values = [(rollout.name, rollout.value) for rollout in load_rollouts(small) if rollout.model == FIRST_STEP]
    assert len(set(values)) > len({name for name, _ in values}), "no group has two rewards: a step without a gradient"
    facts = read_facts(small, "reinforcement")
    assert facts["gradient_norms"][0] > 0
    assert facts["change"] > 0


@takes_the_small_loop
def test_training_on_demonstrations_ends_while_the_model_is_still_unsure(small: Path) -> None:
    assert 5 <= read_facts(small, "sft-on-demonstrations")["steps"] < SMALL.demonstration_epochs
    log = json.loads((small / "models" / DEMONSTRATED / "train.json").read_text())
    losses = [entry["loss"] for entry in log if "loss" in entry]
    assert sum(losses[-5:]) / 5 < SMALL.demonstration_loss <= sum(losses[-6:-1]) / 5


@takes_the_small_loop
def test_a_loop_that_is_done_is_not_done_again(small: Path) -> None:
    before = len(load_rollouts(small))
    seconds = {name: report.seconds for name, report in Loop(plan=SMALL, space=Workspace(small)).run().items()}
    assert len(load_rollouts(small)) == before
    assert all(
        json.loads((small / "stages" / f"{name}.json").read_text())["seconds"] == seconds[name] for name in seconds
    )
