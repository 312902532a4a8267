"""Rejection sampling of a set: which rule refuses what, alone and in order, then duplicates, caps and the mix."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from core.config import Settings
from samplers.selection.normalisation import normalise_submission
from samplers.selection.rules import RULES
from samplers.selection.selecting import (
    SelectionCandidate,
    SelectionLimits,
    SelectionOutcome,
    hash_rules,
    select_trajectories,
)
from samplers.trajectories.measures import MEASURES
from taskdb.records import Kind
from taskdb.records.rollouts import Trajectory, TrajectoryRole
from tests.samplers.selection.making import PATCH

NUMBERS = count()


def make_candidate(
    metrics: Mapping[str, float] | None = None,
    *,
    submission: bytes | None = None,
    kind: Kind = Kind.BUGFIX,
    task: str = "t1",
    **fields: Any,
) -> SelectionCandidate:
    """Return a main trajectory of a rollout of its own, with another patch than all others."""
    number = next(NUMBERS)
    given: dict[str, Any] = {
        "parent": f"{number:064x}",
        "name": task,
        "root": 0,
        "builder": 1,
        "role": TrajectoryRole.MAIN,
        "scaffold": "react",
        "model": "m",
        "attempt": number,
        "value": 1.0,
        "n_requests": 1,
        "n_branches": 1,
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "content": "c",
        "metrics": {rule.metric: 0.0 for rule in RULES} | dict(metrics or {}),
        "has_token_ids": False,
    }
    own = PATCH.replace(b"hello", b"hello%d" % number)
    trajectory = Trajectory(**given | fields)
    return SelectionCandidate(
        trajectory=trajectory, task=task, kind=kind, submission=own if submission is None else submission
    )


def run(*candidates: SelectionCandidate, settings: Settings | None = None, **limits: Any) -> SelectionOutcome:
    return select_trajectories(candidates, (settings or Settings()).selection, SelectionLimits(**limits))


def list_reasons(outcome: SelectionOutcome, *candidates: SelectionCandidate) -> list[str | None]:
    refusals = [outcome.refusals[candidate.trajectory.id] for candidate in candidates]
    return [refusal.rule if refusal else None for refusal in refusals]


def test_every_measure_has_a_rule_and_every_rule_a_measure() -> None:
    assert [rule.metric for rule in RULES] == list(MEASURES)


def test_a_lucky_pass_with_half_of_its_calls_failed_is_refused_although_its_reward_is_1() -> None:
    lucky = make_candidate({"tool_errors": 0.5, "tool_error_run": 2})
    outcome = run(lucky)
    refusal = outcome.refusals[lucky.trajectory.id]
    assert refusal is not None
    assert (refusal.rule, refusal.value) == ("tool_errors", 0.5)


@pytest.mark.parametrize(
    ("metric", "permitted", "refused", "rule"),
    [
        ("leaks", 0, 1, "leak"),
        ("truncated", 0, 1, "truncated"),
        ("empty_patch", 0, 1, "empty_patch"),
        ("test_only_patch", 0, 1, "test_only_patch"),
        ("broken_instructions", 0, 1, "instructions"),
        ("format_errors", 2, 3, "format_errors"),
        ("tool_errors", 0.3, 0.31, "tool_errors"),
        ("tool_error_run", 3, 4, "tool_errors"),
        ("repeats", 0.2, 0.21, "repeats"),
        ("repeat_run", 3, 4, "repeats"),
        ("loops", 2, 3, "loops"),
        ("repetition", 0.3, 0.31, "repetition"),
    ],
)
def test_every_rule_permits_its_limit_and_refuses_what_is_above(
    metric: str, permitted: float, refused: float, rule: str
) -> None:
    kind = Kind.INSTRUCTIONS if rule == "instructions" else Kind.BUGFIX
    below, above = make_candidate({metric: permitted}, kind=kind), make_candidate({metric: refused}, kind=kind)
    outcome = run(below, above)
    assert list_reasons(outcome, below, above) == [None, rule]
    settings = Settings(**{f"select_{rule.setting}": refused for rule in RULES if rule.metric == metric})
    assert list_reasons(run(above, settings=settings), above) == [None]


def test_the_reward_comes_first_and_no_reward_is_not_a_low_one() -> None:
    low, none = make_candidate({"loops": 9}, value=0.5), make_candidate(value=None)
    assert list_reasons(run(low, none), low, none) == ["reward", "unscored"]
    assert list_reasons(run(low, settings=Settings(select_min_value=0.5)), low) == ["loops"]


def test_a_patch_of_tests_alone_is_what_a_test_writing_task_wants() -> None:
    writing = make_candidate({"test_only_patch": 1}, kind=Kind.TEST_WRITING)
    assert list_reasons(run(writing), writing) == [None]


def test_counts_show_the_order_of_the_rules_and_what_each_alone_refuses() -> None:
    candidates = [
        make_candidate(),
        make_candidate({"loops": 5}),
        make_candidate({"loops": 5, "tool_errors": 0.9}),
        make_candidate(value=0.0),
    ]
    counts = {effect.rule: (effect.before, effect.after, effect.alone) for effect in run(*candidates).counts}
    assert counts["reward"] == (4, 3, 1)
    assert counts["tool_errors"] == (3, 2, 0)
    assert counts["loops"] == (2, 1, 1)
    assert counts["mix"] == (1, 1, 0)


def test_equal_patches_of_a_task_and_scaffold_are_kept_once() -> None:
    moved = PATCH.replace(b"@@ -1,2 +1,2 @@", b"@@ -7,2 +9,2 @@ class A:").replace(b"2222222", b"3333333")
    first, again = make_candidate(submission=PATCH), make_candidate(submission=moved)
    elsewhere = make_candidate(submission=PATCH, task="t2")
    other = make_candidate(submission=PATCH, scaffold="codex")
    candidates = (first, again, elsewhere, other)
    assert list_reasons(run(again, first, elsewhere, other), *candidates) == [None, "duplicate", None, None]


def test_patches_that_differ_in_a_line_are_not_equal() -> None:
    assert normalise_submission(PATCH) != normalise_submission(PATCH.replace(b"hello", b"howdy"))
    assert normalise_submission(PATCH) != normalise_submission(PATCH.replace(b"def greet", b"def other"))
    assert normalise_submission(b'{"findings":  []}') == normalise_submission(b'{"findings": []}\n')


def test_a_cap_takes_the_scaffolds_in_turn() -> None:
    candidates = [make_candidate() for _ in range(3)] + [make_candidate(scaffold="codex")]
    reasons = list_reasons(run(*candidates, per_task=2), *candidates)
    assert reasons == [None, "per_task", "per_task", None]


def test_a_mix_keeps_the_largest_set_with_its_shares() -> None:
    candidates = [make_candidate() for _ in range(6)] + [make_candidate(scaffold="codex") for _ in range(2)]
    candidates.append(make_candidate(scaffold="opencode"))
    outcome = run(*candidates, mix={"react": 0.5, "codex": 0.5})
    kept = [
        candidate.trajectory.scaffold for candidate in candidates if outcome.refusals[candidate.trajectory.id] is None
    ]
    assert sorted(kept) == ["codex", "codex", "react", "react"]
    outcome = run(*candidates, mix={"react": 3, "codex": 1})
    kept = [
        candidate.trajectory.scaffold for candidate in candidates if outcome.refusals[candidate.trajectory.id] is None
    ]
    assert sorted(kept) == ["codex", "codex"] + ["react"] * 6


def test_sub_agents_follow_their_rollout_and_pass_rules_of_their_own() -> None:
    good, bad = make_candidate(), make_candidate(value=0.0)

    def add_sub(of: SelectionCandidate, **metrics: float) -> SelectionCandidate:
        parent = of.trajectory.parent
        return make_candidate(metrics, parent=parent, root=len(metrics) + 1, role=TrajectoryRole.SUB_AGENT)

    fine, looping, orphan = add_sub(good), add_sub(good, loops=7), add_sub(bad)
    outcome = run(good, bad, fine, looping, orphan)
    assert list_reasons(outcome, fine, looping, orphan) == [None, "loops", "rollout"]
    assert outcome.counts[0].before == 2  # main trajectories alone are counted


def test_a_rubric_is_checked_last_and_only_where_nothing_else_refuses() -> None:
    good, bad, looping = make_candidate(), make_candidate(), make_candidate({"loops": 9})
    asked = []

    def check(candidate: SelectionCandidate) -> float:
        asked.append(candidate)
        return 0.5 if candidate is bad else 0.0

    outcome = select_trajectories([good, bad, looping], Settings().selection, SelectionLimits(), check)
    assert list_reasons(outcome, good, bad, looping) == [None, "rubric", "loops"]
    assert asked == [good, bad]


def test_other_limits_make_another_hash_of_the_rules() -> None:
    hashes = {
        hash_rules(Settings().selection, SelectionLimits()),
        hash_rules(Settings(select_loops=5).selection, SelectionLimits()),
        hash_rules(Settings().selection, SelectionLimits(per_task=1)),
        hash_rules(Settings().selection, SelectionLimits(mix={"react": 1})),
    }
    assert len(hashes) == 4
    assert "cc5cc19ada2d6279edbf3423991505ee581b3538c5792179ac295be64e3659cb" in hashes  # as stored by earlier versions
    assert hash_rules(Settings().selection, SelectionLimits()) in hashes
