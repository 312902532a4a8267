"""An image must run the change's own tests, too: builds are repaired for them, and none is lost by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import pytest

from backends.git import GitRepository
from backends.services import Services
from backends.tree import CommitTree
from builders.acceptance import Reason
from builders.attempt import AcceptedBuild, run_attempt
from builders.build import build, list_versions_of_change
from builders.gold_check import find_failing_tests, list_gold_files
from builders.repair.edits import format_edit
from builders.repair.policy import Observation, Proposal, ProposalOutcome, RepairCase, RepairUsage
from builders.repair.rules import DECLARED_BY_CHANGE, RulePolicy
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.following import PlannedRun
from evaluation.runner.run import EvaluationResult
from languages.draft import PlanDraft, PlanningContext
from languages.python.plan import render_plan
from languages.registry import get_language
from taskdb.records import Candidate, Environment, Evidence, Rejection, TestCommand, Verification
from taskdb.records.lineage import Lineage
from tests import records
from tests.builders.test_acceptance import make_result, make_tree
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.sample import BASE
from tests.verifiers.no_controls import no_controls
from verifiers.verify import verify

__all__ = ["no_controls"]
PYPROJECT = """[project]
name = "greet"
version = "1.0"
requires-python = "{pythons}"

[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
packages = ["greet"]
"""
NAMES = (
    "from pathlib import Path\n\nimport yaml\n\n\ndef read(path):\n    return yaml.safe_load(Path(path).read_text())\n"
)
NAMES_TEST = (
    "from greet.names import read\n\n\n"
    "def test_read(tmp_path):\n    (tmp_path / 'n').write_text('[Ada]')\n    assert read(tmp_path / 'n') == ['Ada']\n"
)
WEB = (
    "import json\nfrom urllib.request import urlopen\n\n\n"
    "def echo(name):\n    with urlopen(f'http://httpbin.org/get?name={name}') as answer:\n"
    "        return json.load(answer)['args']['name']\n"
)
WEB_TEST = "from greet.web import echo\n\n\ndef test_echo():\n    assert echo('Ada') == 'Ada'\n"


def make_candidate(
    tmp_path: Path, services: Services, after: dict[str, str], pythons: str = ">=3.11,<3.12"
) -> Candidate:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("base", BASE | {"pyproject.toml": PYPROJECT.format(pythons=pythons)})
    merge = repo.commit("the change", after)
    return make_lineage(repo, services, base, merge).candidate


def require_environment(result: Environment | Rejection) -> Environment:
    assert isinstance(result, Environment), result
    return result


def repair_and_verify(tmp_path: Path, after: dict[str, str]) -> tuple[Environment, list[str]]:
    """Return the environment of a change whose tests fail in the first build, and FAIL_TO_PASS in the second one."""
    services = make_services(tmp_path, repeats=1)
    candidate = make_candidate(tmp_path, services, after)
    environment = require_environment(build(candidate, services))
    assert [attempt.reason for attempt in environment.attempts] == ["gold-tests-fail", "accepted"]
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    return environment, [test for test, _ in verification.FAIL_TO_PASS]


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
def test_a_package_that_only_the_change_needs_is_installed(tmp_path: Path) -> None:
    after = {"greet/names.py": NAMES, "tests/test_names.py": NAMES_TEST}
    environment, fail_to_pass = repair_and_verify(tmp_path, after)
    assert environment.attempts[1].edits == ("add-dependency pyyaml",)
    assert environment.attempt == 2
    assert fail_to_pass == ["tests/test_names.py::test_read"]


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
def test_requests_to_a_public_echo_service_are_answered_by_one_in_the_container(tmp_path: Path) -> None:
    after = {"greet/web.py": WEB, "tests/test_web.py": WEB_TEST}
    environment, fail_to_pass = repair_and_verify(tmp_path, after)
    assert environment.plan.services == ("httpbin",)
    assert fail_to_pass == ["tests/test_web.py::test_echo"]


CLOCK = "import time\n\n\ndef hour(seconds):\n    return time.strftime('%H:%M', time.localtime(seconds))\n"
CLOCK_TEST = "from greet.clock import hour\n\n\ndef test_hour():\n    assert hour(1700000000) == '17:13'\n"


@pytest.mark.usefixtures("no_controls")
@pytest.mark.docker
def test_a_time_zone_that_no_file_names_is_found_by_trial(tmp_path: Path) -> None:
    after = {"greet/clock.py": CLOCK, "tests/test_clock.py": CLOCK_TEST}
    environment, fail_to_pass = repair_and_verify(tmp_path, after)
    assert environment.attempts[1].edits == ("set-env TZ=America/New_York",)
    assert environment.attempts[1].proposed_by == "(trial)"
    assert fail_to_pass == ["tests/test_clock.py::test_hour"]


@pytest.mark.docker
def test_a_cause_that_nothing_repairs_is_the_reason(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    after = {"greet/web.py": WEB.replace("httpbin.org", "example.org"), "tests/test_web.py": WEB_TEST}
    rejection = build(make_candidate(tmp_path, services, after), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "needs-network"
    assert "Temporary failure in name resolution" in rejection.detail
    assert {attempt.reason for attempt in rejection.attempts} <= {"gold-tests-fail", "duplicate-plan"}


@pytest.mark.docker
def test_a_change_whose_tests_never_pass_keeps_its_first_accepted_build(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    hopeless = "import greet.more\n\n\ndef test_more():\n    assert greet.more.x == 2\n"
    candidate = make_candidate(tmp_path, services, {"greet/more.py": "x = 1\n", "tests/test_more.py": hopeless})
    environment = require_environment(build(candidate, services))
    assert environment.attempt == 1
    reasons = {attempt.reason for attempt in environment.attempts}
    assert reasons <= {"gold-tests-fail", "duplicate-plan"}, environment.attempts
    assert 1 < sum(attempt.reason == "gold-tests-fail" for attempt in environment.attempts) <= 5
    assert all(attempt.rolled_back for attempt in environment.attempts[1:])
    rejection = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "gold-fails"


@pytest.mark.slow
def test_versions_are_tried_until_the_tests_of_the_change_pass(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    old = "import sys\n\n\ndef test_old():\n    assert sys.version_info < (3, 12)\n    import greet.more\n"
    after = {"greet/more.py": "x = 1\n", "tests/test_old.py": old}
    candidate = make_candidate(tmp_path, services, after, pythons=">=3.11,<3.14")
    candidate = candidate.model_copy(update={"created_at": "2025-06-01T12:00:00+00:00"})
    environment = require_environment(build(candidate, services))
    assert [attempt.reason for attempt in environment.attempts] == ["gold-tests-fail", "gold-tests-fail", "accepted"]
    assert [attempt.edits for attempt in environment.attempts] == [
        (),
        ("set-language-version 3.12",),
        ("set-language-version 3.11",),
    ]
    assert environment.plan.language_version == "3.11"


@pytest.mark.parametrize("fails", [False, True])
def test_the_tests_of_the_change_get_a_container_of_their_own_only_where_they_fail_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    candidate = records.make_candidate(records.make_pull_request())
    (own,) = list_gold_files(candidate)
    base, checks = make_result({"tests/test_a.py::test_1": PASSED}), list[float]()
    limits: list[float] = []

    def run_both(_pool: object, runs: list[PlannedRun], **__: object) -> list[EvaluationResult]:
        limits.append(runs[0].seconds)
        if len(runs) == 3:
            return [base]
        return [base, make_result({f"{own}::test_own": FAILED if fails else PASSED})]

    monkeypatch.setattr("builders.acceptance.run_in_turn", run_both)
    monkeypatch.setattr("builders.acceptance.run_tests", lambda *_, **__: base)
    monkeypatch.setattr("builders.attempt.layers", MagicMock())
    monkeypatch.setattr("builders.attempt.check_gold_tests", lambda *_, base_seconds: checks.append(base_seconds))
    services = MagicMock()
    services.artifacts.get.return_value = b""
    services.test_limits.return_value.seconds = 900.0
    tree = make_tree(tmp_path, "tests/test_a.py")
    assert isinstance(run_attempt(records.PLAN, tree, candidate, services), AcceptedBuild)
    assert limits == [900.0, 120.0]
    assert bool(checks) == fails


PASSED, FAILED, ERROR = OutcomeStatus.PASSED, OutcomeStatus.FAILED, OutcomeStatus.ERROR


def test_tests_of_other_files_do_not_count() -> None:
    result = make_result(
        {"tests/test_a.py::test_1": FAILED, "tests/test_b.py::test_2": ERROR, "tests/test_a.py::test_3": PASSED},
        {"tests/test_c.py": "ImportError", "tests/test_d.py": "ImportError"},
    )
    assert find_failing_tests(result, ["tests/test_a.py", "tests/test_c.py"]) == [
        "tests/test_a.py::test_1",
        "tests/test_c.py",
    ]
    silent = replace(result, report=None, log="x\nImportError: no report\n")
    assert find_failing_tests(silent, ["tests/test_a.py"]) == ["ImportError: no report"]


def make_observation(reason: Reason, versions: tuple[str, ...]) -> Observation:
    evidence = tuple(
        Evidence(choice="language_version", value=version, path="tox.ini", line=at)
        for at, version in enumerate(versions, 1)
    )
    draft = PlanDraft(
        language="python",
        name="greet",
        day=date(2024, 3, 17),
        exclude_newer=date(2024, 3, 1),
        versions=evidence,
        test=TestCommand(framework="pytest", argv=("pytest",)),
    )
    return Observation(
        draft=draft,
        plan=render_plan(draft),
        reason=reason,
        detail="",
        log="",
        tail="",
        lines=(),
        report=None,
        expected_files=(),
        attempt=1,
        usage=RepairUsage(),
    )


def list_proposed(reason: Reason, versions: tuple[str, ...]) -> list[str]:
    """Return the edits that the rules propose one after the other, each of which leads no further."""
    policy = RulePolicy(cast("RepairCase", SimpleNamespace(tree=None)), ())
    observation, history, edits = make_observation(reason, versions), list[ProposalOutcome](), list[str]()
    while isinstance(proposal := policy.propose(observation, history), Proposal):
        edits += [format_edit(edit) for edit in proposal.edits]
        history.append(
            ProposalOutcome(
                number=len(history) + 2,
                proposal=proposal,
                draft=observation.draft,
                reason=reason,
                detail="",
                rolled_back=True,
            )
        )
    return edits


def test_the_versions_that_the_repository_supports_are_tried_in_its_order() -> None:
    proposed = list_proposed(Reason.GOLD_TESTS_FAIL, ("3.12", "3.10", "3.11"))
    assert proposed[:2] == ["set-language-version 3.10", "set-language-version 3.11"]
    assert not any("version 3.12" in proposal for proposal in proposed)
    assert not any(
        "set-language-version" in proposal for proposal in list_proposed(Reason.MOSTLY_FAILING, ("3.12", "3.10"))
    )


@pytest.mark.parametrize(
    ("message", "is_tried"),
    [("URLError: Temporary failure in name resolution", False), ("AssertionError: 1 != 2", True)],
)
def test_no_version_is_tried_for_tests_that_need_the_network(message: str, is_tried: bool) -> None:
    outcomes = {"tests/test_a.py::test_1": Outcome(status=FAILED, message=message)}
    observation = replace(
        make_observation(Reason.GOLD_TESTS_FAIL, ("3.12", "3.10")),
        report=EvaluationReport(outcomes=outcomes, uncollected={}),
        expected_files=("tests/test_a.py",),
    )
    policy = RulePolicy(cast("RepairCase", SimpleNamespace(tree=None)), ())
    assert isinstance(policy.propose(observation, ()), Proposal) == is_tried


def test_versions_that_the_change_declares_are_tried_first() -> None:
    observation = make_observation(Reason.GOLD_TESTS_FAIL, ("3.11", "3.10", "3.12"))
    declared = observation.draft.versions[2].model_copy(update={"note": DECLARED_BY_CHANGE})
    draft = replace(observation.draft, versions=(*observation.draft.versions[:2], declared))
    proposal = RulePolicy(cast("RepairCase", SimpleNamespace(tree=None)), ()).propose(
        replace(observation, draft=draft), ()
    )
    assert isinstance(proposal, Proposal)
    assert [format_edit(edit) for edit in proposal.edits] == ["set-language-version 3.12"]


def test_a_version_that_only_the_merge_declares_belongs_to_the_draft(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    workflow = "on: push\njobs:\n  test:\n    strategy: {{matrix: {{python: [{}]}}}}\n    steps: [{{run: pytest}}]\n"
    path = ".github/workflows/test.yml"
    base = repo.commit("base", BASE | {path: workflow.format("'3.10'")})
    merge = repo.commit("the change", {path: workflow.format("'3.10', '3.12'")})
    pull = records.make_pull_request(base_commit=base)
    candidate = records.make_candidate(pull, merge_commit=merge, gold_files=(path,))
    context = PlanningContext(list_available=lambda: ["3.10", "3.11", "3.12"], day=date(2024, 3, 1))
    tree = CommitTree(GitRepository(tmp_path), base)
    draft = get_language("python").create_draft(tree, context)
    assert [version.value for version in draft.versions] == ["3.10", "3.11"]
    versions = list_versions_of_change(draft, tree, candidate, context)
    assert [(version.value, version.path, version.note) for version in versions] == [("3.12", path, DECLARED_BY_CHANGE)]
    other = candidate.model_copy(update={"gold_files": ("greet/__init__.py",)})
    assert list_versions_of_change(draft, tree, other, context) == []
    lost = candidate.model_copy(update={"merge_commit": "f" * 40})
    assert list_versions_of_change(draft, tree, lost, context) == []
