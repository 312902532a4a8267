"""Mutations of final states, other orders, and what counts as the same end."""

from __future__ import annotations

import pytest

from guest.world.canonical import copy_json
from guest.world.schema_check import find_schema_error
from tests import drawn_arguments
from tests.worlds.programs import SOLUTION, STATE, TASK
from worlds.definitions import Call, State
from worlds.examples.loading import load_example_world
from worlds.gates import arguments
from worlds.gates.arguments import StateValues, draw_arguments
from worlds.gates.mutations import MutationKind, TaskWords, list_mutations
from worlds.gates.solutions import is_same_end, list_new_ids, list_orders
from worlds.program.analysis import analyse_program


def make_final() -> State:
    final: State = copy_json(STATE)
    final["items"]["I-1"].update(name="floor lamp", shelf_id="S-2")
    final["items"]["I-3"] = {"item_id": "I-3", "name": "clock", "shelf_id": "S-1", "count": 1}
    return final


def test_mutations_are_of_what_the_solution_changed() -> None:
    mutations = list_mutations(STATE, make_final(), TASK)
    assert [(str(mutation), mutation.is_named) for mutation in mutations] == [
        ("field items.I-1.name", True),
        ("reverted items.I-1.name", True),
        ("field items.I-1.shelf_id", True),
        ("reverted items.I-1.shelf_id", True),
        ("field items.I-3.item_id", False),
        ("field items.I-3.name", True),
        ("field items.I-3.shelf_id", True),
        ("field items.I-3.count", False),
        ("left-out items.I-3", True),
        ("added items.I-3", False),
    ]
    assert all(mutation.state != make_final() for mutation in mutations)
    left_out = next(mutation for mutation in mutations if mutation.kind is MutationKind.LEFT_OUT)
    assert "I-3" not in left_out.state["items"]
    added = next(mutation for mutation in mutations if mutation.kind is MutationKind.ADDED)
    assert added.state["items"]["I-3-other"]["item_id"] == "I-3-other"


@pytest.mark.parametrize(
    ("value", "is_named"),
    [
        ("M-2", True),
        ("M-22", False),
        (300, True),
        (30, False),
        ("suspended", True),
        ("active", False),
        (True, False),
        ("", False),
    ],
)
def test_values_that_a_task_names(value: object, is_named: bool) -> None:
    assert TaskWords("Suspend M-2, M-23 and M-222.5 until 300 are paid.").has_value(value) is is_named


def test_names_of_fields_that_a_task_names() -> None:
    words = TaskWords("Renew the loan; the due dates move.")
    assert [words.has_name(name) for name in ("due_date", "loan_id", "renewals", "fine_cents", "id")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_orders_respect_results_that_calls_take() -> None:
    calls = (
        Call(tool="a"),
        Call(tool="b", arguments={"x": [{"$result": [0, "id"]}]}),
        Call(tool="c"),
    )
    orders = list_orders(calls)
    assert (0, 2, 1) in orders
    assert (0, 1, 2) not in orders
    assert all(order.index(0) < order.index(1) for order in orders)
    assert (2, 1, 0) in list_orders(SOLUTION)


def test_ends_that_differ_in_made_ids_alone_are_the_same() -> None:
    first, second = make_final(), make_final()
    second["items"]["I-9"] = {**second["items"].pop("I-3"), "item_id": "I-9"}
    assert list_new_ids(STATE, second) == ["I-9"]
    assert is_same_end(STATE, first, second)
    second["items"]["I-9"]["name"] = "watch"
    assert not is_same_end(STATE, first, second)


def test_drawn_arguments_repeat_and_mostly_fit_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = analyse_program(load_example_world("parcel_depot").program).tools
    kept = draw_arguments(tools, 50, 1)
    monkeypatch.setattr(arguments, "run_generator", drawn_arguments.run_generator)
    drawn = draw_arguments(tools, 50, 1)
    assert drawn == kept
    assert drawn == draw_arguments(tools, 50, 1)
    assert drawn != draw_arguments(tools, 50, 2)
    values = StateValues(load_example_world("parcel_depot").states["monday"])
    for tool in tools:
        assert len(drawn[tool.name]) == 50
        fits = [find_schema_error(values.fill(call), tool.parameters) is None for call in drawn[tool.name]]
        assert sum(fits) >= 40
        assert not all(fits)


def test_known_values_come_from_fields_of_the_parameters_name() -> None:
    values = StateValues(STATE)
    assert values.fill(
        {"item_id": {"$known": [1, "string", True, 0]}, "item_ids": [{"$known": [0, "string", True, 0]}]}
    ) == {
        "item_id": "I-2",
        "item_ids": ["I-1"],
    }
    assert values.fill({"count": {"$known": [0, "number", True, 2]}}) == {"count": 42}
    assert isinstance(values.fill({"count": {"$known": [0, "string", True, 0]}})["count"], str)
    assert values.fill({"name": {"$known": [0, "number", True, 0]}}) == {"name": 0}
    assert StateValues({"day": "2025-02-28"}).fill({"day": {"$known": [5, "string", True, 1]}}) == {"day": "2025-03-01"}
    assert StateValues({}).fill({"name": {"$known": [5, "string", True, 0]}}) == {"name": "x"}
