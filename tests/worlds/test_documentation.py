"""Documentation of worlds is split as it is written, and that of the examples too."""

from __future__ import annotations

import pytest

from worlds.documentation import render_documentation, split_documentation
from worlds.examples.loading import list_example_worlds, load_example_world


def test_what_is_rendered_is_split_again() -> None:
    text = render_documentation("Ward", "Shifts are planned.\n\nBy staff.", ["One\n shift.", "No more."])
    assert split_documentation(text) == ("Shifts are planned.\n\nBy staff.", "- One shift.\n- No more.")


@pytest.mark.parametrize("name", list_example_worlds())
def test_examples_have_an_introduction_and_rules(name: str) -> None:
    introduction, rules = split_documentation(load_example_world(name).documentation)
    assert introduction[0].isalpha()
    assert rules.startswith("- ")
    assert "Rules" not in introduction


def test_documentation_without_rules_is_both() -> None:
    assert split_documentation("# X\n\nA place. Rules apply.\n") == ("A place. Rules apply.", "A place. Rules apply.")
