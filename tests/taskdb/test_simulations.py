"""Simulated conversations in the database: identity, filters, counts by rule, names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from taskdb.queries import readonly
from taskdb.queries import tasks as queries
from taskdb.queries.simulations import (
    ConversationFilters,
    compute_simulation_funnel,
    list_conversations,
    look_up_simulation,
    resolve_conversation,
)
from taskdb.queries.tasks import TaskFilters
from taskdb.queries.trajectories import TrajectoryFilters, list_trajectories
from taskdb.records.simulations import PREFILTER, SimulatedConversation
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.simulations import drop, make_conversation, reject_seed

STEPS = ("answer", "4 tools", "ids")


def test_a_rerun_adds_nothing_wherever_the_seed_was_read_from(db: str) -> None:
    first = make_conversation()
    again = make_conversation(trajectory="4" * 64, content="5" * 64)  # of a seed in another file
    with Store.open(db) as store:
        assert store.add(first, drop("aa", 2, "ids", "unseen-id")) != []
        assert store.add(again, drop("aa", 2, "ids", "unseen-id", detail="other")) == []
        assert store.get(SimulatedConversation, again.id) == first
    assert make_conversation(turns_sha256="6" * 64).id != first.id


def test_counts_of_the_steps_add_up_to_the_input(db: str) -> None:
    with Store.open(db) as store:
        store.add(*(make_conversation("aa", sample) for sample in (1, 2)), make_conversation("bb", 1))
        store.add(drop("aa", 3, "4 tools", "unknown-tool"), drop("bb", 2, "ids", "unseen-id"))
        store.add(drop("bb", 3, "answer", "too-long", answer=""), drop("cc", 1, "of-old", "odd"))
        store.add(reject_seed("dd"), reject_seed("ee", "seed-malformed"))
        rows, examples = compute_simulation_funnel(store, STEPS)
        other, _ = compute_simulation_funnel(store, STEPS, ["airline"])
        by_profile, _ = compute_simulation_funnel(store, STEPS, profiles=["simia"])
    assert [(row["step"], row["in"], row["out"], row["rejected"]) for row in rows] == [
        (PREFILTER, 5, 3, {"seed-incomplete": 1, "seed-malformed": 1}),
        ("answer", 7, 6, {"too-long": 1}),
        ("4 tools", 6, 5, {"unknown-tool": 1}),
        ("ids", 5, 4, {"unseen-id": 1}),
        ("of-old", 4, 3, {"odd": 1}),
    ]
    assert examples["4 tools", "unknown-tool"] == "aa-3"
    assert {row["in"] for row in (*other, *by_profile)} == {0}


def test_what_was_kept_by_any_run_is_not_rejected(db: str) -> None:
    with Store.open(db) as store:
        store.add(drop("aa", 1, "ids", "unseen-id"), reject_seed("aa"))
        store.add(make_conversation("aa", 1))
        store.add(reject_seed("bb"), drop("bb", 1, "ids", "unseen-id"))  # used by a run without a pre-filter
        store.add(drop("bb", 1, "4 tools", "unknown-tool"))  # of two rejections the newest counts
        rows, _ = compute_simulation_funnel(store, STEPS)
    assert [(row["in"], row["out"], row["rejected"]) for row in rows] == [
        (2, 2, {}),
        (2, 2, {}),
        (2, 1, {"unknown-tool": 1}),
        (1, 1, {}),
    ]


def test_the_newest_result_of_an_answer_counts(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        store.add(make_conversation())
        store.add(make_conversation(turns_sha256="6" * 64, n_turns=10))
        (row,) = list_conversations(store, ConversationFilters())
        assert row["n_turns"] == 10
        assert resolve_conversation(store, "aa-1").n_turns == 10


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["cc-1", "aa-1", "aa-2", "bb-1"]),  # by domain, seed and sample
        ({"domain": ("retail",)}, ["aa-1", "aa-2", "bb-1"]),
        ({"simulator": ("org/k", "org/x")}, ["aa-2"]),
        ({"profile": ("simia",)}, ["bb-1"]),
        ({"license": ("MIT",)}, ["cc-1", "aa-1", "aa-2"]),
        ({"scenario": ("longer",)}, ["cc-1"]),
        ({"with_failure": True}, ["aa-2"]),
        ({"with_failure": False, "per_seed": 1}, ["cc-1", "aa-1", "bb-1"]),
        ({"per_seed": 1}, ["cc-1", "aa-1", "bb-1"]),
        ({"min_turns": 13}, ["bb-1"]),
        ({"max_turns": 12, "domain": ("retail",)}, ["aa-1", "aa-2"]),
        ({"pack_version": "2"}, ["cc-1"]),
    ],
)
def test_filters_select_conversations(db: str, filters: dict[str, Any], names: list[str]) -> None:
    with Store.open(db) as store:
        store.add(make_conversation("aa", 1), make_conversation("aa", 2, simulator="org/k", failure="timeout"))
        store.add(make_conversation("bb", 1, profile="simia", license="unknown", n_turns=14))
        store.add(make_conversation("cc", 1, domain="airline", scenario="longer", pack_version="2"))
        rows = list_conversations(store, ConversationFilters(**filters))
    assert [row["name"] for row in rows] == names
    assert {row["environment"] for row in rows} == {"simulated"}


def test_a_seed_and_a_conversation_have_their_stories(db: str) -> None:
    with Store.open(db) as store:
        kept = make_conversation("aa", 1, trajectory="7" * 64)
        store.add(kept, drop("aa", 2, "ids", "unseen-id", detail="#1"), reject_seed("bb"), reject_seed("ab"))
        for word in ("aa-1", kept.id, kept.id[:9], "7777", kept.answer):
            story = look_up_simulation(store, word)
            assert story is not None
            assert (story["name"], [event["ok"] for event in story["events"]]) == ("aa-1", [True]), word
        dropped, of_seed, unused = (look_up_simulation(store, word) for word in ("aa-2", "aa", "bb"))
        assert look_up_simulation(store, "zz") is None
        with pytest.raises(InputError, match="is ambiguous"):
            look_up_simulation(store, "a")
    assert dropped is not None
    (event,) = dropped["events"]
    assert (event["step"], event["reason"], event["detail"]) == ("ids", "unseen-id", "#1")
    assert of_seed is not None
    assert [event["name"] for event in of_seed["events"]] == ["aa-1", "aa-2"]
    assert unused is not None
    assert unused["events"][0]["step"] == PREFILTER


def test_a_name_of_two_models_is_ambiguous(tmp_path: Path) -> None:
    other = make_conversation(simulator="org/k", answer="b")
    with Store.open(make_url(tmp_path)) as store:
        store.add(make_conversation(), other)
        with pytest.raises(InputError, match="aa-1 is ambiguous: "):
            resolve_conversation(store, "aa-1")
        assert resolve_conversation(store, other.id[:12]) == other


def test_simulated_conversations_are_in_no_list_of_tasks_or_trajectories(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store)
        store.add(make_conversation(), drop("aa", 2, "ids", "unseen-id"))
        assert [row["name"] for row in queries.list_tasks(store, TaskFilters())] == [task.name]
        assert list_trajectories(store, TrajectoryFilters()) == []
        assert queries.compute_funnel(store)[0]["in"] == 1
        assert list(readonly.run_query(store, "SELECT name FROM rejections")) == []
