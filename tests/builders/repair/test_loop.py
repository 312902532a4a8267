from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backends.services import Services
from backends.tree import CommitTree
from builders.acceptance import BuildRejection
from builders.attempt import AcceptedBuild
from builders.build import build, create_first_draft
from builders.repair.edits import AGENT_ORIGIN, parse_edits
from builders.repair.loop import RepairResult, repair_build
from builders.repair.memory import NEAREST_ORIGIN
from builders.repair.policy import NoProposal, Observation, Policy, Proposal, ProposalHistory, RepairCase
from builders.repair.rules import RulePolicy
from taskdb.records import Environment, Rejection
from tests import records
from tests.containers import make_services
from tests.helpers import TinyRepo

NEEDS = 'import os\n\n\ndef test_needs():\n    assert os.environ["{}"] == "1"\n'
FILES = {
    "tests/test_a.py": NEEDS.format("A"),
    "tests/test_b.py": NEEDS.format("B"),
    "tests/test_c.py": NEEDS.format("C"),
}


@dataclass
class ScriptedPolicy:
    """Policy that returns prepared proposals and records its observations."""

    proposals: list[list[dict[str, Any]]]
    name: str = "llm"
    observations: list[Observation] = field(default_factory=list)

    def propose(self, observation: Observation, history: ProposalHistory) -> Proposal | NoProposal:
        self.observations.append(observation)
        if not self.proposals:
            return NoProposal(rationale="no more proposals", is_final=True, tokens=7)
        return Proposal(
            edits=parse_edits(self.proposals.pop(0)), rationale="scripted", proposed_by=AGENT_ORIGIN, tokens=5, cost=0.5
        )


def make_case(tmp_path: Path, files: dict[str, str], **settings: Any) -> RepairCase:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", dict(files))
    return make_case_at(repo, base, make_services(tmp_path, **settings))


def make_case_at(repo: TinyRepo, base: str, services: Services) -> RepairCase:
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base)
    candidate = records.make_candidate(pull, created_at="2024-03-17T12:00:00+00:00", version="", test_files=())
    tree = CommitTree(services.clones.open(candidate.source, candidate.repo), base)
    return RepairCase(
        candidate=candidate, tree=tree, first_draft=create_first_draft(tree, candidate, services), services=services
    )


def repair(case: RepairCase, policies: Sequence[Policy]) -> RepairResult:
    return repair_build(case, policies, started=time.monotonic())


def set_env(name: str) -> dict[str, Any]:
    return {"edit": "set-env", "name": name, "value": "1"}


@pytest.mark.docker
def test_a_worse_attempt_is_undone_and_the_next_proposal_edits_the_best_draft(tmp_path: Path) -> None:
    case = make_case(tmp_path, FILES)
    missing = {"edit": "add-dependency", "requirement": "no-such-package-at-all==99"}
    policy = ScriptedPolicy([[set_env("A")], [missing], [set_env("A")], [set_env("B"), set_env("C")]])
    repaired = repair(case, [policy])
    assert isinstance(repaired.result, AcceptedBuild)
    assert [(attempt.number, attempt.reason, attempt.rolled_back) for attempt in repaired.attempts] == [
        (1, "mostly-failing", False),
        (2, "mostly-failing", False),
        (3, "dependencies-failed", True),
        (4, "duplicate-plan", True),
        (4, "accepted", False),
    ]
    assert [observed.attempt for observed in policy.observations] == [1, 2, 2, 2]
    assert policy.observations[1].detail == "1 of 3 tests pass"
    assert policy.observations[-1].usage.tokens == 15
    assert dict(repaired.result.plan.env)["A"] == "1"
    assert "no-such-package" not in str(repaired.result.plan.dependency_steps)
    assert sum(attempt.cost for attempt in repaired.attempts) == 2.0


