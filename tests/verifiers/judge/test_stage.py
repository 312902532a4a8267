"""The judge as a stage: a verified change of a real repository, with its base tree."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from backends.clones import Clones
from backends.services import Services
from derivers import derive
from mergemill.config import Settings
from taskdb.artifacts import Artifacts
from taskdb.lineage import Lineage
from taskdb.records import FailureKind, Kind, Rejection, Stage
from taskdb.verdicts import Completion, Verdict
from tests import records
from tests.helpers import TinyRepo
from tests.verifiers.judge.test_rules import LOOKS, MAKES, RAISES, patch
from verifiers.judge import judge

USES = patch("tests/test_greet.py", "+from greet import shout_loudly")


def lineage_of(folder: Path, *, base: dict[str, str], gold: str, tests: str, **fields: Any) -> tuple[Lineage, Services]:
    """A verified change of a repository with these files at its base commit."""
    repo = TinyRepo(folder / "greet")
    commit = repo.commit("base", dict(base))
    artifacts = Artifacts(folder / "store" / "artifacts")
    nothing: Any = SimpleNamespace()
    services = Services(
        settings=Settings(store=folder / "store"), sandbox=nothing, clones=Clones(folder / "store" / "clones"),
        artifacts=artifacts,
    )  # fmt: skip
    candidate = records.candidate(
        records.pull_request(), source=f"git:{repo.path}", base_commit=commit,
        gold_patch=artifacts.put_text(gold), test_patch=artifacts.put_text(tests), **fields,
    )  # fmt: skip
    environment = records.environment(candidate)
    verification = records.verification(environment, candidate=candidate.id)
    return Lineage(
        candidate=candidate, environment=environment, verification=verification, kinds=(Kind.BUGFIX,)
    ), services


def judged(folder: Path, **given: Any) -> tuple[Lineage, Verdict, Services]:
    lineage, services = lineage_of(folder, **given)
    verdict = judge(lineage, services)
    assert isinstance(verdict, Verdict)
    return lineage.then(verdict), verdict, services


def test_a_verdict_names_its_chain_and_two_are_the_same(tmp_path: Path) -> None:
    lineage, services = lineage_of(tmp_path, base={"greet.py": "x = 1\n"}, gold=MAKES, tests=USES)
    first, again = judge(lineage, services), judge(lineage, services)
    assert isinstance(first, Verdict)
    assert (first.parent, first.candidate) == (lineage.the_verification.id, lineage.candidate.id)
    assert first.id == again.id
    assert [finding.rule for finding in first.findings] == ["name-not-stated"]
    assert [(one.name, one.path) for one in first.interfaces] == [("shout_loudly", "greet.py")]
    assert first.set_aside is None


def test_what_the_base_tree_mentions_is_no_finding(tmp_path: Path) -> None:
    base = {"greet.py": "x = 1\n", "docs/plans.md": "Some day there will be shout_loudly.\n"}
    assert judged(tmp_path, base=base, gold=MAKES, tests=USES)[1].findings == ()
    longer = {"greet.py": "shout_loudly_and_long = 1\n"}
    (finding,) = judged(tmp_path / "other", base=longer, gold=MAKES, tests=USES)[1].findings
    assert finding.rule == "name-not-stated"


def test_a_bugfix_that_nobody_could_solve_ends_with_the_findings_name(tmp_path: Path) -> None:
    lineage, verdict, services = judged(tmp_path, base={"greet.py": "x = 1\n"}, gold=RAISES, tests=LOOKS)
    assert verdict.set_aside == "message-not-stated"
    ended = derive(lineage, services)
    assert isinstance(ended, Rejection)
    assert (ended.stage, ended.reason, ended.parent) == (Stage.DERIVE, "message-not-stated", verdict.id)
    assert "nobody of the name" in ended.detail


def test_what_is_no_bugfix_ends_as_such_first(tmp_path: Path) -> None:
    lineage, _, services = judged(tmp_path, base={"greet.py": "x = 1\n"}, gold=RAISES, tests=LOOKS)
    absent = lineage.the_verification.model_copy(update={"FAIL_TO_PASS": (("a.py::test", FailureKind.ABSENT),)})
    ended = derive(lineage.then(absent), services)
    assert isinstance(ended, Rejection)
    assert ended.reason == "no-behavioural-failure"


def test_a_task_tells_the_statement_with_its_addition(tmp_path: Path) -> None:
    lineage, verdict, services = judged(tmp_path, base={"greet.py": "x = 1\n"}, gold=MAKES, tests=USES)
    told = Completion(model="m", prompt="complete-1", addition="The function is `shout_loudly`.")
    made = derive(lineage.then(verdict.model_copy(update={"completion": told})), services)
    assert not isinstance(made, Rejection)
    (task,) = made
    statement = lineage.candidate.problem_statement
    assert task.problem_statement == f"{statement}\n\nThe function is `shout_loudly`."
