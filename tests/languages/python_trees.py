"""Small Python projects and the plans they get."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from backends.tree import Tree
from languages import python
from languages.draft import Context, Draft
from languages.python.plan import render
from taskdb.records import BuildPlan
from tests.languages.trees import tree_of

HERE = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
DAY = date(2024, 3, 17)
TEST = "def test_one():\n    assert True\n"


def plan_of(tmp_path: Path, files: dict[str, str], day: date = DAY, version: str = "") -> BuildPlan:
    return render(draft_of(tmp_path, files, day, version))


def plan_at(tree: Tree, available: tuple[str, ...], day: date) -> BuildPlan:
    return render(python.draft(tree, Context(available=lambda: available, day=day)))


def draft_of(tmp_path: Path, files: dict[str, str], day: date = DAY, version: str = "") -> Draft:
    return python.draft(tree_of(tmp_path, files), Context(available=lambda: HERE, day=day, version=version))


def requirements(made: BuildPlan) -> set[str]:
    return {e.value for e in made.evidence if e.choice == "dependency_steps"}


def rungs(first: Draft) -> list[Draft]:
    """The draft and what the fallbacks make of it one after the other, each different from the one before."""
    found = [first]
    for fallback in python.FALLBACKS:
        if (changed := fallback(found[-1])) != found[-1]:
            found.append(changed)
    return found
