"""Each skill is tested on the recorded log of a broken build, and on the build itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.tree import CommitTree
from builders.acceptance import BuildRejection, Reason
from builders.build import build
from builders.repair.edit_application import apply_edits
from builders.repair.edits import dump_edit, format_skill_origin
from builders.repair.observation import build_observation
from builders.repair.policy import Observation, RepairUsage
from builders.repair.skill_files import BUILTIN_SKILLS, load_skills
from builders.repair.skills import find_matches
from languages.draft import PlanningContext
from languages.registry import get_language
from taskdb.records import Environment
from tests.builders.skills.examples import (
    SkillExample,
    combine_examples,
    create_candidate,
    create_case,
    group_examples,
    load_examples,
)

SKILLS = {skill.name: skill for skill in load_skills(BUILTIN_SKILLS)}
EXAMPLES = load_examples()
SKILLS_WITHOUT_EDITS = {name for name, skill in SKILLS.items() if not skill.header.do}


def create_observation(example: SkillExample, folder: Path) -> tuple[Observation, CommitTree]:
    """Return the observation of an example's first attempt as it was recorded, and the tree."""
    candidate = create_candidate(example, folder)
    tree = CommitTree(GitRepository(folder), candidate.base_commit)
    language = get_language(example.language)
    versions = [release.version for release in language.releases]
    draft = language.create_draft(
        tree, PlanningContext(list_available=lambda: versions, day=date.fromisoformat(example.day))
    )
    rejection = BuildRejection(reason=Reason(example.reason), detail="", log=example.log)
    plan = language.render_plan(draft)
    return build_observation(draft, plan, rejection, attempt=1, usage=RepairUsage(attempts=1)), tree


def test_every_skill_has_an_example_and_at_least_sixty_are_recorded() -> None:
    assert len([example for example in EXAMPLES if example.recorded and example.edits]) >= 60
    assert {example.name for example in EXAMPLES} == set(SKILLS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_skill_matches_its_log_and_its_edits_apply(example: SkillExample, tmp_path: Path) -> None:
    observation, tree = create_observation(example, tmp_path / "repo")
    matches = find_matches([SKILLS[example.name]], observation, tree)
    assert len(matches) == 1
    assert [dump_edit(edit) for edit in matches[0].edits] == example.edits
    assert bool(example.edits) == (example.name not in SKILLS_WITHOUT_EDITS)
    edited = apply_edits(observation.draft, matches[0].edits, format_skill_origin(example.name))
    assert (edited != observation.draft) == bool(example.edits) or example.unseen


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_skill_does_not_match_a_log_without_errors(example: SkillExample, tmp_path: Path) -> None:
    without_errors = replace(example, log="all is well\n")
    observation, tree = create_observation(without_errors, tmp_path / "repo")
    assert find_matches([SKILLS[example.name]], observation, tree) == []


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize(
    "name", [name for name, group in group_examples().items() if group[0].name not in SKILLS_WITHOUT_EDITS]
)
def test_a_broken_build_is_repaired(name: str, tmp_path: Path) -> None:
    group = group_examples()[name]
    if reason := group[0].unseen:
        pytest.skip(reason)
    example = combine_examples(group) if group[0].group else group[0]
    case = create_case(example, tmp_path, **example.settings)
    environment = build(case.candidate, case.services)
    assert isinstance(environment, Environment), environment.attempts
    assert environment.attempts[0].reason in {skill.reason for skill in group}
    origins = {evidence.path for evidence in environment.plan.evidence}
    assert {format_skill_origin(skill.name) for skill in group} <= origins
    assert environment.counts.failed + environment.counts.error == 0
