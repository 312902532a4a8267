from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backends.services import Services
from backends.tree import Tree
from builders.accept import Refused
from builders.attempt import Built
from builders.build import build, first_draft
from builders.repair.edits import AGENT, edits_of
from builders.repair.loop import Mended, mend
from builders.repair.memory import PLACE
from builders.repair.policy import Case, GiveUp, History, Observation, Policy, Proposal
from taskdb.records import Environment, Rejection
from tests import records
from tests.boxes import make_services
from tests.helpers import TinyRepo

WANTS = 'import os\n\n\ndef test_wants():\n    assert os.environ["{}"] == "1"\n'
FILES = {
    "tests/test_a.py": WANTS.format("A"),
    "tests/test_b.py": WANTS.format("B"),
    "tests/test_c.py": WANTS.format("C"),
}


@dataclass
class Scripted:
    """Proposes what it was told to, and keeps what it was shown."""

    proposals: list[list[dict[str, Any]]]
    name: str = "llm"
    seen: list[Observation] = field(default_factory=list)

    def propose(self, observation: Observation, history: History) -> Proposal | GiveUp:
        self.seen.append(observation)
        if not self.proposals:
            return GiveUp(why="that was all", final=True, tokens=7)
        return Proposal(edits=edits_of(self.proposals.pop(0)), why="as told", by=AGENT, tokens=5, cost=0.5)


def case_of(tmp_path: Path, files: dict[str, str], **settings: Any) -> Case:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", dict(files))
    return case_at(repo, base, make_services(tmp_path, **settings))


def case_at(repo: TinyRepo, base: str, services: Services) -> Case:
    pull = records.pull_request(source=f"git:{repo.path}", base_commit=base)
    candidate = records.candidate(pull, created_at="2024-03-17T12:00:00+00:00", version="", test_files=())
    tree = Tree(services.clones.open(candidate.source, candidate.repo), base)
    return Case(candidate=candidate, tree=tree, first=first_draft(tree, candidate, services), services=services)


def mended(case: Case, policies: Sequence[Policy]) -> Mended:
    return mend(case, policies, started=time.monotonic())


def set_env(name: str) -> dict[str, Any]:
    return {"edit": "set-env", "name": name, "value": "1"}


@pytest.mark.docker
def test_what_came_less_far_is_undone_and_the_next_edits_the_best(tmp_path: Path) -> None:
    case = case_of(tmp_path, FILES)
    gone = {"edit": "add-dependency", "requirement": "no-such-package-at-all==99"}
    policy = Scripted([[set_env("A")], [gone], [set_env("A")], [set_env("B"), set_env("C")]])
    done = mended(case, [policy])
    assert isinstance(done.result, Built)
    assert [(one.number, one.reason, one.undone) for one in done.attempts] == [
        (1, "mostly-failing", False), (2, "mostly-failing", False), (3, "dependencies-failed", True),
        (4, "seen-before", True), (4, "accepted", False),
    ]  # fmt: skip
    assert [seen.attempt for seen in policy.seen] == [1, 2, 2, 2]
    assert policy.seen[1].detail == "1 of 3 tests pass"
    assert policy.seen[-1].spent.tokens == 15
    assert dict(done.result.plan.env)["A"] == "1"
    assert "no-such-package" not in str(done.result.plan.dependency_steps)
    assert sum(one.cost for one in done.attempts) == 2.0


@pytest.mark.docker
def test_edits_after_which_tests_would_not_run_are_refused_and_cost_no_build(tmp_path: Path) -> None:
    case = case_of(tmp_path, FILES, max_attempts=3)
    policy = Scripted([
        [{"edit": "set-test-paths", "paths": ["tests/test_a.py"]}],
        [{"edit": "add-source-step", "command": "rm tests/test_b.py tests/test_c.py"}],
    ])  # fmt: skip
    done = mended(case, [policy])
    assert isinstance(done.result, Refused)
    assert [one.reason for one in done.attempts] == ["mostly-failing", "refused-edit", "refused-edit", "gave-up"]
    assert "2 of 3 test files would not run" in done.attempts[1].detail
    assert done.attempts[-1].tokens == 7


@pytest.mark.docker
def test_a_budget_of_attempts_ends_it(tmp_path: Path) -> None:
    case = case_of(tmp_path, FILES, max_attempts=2)
    done = mended(case, [Scripted([[set_env(name)] for name in "XYZ"])])
    assert isinstance(done.result, Refused)
    assert [one.number for one in done.attempts] == [1, 2]


@pytest.mark.docker
def test_what_mended_one_commit_is_tried_first_on_another(tmp_path: Path) -> None:
    services, repo = make_services(tmp_path), TinyRepo(tmp_path / "repo")
    text = 'import subprocess\n\n\ndef test_tree():\n    subprocess.check_call(["tree", "--version"])\n'
    first = case_at(repo, repo.commit("base", {"tests/test_a.py": text}), services)
    second = case_at(repo, repo.commit("more", {"tests/test_b.py": text}), services)
    made = [build(case.candidate, services) for case in (first, second)]
    assert all(isinstance(one, Environment) for one in made)
    assert [made[0].attempts[1].by, made[1].attempts[1].by] == ["(skill program-other)", PLACE]
    for one in made:
        assert isinstance(one, Environment)
        assert [e.path for e in one.plan.evidence if e.value == "tree"] == ["(skill program-other)"]


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
    case = case_of(tmp_path, {"tests/test_a.py": "def test_a():\n    assert 0\n", "tests/conftest.py": FORGED})
    refused = build(case.candidate, case.services)
    assert isinstance(refused, Rejection)
    assert refused.reason == "fake-report"