@pytest.mark.docker
def test_pins_that_conflict_with_the_project_are_given_up_one_after_the_other(tmp_path: Path) -> None:
    setup = (
        "from setuptools import setup\nsetup(name='p', version='1', install_requires=['attrs>=22', 'pluggy>=1.3'])\n"
    )
    files = {
        "setup.py": setup,
        "requirements-test.txt": "pytest==7.4.4\nattrs==20.1.0\npluggy==0.5\niniconfig==1.1.0\n",
        "tests/test_a.py": "import attr, pluggy\n\n\ndef test_a():\n    assert attr.__version__ >= '22'\n",
    }
    case = make_case(tmp_path, files)
    repaired = repair(case, [RulePolicy(case, ())])
    assert isinstance(repaired.result, AcceptedBuild), repaired.log
    assert [attempt.reason for attempt in repaired.attempts] == [
        "dependencies-failed",
        "dependencies-failed",
        "accepted",
    ]
    # what a message blamed is gone in the next attempt, and what none blamed is kept
    given_up = [edit.partition(" ")[2] for attempt in repaired.attempts for edit in attempt.edits]
    assert sorted(given_up) == ["attrs==20.1.0", "pluggy==0.5"]
    for attempt, following in pairwise(repaired.attempts):
        assert following.edits[0].partition(" ")[2] in attempt.detail + repaired.log
    requirements = " ".join(repaired.result.plan.dependency_steps)
    assert "attrs>=22" in requirements
    assert "iniconfig==1.1.0" in requirements
    evidence = {(evidence.choice, evidence.value, evidence.path) for evidence in repaired.result.plan.evidence}
    assert ("relax-dependency", "pluggy==0.5", "(conflict)") in evidence


@pytest.mark.docker
def test_a_package_of_the_test_setup_that_cannot_be_built_is_given_up(tmp_path: Path) -> None:
    files = {
        "setup.py": "from setuptools import setup\nsetup(name='p', version='1')\n",
        "requirements-test.txt": "pytest==7.4.4\nsklearn==0.0.post12\n",  # its only purpose is to fail
        "tests/test_a.py": "def test_a():\n    assert True\n",
    }
    case = make_case(tmp_path, files)
    repaired = repair(case, [RulePolicy(case, ())])
    assert isinstance(repaired.result, AcceptedBuild), repaired.log
    edits = [attempt.edits for attempt in repaired.attempts]
    assert edits == [(), ("relax-dependency sklearn==0.0.post12",), ("remove-dependency sklearn",)]
    assert "pytest==7.4.4" in " ".join(repaired.result.plan.dependency_steps)


@pytest.mark.docker
def test_edits_that_leave_out_tests_are_rejected_without_a_build(tmp_path: Path) -> None:
    case = make_case(tmp_path, FILES, max_attempts=3)
    policy = ScriptedPolicy(
        [
            [{"edit": "set-test-paths", "paths": ["tests/test_a.py"]}],
            [{"edit": "add-source-step", "command": "rm tests/test_b.py tests/test_c.py"}],
        ]
    )
    repaired = repair(case, [policy])
    assert isinstance(repaired.result, BuildRejection)
    assert [attempt.reason for attempt in repaired.attempts] == [
        "mostly-failing",
        "rejected-edit",
        "rejected-edit",
        "gave-up",
    ]
    assert "2 of 3 test files would not run" in repaired.attempts[1].detail
    assert repaired.attempts[-1].tokens == 7


@pytest.mark.docker
def test_the_attempt_budget_ends_the_repair(tmp_path: Path) -> None:
    case = make_case(tmp_path, FILES, max_attempts=2)
    repaired = repair(case, [ScriptedPolicy([[set_env(name)] for name in "XYZ"])])
    assert isinstance(repaired.result, BuildRejection)
    assert [attempt.number for attempt in repaired.attempts] == [1, 2]


@pytest.mark.docker
def test_the_repair_of_one_commit_is_tried_first_on_another(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    text = 'import subprocess\n\n\ndef test_tree():\n    subprocess.check_call(["tree", "--version"])\n'
    first = make_case_at(repo, repo.commit("base", {"tests/test_a.py": text}), services)
    second = make_case_at(repo, repo.commit("more", {"tests/test_b.py": text}), services)
    environments = [build(case.candidate, services) for case in (first, second)]
    assert all(isinstance(environment, Environment) for environment in environments)
    assert [environments[0].attempts[1].proposed_by, environments[1].attempts[1].proposed_by] == [
        "(skill program-other)",
        NEAREST_ORIGIN,
    ]
    for environment in environments:
        assert isinstance(environment, Environment)
        assert [e.path for e in environment.plan.evidence if e.value == "tree"] == ["(skill program-other)"]


FORGED = """
import os, atexit

def pytest_sessionfinish(session):
    path = session.config.option.xmlpath

    def forge():
        text = open(path).read() if os.path.exists(path) else ""
        import re
        text = re.sub(r"<failure.*?</failure>", "", text, flags=re.S)
        open(path, "w").write(text)

    atexit.register(forge)
"""


@pytest.mark.docker
def test_a_runner_that_turns_failures_into_passes_gets_no_environment(tmp_path: Path) -> None:
    files = {"tests/test_a.py": "def test_a():\n    assert 0\n", "tests/conftest.py": FORGED}
    case = make_case(tmp_path, files, max_attempts=2)
    rejection = build(case.candidate, case.services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "fake-report"
