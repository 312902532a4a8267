"""Golden tests: tools and usage graphs derived from the example worlds equal those written by hand."""

from __future__ import annotations

import json

import pytest

from worlds.examples.loading import EXAMPLES_FOLDER, list_example_worlds, load_example_world
from worlds.program.analysis import ToolKind, analyse_program

WORLDS = list_example_worlds()


def test_three_worlds_ship_as_examples() -> None:
    assert WORLDS == ["clinic_rota", "library_loans", "parcel_depot"]


@pytest.mark.parametrize("name", WORLDS)
def test_the_derived_tools_equal_the_hand_written_ones(name: str) -> None:
    derived = [tool.to_json() for tool in analyse_program(load_example_world(name).program).tools]
    assert derived == json.loads((EXAMPLES_FOLDER / name / "tools.json").read_text())


@pytest.mark.parametrize("name", WORLDS)
def test_the_derived_usage_graph_equals_the_hand_written_one(name: str) -> None:
    derived = analyse_program(load_example_world(name).program).usage.to_json()
    assert derived == json.loads((EXAMPLES_FOLDER / name / "usage.json").read_text())


@pytest.mark.parametrize("name", WORLDS)
def test_an_example_breaks_no_rule_and_declares_its_foreign_keys(name: str) -> None:
    analysis = analyse_program(load_example_world(name).program)
    assert not analysis.violations
    assert len(analysis.foreign_keys) >= 3


def test_queries_and_changes_are_told_apart_by_what_they_return() -> None:
    analysis = analyse_program(load_example_world("parcel_depot").program)
    assert analysis.list_tools(ToolKind.QUERY) == [
        "get_parcel",
        "find_parcels",
        "list_lockers",
        "get_courier",
        "find_couriers",
    ]
