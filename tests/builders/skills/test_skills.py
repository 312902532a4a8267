"""Each skill is seen at work: on what was recorded of a build that broke, and on the build itself."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from backends.git import Repository
from backends.tree import Tree
from builders.accept import Reason, Refused
from builders.build import build
from builders.repair.edits import apply_all, skill_place, to_data
from builders.repair.observe import observe
from builders.repair.policy import Observation, Spent
from builders.repair.skills import OURS, load, matching
from languages.draft import Context
from languages.registry import language
from taskdb.records import Environment
from tests.builders.skills.examples import Example, candidate_of, case_of, examples, groups, together

SKILLS = {skill.name: skill for skill in load(OURS)}
EXAMPLES = examples()
TELLING = {name for name, skill in SKILLS.items() if not skill.header.do}


def observation(example: Example, folder: Path) -> tuple[Observation, Tree]:
    """The first attempt at an example as it was recorded."""
    candidate = candidate_of(example, folder)
    tree = Tree(Repository(folder), candidate.base_commit)
    known = language(example.language)
    versions = [release.version for release in known.RELEASES]
    draft = known.draft(tree, Context(available=lambda: versions, day=date.fromisoformat(example.day)))
    refused = Refused(reason=Reason(example.reason), detail="", log=example.log)
    return observe(draft, known.render(draft), refused, attempt=1, spent=Spent(attempts=1)), tree


def test_there_are_sixty_skills_and_each_has_an_example() -> None:
    assert len([example for example in EXAMPLES if example.recorded and example.edits]) >= 60
    assert {example.name for example in EXAMPLES} == set(SKILLS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_skill_knows_the_log_and_its_edits_can_be_made(example: Example, tmp_path: Path) -> None:
    seen, tree = observation(example, tmp_path / "repo")
    matches = matching([SKILLS[example.name]], seen, tree)
    assert len(matches) == 1
    assert [to_data(edit) for edit in matches[0].edits] == example.edits
    assert bool(example.edits) == (example.name not in TELLING)
    edited = apply_all(seen.draft, matches[0].edits, skill_place(example.name))
    assert (edited != seen.draft) == bool(example.edits) or example.unseen


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_skill_is_silent_on_a_log_that_says_nothing(example: Example, tmp_path: Path) -> None:
    seen, tree = observation(Example(**{**example.__dict__, "log": "all is well\n"}), tmp_path / "repo")
    assert matching([SKILLS[example.name]], seen, tree) == []


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("name", [name for name, several in groups().items() if several[0].name not in TELLING])
def test_a_real_build_is_broken_and_mended(name: str, tmp_path: Path) -> None:
    several = groups()[name]
    if why := several[0].unseen:
        pytest.skip(why)
    example = together(several) if several[0].group else several[0]
    case = case_of(example, tmp_path, **example.settings)
    made = build(case.candidate, case.services)
    assert isinstance(made, Environment), made.attempts
    assert made.attempts[0].reason in {one.reason for one in several}
    used = {evidence.path for evidence in made.plan.evidence}
    assert {skill_place(one.name) for one in several} <= used
    assert made.counts.failed + made.counts.error == 0
