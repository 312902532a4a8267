"""Verdicts of rules and models together."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.llm.client import ChatModel
from core.errors import Transient
from mergemill.pipeline.kinds import derive
from taskdb.records import FailureKind, Rejection
from taskdb.records.verdicts import Verdict
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure
from tests.verifiers.judge.change import CASE, STATEMENT, make_answer_json
from tests.verifiers.judge.conftest import Asked
from tests.verifiers.judge.test_completion import GOOD
from tests.verifiers.judge.test_stage import make_verified_lineage
from verifiers.judge import judge
from verifiers.judge.assess import assess
from verifiers.judge.model_verdict import judge_with_models

LINK = "greet or shall I rather stay at home, see https://github.com/ada/greet/pull/3"
UNCOMPLETABLE = replace(
    CASE,
    gold_patch=CASE.gold_patch.replace("greet?", LINK),
    test_patch=CASE.test_patch.replace('greet"):', f'{LINK}"):'),
)
"""A change whose message contains a link to a change, which no addition may have."""


def reply_to_both(request: dict[str, Any]) -> ScriptedAnswer:
    """Reply to both kinds of prompts."""
    wanted = request["response_format"]["json_schema"]["name"]
    return ScriptedAnswer(text=make_answer_json() if wanted == "judgeanswer" else json.dumps({"addition": GOOD}))


def test_an_addition_resolves_the_findings_so_the_case_is_not_set_aside(
    server: ModelServer, make_client: Asked
) -> None:
    assessment = assess(CASE)
    assert {"message-not-stated", "name-not-stated"} <= {finding.rule for finding in assessment.findings}
    assert assessment.set_aside == "message-not-stated"
    server.script = reply_to_both
    verdict = judge_with_models(CASE, assessment, make_client(judge_samples=2))
    assert (verdict.addition, verdict.set_aside) == (GOOD, None)
    completion = verdict.completion
    assert completion is not None
    assert completion.made_by == "model"
    assert completion.before is not None
    assert completion.before.underspecified == pytest.approx(assessment.underspecified, abs=1e-4)
    assert completion.after is not None
    assert completion.after.underspecified < completion.before.underspecified
    assert verdict.underspecified == pytest.approx((assessment.underspecified + 1 / 3) / 2)
    assert verdict.unfair_tests == pytest.approx((assessment.unfair_tests + 2 / 3) / 2)
    assert (len(verdict.panel.valid_opinions), verdict.panel.agreement) == (2, 1.0)


def test_invalid_opinions_without_an_addition_keep_the_rules_verdict(server: ModelServer, make_client: Asked) -> None:
    assessment = assess(UNCOMPLETABLE)
    server.set_answers(ScriptedAnswer(text="All is well."))
    verdict = judge_with_models(UNCOMPLETABLE, assessment, make_client())
    assert (verdict.underspecified, verdict.unfair_tests) == (assessment.underspecified, assessment.unfair_tests)
    assert (verdict.addition, verdict.set_aside) == ("", "message-not-stated")
    assert verdict.panel.opinions[0].invalid_reason
    assert verdict.completion is not None
    by_model, by_rules = verdict.completion.rejected
    assert by_model.startswith("no usable answer")
    assert "a link to a change" in by_rules


def test_rules_complete_the_statement_where_the_models_addition_is_rejected(
    server: ModelServer, make_client: Asked
) -> None:
    server.set_answers(
        ScriptedAnswer(text=make_answer_json()),
        *[ScriptedAnswer(text=json.dumps({"addition": "Do it as it should be."}))] * 3,
    )
    verdict = judge_with_models(CASE, assess(CASE), make_client())
    assert verdict.completion is not None
    assert verdict.set_aside is None
    assert (verdict.completion.made_by, verdict.completion.model) == ("rules", "scripted")
    assert "must contain `whom shall I greet`" in verdict.addition
    assert len(verdict.completion.rejected) == 3
    assert verdict.completion.tokens == 3 * 110


def test_a_model_cannot_remove_a_finding(server: ModelServer, make_client: Asked) -> None:
    fine = {"missing": [], "underspecified": 0, "unfair_tests": 0}
    server.set_answers(
        ScriptedAnswer(text=make_answer_json(**fine)),
        ScriptedAnswer(text=json.dumps({"addition": "The statement is complete as it is."})),
    )
    assert judge_with_models(UNCOMPLETABLE, assess(UNCOMPLETABLE), make_client()).set_aside == "message-not-stated"


def test_a_failing_endpoint_gives_no_model_verdict(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(ScriptedAnswer(text=make_answer_json()), ScriptedFailure(status=500))
    with pytest.raises(Transient):
        judge_with_models(CASE, assess(CASE), make_client())


def test_the_base_tree_is_searched_once_for_each_text(server: ModelServer, make_client: Asked) -> None:
    searched: list[str] = []

    def mentions(texts: Collection[str]) -> set[str]:
        searched.extend(texts)
        return set()

    server.set_answers(
        ScriptedAnswer(text=make_answer_json()),
        *[ScriptedAnswer(text=json.dumps({"addition": "Do it as it should be."}))] * 3,
    )
    verdict = judge_with_models(replace(CASE, find_in_base_tree=mentions), assess(CASE), make_client())
    assert verdict.completion is not None
    assert len(verdict.completion.rejected) == 3
    assert searched
    assert len(searched) == len(set(searched))


def test_a_verified_change_is_judged_with_its_opinions_and_its_addition(
    server: ModelServer, client: Callable[..., ChatModel], tmp_path: Path
) -> None:
    lineage, services = make_verified_lineage(
        tmp_path, base={"greet.py": "x = 1\n"}, gold_patch=CASE.gold_patch, test_patch=CASE.test_patch
    )
    candidate = lineage.candidate.model_copy(update={"problem_statement": STATEMENT})
    tests = tuple((test, FailureKind.ERROR) for test in CASE.fail_to_pass)
    verification = lineage.require_verification().model_copy(update={"FAIL_TO_PASS": tests})
    lineage = replace(lineage, candidate=candidate, verification=verification)
    with_model = replace(services, model=client())
    server.script = reply_to_both
    verdict = judge(lineage, with_model)
    assert isinstance(verdict, Verdict)
    assert (len(verdict.opinions), verdict.agreement, verdict.addition, verdict.set_aside) == (3, 1.0, GOOD, None)
    assert verdict.tokens == 4 * 110
    assert verdict.id != judge(lineage, services).id
    made = derive(lineage.with_record(verdict), with_model)
    assert not isinstance(made, Rejection)
    (task,) = made
    assert task.problem_statement == f"{STATEMENT}\n\n{GOOD}"

    other = replace(lineage, candidate=candidate.model_copy(update={"problem_statement": f"{STATEMENT}Please."}))
    server.set_answers(ScriptedFailure(status=503))
    with pytest.raises(Transient):
        judge(other, with_model)
