"""The judge stage on a verified change of a real repository."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.clones import CloneStore
from backends.services import Services
from core.config import Settings
from derivers.base import KindRejection
from derivers.feature import derive_feature
from mergemill.pipeline.kinds import derive
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, Kind, Rejection, Stage
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import Completion, StatementScores, Verdict
from tests import records
from tests.helpers import TinyRepo
from tests.verifiers.judge.test_rules import LOOKS, MAKES, RAISES, make_patch
from verifiers.judge import judge
from verifiers.judge.stage import TreeSearch

LINK = "is here so ask the porter at once, see https://github.com/ada/greet/pull/3"
LINKS, LOOKS_LINKED = RAISES.replace("is here", LINK), LOOKS.replace("is here", LINK)
"""A change whose message contains a link to a change, which no addition may have."""
ADDITION = """\
## Requirements

These details are checked as they are written here:

- A message of `ValueError` must match the regular expression `nobody of the name .* is here`."""
USES = make_patch("tests/test_greet.py", "+from greet import shout_loudly")


def make_verified_lineage(
    folder: Path, *, base: dict[str, str], gold_patch: str, test_patch: str, **fields: Any
) -> tuple[Lineage, Services]:
    """Return a verified change of a repository with these files at its base commit."""
    repo = TinyRepo(folder / "greet")
    commit = repo.commit("base", dict(base))
    artifacts = Artifacts(folder / "store" / "artifacts")
    unused: Any = SimpleNamespace()
    services = Services(
        settings=Settings(store=folder / "store"),
        sandbox=unused,
        clones=CloneStore(folder / "store" / "clones"),
        artifacts=artifacts,
    )
    candidate = records.make_candidate(
        records.make_pull_request(),
        source=f"git:{repo.path}",
        base_commit=commit,
        gold_patch=artifacts.put_text(gold_patch),
        test_patch=artifacts.put_text(test_patch),
        **fields,
    )
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment, candidate=candidate.id)
    return Lineage(
        candidate=candidate, environment=environment, verification=verification, kinds=(Kind.BUGFIX,)
    ), services


def judge_repository(folder: Path, **arguments: Any) -> tuple[Lineage, Verdict, Services]:
    lineage, services = make_verified_lineage(folder, **arguments)
    verdict = judge(lineage, services)
    assert isinstance(verdict, Verdict)
    return lineage.with_record(verdict), verdict, services


def test_a_verdict_refers_to_its_chain_and_is_reproducible(tmp_path: Path) -> None:
    lineage, services = make_verified_lineage(tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=MAKES, test_patch=USES)
    first, again = judge(lineage, services), judge(lineage, services)
    assert isinstance(first, Verdict)
    assert (first.parent, first.candidate) == (lineage.require_verification().id, lineage.candidate.id)
    assert first.id == again.id
    assert [finding.rule for finding in first.findings] == ["name-not-stated"]
    assert [(interface.name, interface.path) for interface in first.interfaces] == [("shout_loudly", "greet.py")]
    assert first.set_aside is None


def test_texts_of_the_base_tree_are_no_findings(tmp_path: Path) -> None:
    base = {"greet.py": "x = 1\n", "docs/plans.md": "Some day there will be shout_loudly.\n"}
    assert judge_repository(tmp_path, base=base, gold_patch=MAKES, test_patch=USES)[1].findings == ()
    longer = {"greet.py": "shout_loudly_and_long = 1\n"}
    (finding,) = judge_repository(tmp_path / "other", base=longer, gold_patch=MAKES, test_patch=USES)[1].findings
    assert finding.rule == "name-not-stated"


def test_an_unsolvable_bugfix_is_rejected_with_the_finding_as_reason(tmp_path: Path) -> None:
    lineage, verdict, services = judge_repository(
        tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=LINKS, test_patch=LOOKS_LINKED
    )
    assert verdict.set_aside == "message-not-stated"
    assert verdict.completion is not None
    assert verdict.completion.addition == ""
    ended = derive(lineage, services)
    assert isinstance(ended, Rejection)
    assert (ended.stage, ended.reason, ended.parent) == (Stage.DERIVE, "message-not-stated", verdict.id)
    assert "nobody of the name" in ended.detail


def test_a_bugfix_whose_message_is_not_stated_gets_it_as_a_requirement(tmp_path: Path) -> None:
    lineage, verdict, services = judge_repository(
        tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=RAISES, test_patch=LOOKS
    )
    assert (verdict.set_aside, verdict.addition) == (None, ADDITION)
    assert "message-not-stated" in {finding.rule for finding in verdict.findings}
    completion = verdict.completion
    assert completion is not None
    assert completion.made_by == "rules"
    assert completion.before == StatementScores(
        underspecified=verdict.underspecified, unfair_tests=verdict.unfair_tests
    )
    assert completion.after is not None
    assert completion.after.unfair_tests < verdict.unfair_tests
    made = derive(lineage, services)
    assert not isinstance(made, Rejection)
    (task,) = made
    original = lineage.candidate.problem_statement
    assert "nobody of the name" not in original
    assert (task.kind, task.problem_statement) == (Kind.BUGFIX, f"{original}\n\n{ADDITION}")


def test_a_feature_states_its_message_and_each_interface_once(tmp_path: Path) -> None:
    gold = make_patch(
        "greet.py", "+def shout_loudly(name):", "+    raise ValueError(f'nobody of the name {name} is here')"
    )
    tests = make_patch(
        "tests/test_greet.py",
        "+from greet import shout_loudly",
        "+    with pytest.raises(ValueError, match=r'nobody of the name .* is here'):",
        "+        shout_loudly('Bo')",
    )
    lineage, services = make_verified_lineage(tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=gold, test_patch=tests)
    absent = lineage.require_verification().model_copy(update={"FAIL_TO_PASS": (("a.py::test", FailureKind.ABSENT),)})
    lineage = lineage.with_record(absent)
    verdict = judge(lineage, services)
    assert isinstance(verdict, Verdict)
    made = derive_feature(lineage.with_record(verdict), services)
    assert not isinstance(made, KindRejection)
    (task,) = made
    original = lineage.candidate.problem_statement
    interface = "- `greet.py`: `def shout_loudly(name)`"
    assert task.problem_statement == f"{original}\n\n{ADDITION}\n{interface}"


def test_each_text_is_looked_up_once_in_the_base_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def search(_: TreeSearch, texts: Collection[str]) -> set[str]:
        searched.extend(texts)
        return set()

    monkeypatch.setattr(TreeSearch, "find_texts", search)
    lineage, services = make_verified_lineage(
        tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=RAISES, test_patch=LOOKS
    )
    assert isinstance(judge(lineage, services), Verdict)
    assert searched
    assert len(searched) == len(set(searched))


def test_a_verdict_without_a_completion_keeps_its_id() -> None:
    environment = records.make_environment(records.make_candidate(records.make_pull_request()))
    verdict = records.make_verdict(records.make_verification(environment), set_aside="message-not-stated")
    tried = Completion(model="", prompt="", addition="", made_by="rules", rejected=("it is too long",))
    assert verdict.model_copy(update={"completion": tried}).id == verdict.id


def test_a_change_that_is_no_bugfix_is_rejected_for_that_reason_first(tmp_path: Path) -> None:
    lineage, _, services = judge_repository(
        tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=LINKS, test_patch=LOOKS_LINKED
    )
    absent = lineage.require_verification().model_copy(update={"FAIL_TO_PASS": (("a.py::test", FailureKind.ABSENT),)})
    ended = derive(lineage.with_record(absent), services)
    assert isinstance(ended, Rejection)
    assert ended.reason == "no-behavioural-failure"


def test_the_statement_of_a_task_includes_the_addition(tmp_path: Path) -> None:
    lineage, verdict, services = judge_repository(
        tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=MAKES, test_patch=USES
    )
    completion = Completion(model="m", prompt="complete-2", addition="The function is `shout_loudly`.")
    made = derive(lineage.with_record(verdict.model_copy(update={"completion": completion})), services)
    assert not isinstance(made, Rejection)
    (task,) = made
    statement = lineage.candidate.problem_statement
    assert task.problem_statement == f"{statement}\n\nThe function is `shout_loudly`."
