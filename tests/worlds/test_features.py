"""Features of worlds: verbs, shapes of tools, forms of rules, sequences of calls."""

from __future__ import annotations

import pytest

from worlds.definitions import Call, WorldDefinition
from worlds.examples.loading import load_example_scenarios, load_example_world
from worlds.features import WorldFeatures, find_verb, unite_features
from worlds.program.guards import list_rule_kinds
from worlds.program.tree import parse_program

RULES = '''
class Store:
    def __init__(self, state):
        self.items: dict = state["items"]

    def change(self, name, amount):
        """Change an amount."""
        item = self.items.get(name)
        {rule}
        return {{"success": True, "message": "done"}}

    def _fail(self, error):
        return {{"success": False, "error": error}}

    def _find(self, name):
        return self.items.get(name)
'''
FAIL = "return self._fail('no')"


@pytest.mark.parametrize(
    ("rule", "kinds"),
    [
        (f"if name not in self.items: {FAIL}", {"value not in state"}),
        ("if name not in self.items: return {'success': False, 'error': 'no'}", {"value not in state"}),
        (f"if item is None or item['n'] < amount: {FAIL}", {"value is None", "field < value"}),
        (f"if not 1 <= amount <= LIMIT: {FAIL}", {"not number <= value", "not value <= limit"}),
        (f"if not name.strip() or '@' not in name: {FAIL}", {"not call", "text not in value"}),
        (f"if (found := self._find(name)) and item['kind'] in ('a', 'b'): {FAIL}", {"helper", "field in choices"}),
        (f"if len(name) > 3 + 4: {FAIL}", {"len > sum"}),
        (f"if amount > 0: item['n'] = amount\n        else: {FAIL}", {"value > number"}),
        ("if amount > 0: item['n'] = amount", set()),
        ("if amount > 0: return self._find(name)", set()),
    ],
)
def test_a_rule_is_the_form_of_a_condition_under_which_a_tool_fails(rule: str, kinds: set[str]) -> None:
    assert list_rule_kinds(parse_program(RULES.format(rule=rule)), "change") == kinds


def test_a_tool_has_a_verb_a_shape_and_the_attributes_that_it_uses() -> None:
    features = WorldFeatures(load_example_world("library_loans"))
    described = features.describe_tool("add_book")
    assert (described["tools"], described["verbs"]) == ({"add_book"}, {"add"})
    assert described["shapes"] == {"change(choice, integer?, string, string)"}
    assert "books" in described["attributes"]
    assert described["rules"] == {"not call", "not number <= value", "not value <= number"}
    assert features.describe_tool("unknownTool") == {"tools": {"unknownTool"}, "verbs": {"unknown"}}
    assert [find_verb(name) for name in ("lend_book", "LendBook", "HTTPGet", "__")] == ["lend", "lend", "http", "__"]


def test_a_world_has_the_features_of_its_tools_and_the_sequences_of_its_solutions() -> None:
    features = WorldFeatures(load_example_world("library_loans"))
    solutions = [scenario.solution or () for scenario in load_example_scenarios("library_loans")]
    world = features.describe_world(solutions)
    assert len(world["tools"]) == 16
    assert world["attributes"] >= {"today", "next_number", "members", "books", "loans", "holds"}
    scenario = features.describe_solution([Call(tool=name) for name in ("add_book", "check_out", "add_book")])
    assert scenario["tools"] == {"add_book", "check_out"}
    assert scenario["sequences"] == {"add check", "check add"}
    assert unite_features([world, scenario])["sequences"] == world["sequences"] | {"add check", "check add"}


def test_a_program_that_breaks_a_rule_has_no_features() -> None:
    for program in ("class Library: ...\n", "def"):
        features = WorldFeatures(WorldDefinition(name="x", program=program, documentation="", states={}))
        assert features.tool_names == []
        assert not any(features.describe_world([]).values())
