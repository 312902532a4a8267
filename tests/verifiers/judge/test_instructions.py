"""Votes on judged items, over real HTTP: only quoted ones count, and without a majority an item is void."""

from __future__ import annotations

import json

import pytest

from core.errors import Transient
from evaluation.instructions.checklist import VerdictState, decide_constraints
from evaluation.instructions.evidence import CheckState
from taskdb.records.instructions import JUDGED, BoundConstraint, InstructionOracle, InstructionSource
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure
from tests.evaluation.instructions.conversations import bash, make_answers, make_evidence
from tests.verifiers.judge.conftest import Asked
from verifiers.judge.instructions import InstructionJudge, gather_texts

CAUSE = BoundConstraint(
    name="explain-cause",
    family="text",
    source=InstructionSource.SYSTEM,
    text="Say what the cause was.",
    check=JUDGED,
    arguments={"question": "Does the final answer name the cause?"},
)
EVIDENCE = make_evidence(make_answers(["I look.", bash("ls src")], "The cause was an empty name."))


def vote(followed: str, quote: str = "cause was an empty", exchange: int = 1) -> ScriptedAnswer:
    fields = {"why": "It is there.", "exchange": exchange, "quote": quote, "followed": followed}
    return ScriptedAnswer(text=json.dumps(fields))


def test_a_majority_of_quoted_votes_decides(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(vote("yes"), vote("no"), vote("yes"))
    verdict = InstructionJudge(make_client()).decide(CAUSE, EVIDENCE)
    assert verdict is not None
    assert (verdict.state, verdict.exchange, verdict.quote) == (CheckState.PASSED, 1, "cause was an empty")
    prompt = "\n".join(message["content"] for message in server.requests[0]["messages"])
    for text in (CAUSE.text, "Does the final answer name the cause?", "--- answer 0\nI look.\n[bash] ls src"):
        assert text in prompt


@pytest.mark.parametrize(
    "wrong",
    [vote("yes", quote="never written"), vote("yes", exchange=7), vote("yes", quote=" "), ScriptedAnswer(text="Yes!")],
)
def test_a_vote_without_a_quote_does_not_count_and_an_item_without_a_majority_is_void(
    server: ModelServer, make_client: Asked, wrong: ScriptedAnswer
) -> None:
    server.set_answers(vote("yes"), wrong)
    assert InstructionJudge(make_client()).decide(CAUSE, EVIDENCE) is None


def test_a_void_item_is_no_breach_and_counts_as_void(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(vote("no", quote="never written"))
    oracle = InstructionOracle(constraints=(CAUSE,), dutiful="0" * 64, careless=())
    for judge in (InstructionJudge(make_client()).decide, None):
        checklist = decide_constraints(oracle, EVIDENCE, judge=judge)
        assert [verdict.state for verdict in checklist.verdicts] == [VerdictState.VOID]
        parts = checklist.list_parts()
        assert (parts["isr"], parts["csr"], parts["void_constraints"], parts["failed_constraints"]) == (1, 1, 1, 0)


def test_an_endpoint_that_fails_gives_no_verdict_at_all(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(ScriptedFailure())
    with pytest.raises(Transient):
        InstructionJudge(make_client()).decide(CAUSE, EVIDENCE)


def test_a_conversation_without_an_answer_needs_no_model(server: ModelServer, make_client: Asked) -> None:
    verdict = InstructionJudge(make_client()).decide(CAUSE, make_evidence(make_answers([bash("ls")])))
    assert verdict is not None
    assert (verdict.state, server.requests) == (CheckState.FAILED, [])


def test_each_call_is_shown_once_and_thoughts_are_not() -> None:
    (answer,) = make_answers([bash("cat a.py && git status")])
    thinking = {**answer.message, "reasoning_content": "Hm."}
    evidence = make_evidence([*make_answers([bash("cat a.py && git status")])])
    assert gather_texts(evidence.actions) == {0: "[bash] cat a.py && git status"}
    assert "Hm." not in str(gather_texts(make_evidence([type(answer)(exchange=0, message=thinking)]).actions))
