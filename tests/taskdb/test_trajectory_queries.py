"""Queries over trajectories: filters, ids and their beginnings, pass rates."""

from __future__ import annotations

import pytest

from core.errors import InputError
from taskdb.queries import trajectories as queries
from taskdb.queries.trajectories import TrajectoryFilters
from taskdb.records.rollouts import Trajectory, TrajectoryRole, TrajectorySelection
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage
from tests.taskdb.test_rollouts import make_rollout, make_trajectory


def fill(store: Store) -> list[Trajectory]:
    """Add two rollouts of one task and one of another, the first with a side trajectory; the first main is selected."""
    first, second = add_lineage(store, 1), add_lineage(store, 2)
    rollouts = [make_rollout(first), make_rollout(first, 2, 0.0, scaffold="codex"), make_rollout(second, value=None)]
    trajectories = [make_trajectory(rollouts[0], role=TrajectoryRole.SIDE), make_trajectory(rollouts[0], 1)]
    trajectories += [make_trajectory(rollout) for rollout in rollouts[1:]]
    store.add(*rollouts, *trajectories)
    for place, selected in ((1, True), (2, False)):
        reason = None if selected else "reward"
        parent = trajectories[place]
        store.add(
            TrajectorySelection(
                parent=parent.id, name=parent.name, selected=selected, reason=reason, value=None, rules="r", at="1"
            )
        )
    return trajectories


def test_trajectories_are_filtered_by_what_their_columns_have(db: str) -> None:
    with Store.open(db) as store:
        side, main, refused, unscored = fill(store)

        def find(**wanted: object) -> set[str]:
            filters = TrajectoryFilters(**wanted)  # type: ignore[arg-type]
            return {row["id"] for row in queries.list_trajectories(store, filters)}

        assert find() == {side.id, main.id, refused.id, unscored.id}
        assert find(role=TrajectoryRole.SIDE) == {side.id}
        assert find(selected=True) == {main.id}
        assert find(selected=False) == {side.id, refused.id, unscored.id}
        assert find(min_value=0.5) == {side.id, main.id}
        assert find(scaffold=("codex", "opencode")) == {refused.id}
        assert find(model="other") == set()
        task = queries.resolve_rollout(store, unscored.parent).parent
        assert find(tasks={task}) == {unscored.id}
        rows = queries.list_trajectories(store, TrajectoryFilters(), 2)
        assert [row["id"] for row in rows] == [refused.id, side.id]  # by task, scaffold, model, attempt and root
        assert rows[1]["selected"] is None
        assert rows[0]["selected"] is False


def test_a_trajectory_is_found_by_a_beginning_of_its_id_or_its_rollouts(db: str) -> None:
    with Store.open(db) as store:
        side, main, *_ = fill(store)
        assert queries.resolve_trajectory(store, main.id[:20]) == main
        assert queries.resolve_trajectory(store, main.parent) == main  # the main one, although it is not the first
        assert queries.list_trajectories_of(store, main.parent) == [side.id, main.id]
        assert queries.resolve_rollout(store, main.parent[:20]).id == main.parent
        for word in ("", "g", "0" * 64, "%", main.id + "0"):
            with pytest.raises(InputError, match="there is no"):
                queries.resolve_trajectory(store, word)


def test_a_beginning_of_several_ids_is_ambiguous(db: str) -> None:
    with Store.open(db) as store:
        rollout = make_rollout(add_lineage(store))
        many = [make_trajectory(rollout, root) for root in range(20)]  # sixteen digits for twenty ids
        store.add(rollout, *many)
        digits = [rollout.id[0] for rollout in many]
        word = next(digit for digit in digits if digits.count(digit) > 1)
        with pytest.raises(InputError, match="ambiguous"):
            queries.resolve_trajectory(store, word)


def test_pass_rates_are_listed_by_task_and_scaffold(db: str) -> None:
    with Store.open(db) as store:
        fill(store)
        rates = queries.list_pass_rates(store)
        assert [(rate.scaffold, rate.difficulty.n, rate.difficulty.c) for rate in rates] == [
            ("codex", 1, 0),
            ("react", 1, 1),
        ]
        assert [pass_rate.scaffold for pass_rate in queries.list_pass_rates(store, scaffold=["codex"])] == ["codex"]
        assert queries.list_pass_rates(store, model="other") == []
        assert queries.list_pass_rates(store, tasks=()) == []
        assert [row["attempt"] for row in queries.list_rollouts(store, rates[0].task)] == [2, 1]
