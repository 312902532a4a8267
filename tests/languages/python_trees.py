"""Drafts and plans of small Python projects."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from backends.tree import CommitTree
from languages.draft import PlanDraft, PlanningContext
from languages.python import PYTHON
from languages.python.plan import render_plan
from taskdb.records import BuildPlan
from tests.languages.trees import build_tree

HERE = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
DAY = date(2024, 3, 17)
TEST = "def test_one():\n    assert True\n"


def build_plan(tmp_path: Path, files: dict[str, str], day: date = DAY, version: str = "") -> BuildPlan:
    return render_plan(build_draft(tmp_path, files, day, version))


def build_plan_at(tree: CommitTree, available: tuple[str, ...], day: date) -> BuildPlan:
    return render_plan(PYTHON.create_draft(tree, PlanningContext(list_available=lambda: available, day=day)))


def build_draft(tmp_path: Path, files: dict[str, str], day: date = DAY, version: str = "") -> PlanDraft:
    return PYTHON.create_draft(
        build_tree(tmp_path, files), PlanningContext(list_available=lambda: HERE, day=day, version=version)
    )


def list_requirements(plan: BuildPlan) -> set[str]:
    return {e.value for e in plan.evidence if e.choice == "dependency_steps"}


def list_fallbacks(first: PlanDraft) -> list[PlanDraft]:
    """Return the draft and the results of applying the fallbacks one after another, without repetitions."""
    fallbacks = [first]
    for fallback in PYTHON.fallbacks:
        if (changed := fallback(fallbacks[-1])) != fallbacks[-1]:
            fallbacks.append(changed)
    return fallbacks
