"""Rules and models together: what a verdict is made of when a model is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.llm.client import ChatModel
from derivers import derive
from mergemill.errors import Transient
from taskdb.records import FailureKind, Rejection
from taskdb.verdicts import Verdict
from tests.llm.server import Fails, ModelServer, Says
from tests.verifiers.judge.change import CASE, STATEMENT, answer
from tests.verifiers.judge.conftest import Asked
from tests.verifiers.judge.test_completion import GOOD
from tests.verifiers.judge.test_stage import lineage_of
from verifiers.judge import judge
from verifiers.judge.assess import assess
from verifiers.judge.hearing import hear


def both(request: dict[str, Any]) -> Says:
    """A model that knows both questions."""
    wanted = request["response_format"]["json_schema"]["name"]
    return Says(text=answer() if wanted == "judgeanswer" else json.dumps({"addition": GOOD}))


def test_the_rules_findings_are_mended_and_the_case_is_not_set_aside(server: ModelServer, asking: Asked) -> None:
    found = assess(CASE)
    assert {"message-not-stated", "name-not-stated"} <= {finding.rule for finding in found.findings}
    assert found.set_aside == "message-not-stated"
    server.script = both
    heard = hear(CASE, found, asking(judge_samples=2))
    assert (heard.addition, heard.set_aside) == (GOOD, None)
    assert heard.underspecified == pytest.approx((found.underspecified + 1 / 3) / 2)
    assert heard.unfair_tests == pytest.approx((found.unfair_tests + 2 / 3) / 2)
    assert (len(heard.panel.counted), heard.panel.agreement) == (2, 1.0)


def test_void_opinions_and_no_addition_leave_what_the_rules_found(server: ModelServer, asking: Asked) -> None:
    found = assess(CASE)
    server.says(Says(text="All is well."))
    heard = hear(CASE, found, asking())
    assert (heard.underspecified, heard.unfair_tests) == (found.underspecified, found.unfair_tests)
    assert (heard.addition, heard.set_aside) == ("", "message-not-stated")
    assert heard.panel.opinions[0].void
    assert heard.completion is not None
    assert heard.completion.refused


def test_a_model_cannot_talk_a_finding_away(server: ModelServer, asking: Asked) -> None:
    fine = {"missing": [], "underspecified": 0, "unfair_tests": 0}
    server.says(Says(text=answer(**fine)), Says(text=json.dumps({"addition": "The statement is complete as it is."})))
    assert hear(CASE, assess(CASE), asking()).set_aside == "message-not-stated"


def test_an_endpoint_that_fails_leaves_no_verdict(server: ModelServer, asking: Asked) -> None:
    server.says(Says(text=answer()), Fails(status=500))
    with pytest.raises(Transient):
        hear(CASE, assess(CASE), asking())


def test_the_base_tree_is_looked_through_once_for_each_text(server: ModelServer, asking: Asked) -> None:
    looked: list[str] = []

    def mentions(texts: Collection[str]) -> set[str]:
        looked.extend(texts)
        return set()

    server.says(Says(text=answer()), *[Says(text=json.dumps({"addition": "Do it as it should be."}))] * 3)
    heard = hear(replace(CASE, mentions=mentions), assess(CASE), asking())
    assert heard.completion is not None
    assert len(heard.completion.refused) == 3
    assert looked
    assert len(looked) == len(set(looked))


def test_a_verified_change_is_judged_with_its_opinions_and_its_addition(
    server: ModelServer, client: Callable[..., ChatModel], tmp_path: Path
) -> None:
    lineage, services = lineage_of(tmp_path, base={"greet.py": "x = 1\n"}, gold=CASE.gold, tests=CASE.tests)
    candidate = lineage.candidate.model_copy(update={"problem_statement": STATEMENT})
    tests = tuple((test, FailureKind.ERROR) for test in CASE.fail_to_pass)
    verification = lineage.the_verification.model_copy(update={"FAIL_TO_PASS": tests})
    lineage = replace(lineage, candidate=candidate, verification=verification)
    with_model = replace(services, model=client())
    server.script = both
    verdict = judge(lineage, with_model)
    assert isinstance(verdict, Verdict)
    assert (len(verdict.opinions), verdict.agreement, verdict.addition, verdict.set_aside) == (3, 1.0, GOOD, None)
    assert verdict.tokens == 4 * 110
    assert verdict.id != judge(lineage, services).id
    made = derive(lineage.then(verdict), with_model)
    assert not isinstance(made, Rejection)
    (task,) = made
    assert task.problem_statement == f"{STATEMENT}\n\n{GOOD}"

    other = replace(lineage, candidate=candidate.model_copy(update={"problem_statement": f"{STATEMENT}Please."}))
    server.says(Fails(status=503))
    with pytest.raises(Transient):
        judge(other, with_model)
