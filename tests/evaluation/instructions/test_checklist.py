"""Checklists: verdicts on all constraints of a task, and the rates of OctoBench."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from core.errors import InputError
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checklist import (
    ConstraintChecklist,
    ConstraintVerdict,
    VerdictState,
    decide_after_feedback,
    decide_constraints,
)
from evaluation.instructions.submission import extract_patch, read_submission, write_submission
from taskdb.records.instructions import BoundConstraint, InstructionOracle, InstructionSource
from tests.evaluation.instructions.conversations import bash, make_answers, make_evidence

HASH = "0" * 64


def bind(name: str, check: str, turn: int = 1, until: int | None = None, **fields: object) -> BoundConstraint:
    arguments = fields.pop("arguments", {})
    return BoundConstraint.model_validate(
        {
            "name": name,
            "family": "own",
            "source": "system",
            "text": name,
            "check": check,
            "turn": turn,
            "until": until,
            "arguments": arguments,
            **fields,
        }
    )


def make_oracle(*constraints: BoundConstraint) -> InstructionOracle:
    return InstructionOracle(constraints=constraints, dutiful=HASH, careless=())


PUSH = bind("no-push", "never-command", arguments={"commands": ["git push"]})
CLOSE = bind("close", "answer-ends", arguments={"line": "The end."}, source="memory")
READ = bind("read", "read-before-edit", source="repository")


def list_states(oracle: InstructionOracle, *answers: object, missing: tuple[str, ...] = ()) -> dict[str, str]:
    evidence = make_evidence(make_answers(*answers))  # type: ignore[arg-type]
    checklist = decide_constraints(oracle, evidence, not_delivered=missing)
    return {verdict.constraint.name: verdict.state.value for verdict in checklist.verdicts}


def test_each_constraint_gets_a_verdict_of_its_own() -> None:
    oracle = make_oracle(PUSH, CLOSE, READ)
    assert list_states(oracle, [bash("ls")], "The end.") == {"no-push": "passed", "close": "passed", "read": "inactive"}
    assert list_states(oracle, [bash("git push")], "The end.") == {
        "no-push": "failed",
        "close": "passed",
        "read": "inactive",
    }
    assert list_states(oracle, "Bye.", missing=("close",))["close"] == "not-delivered"


@pytest.mark.parametrize("winner", ["no-push", "push-often"])
def test_a_constraint_that_is_overridden_never_counts_whichever_it_is(winner: str) -> None:
    often = bind("push-often", "command-run", arguments={"commands": ["git push"]})
    loser = "push-often" if winner == "no-push" else "no-push"
    constraints = [
        constraint.model_copy(update={"overridden_by": winner}) if constraint.name == loser else constraint
        for constraint in (PUSH, often)
    ]
    states = list_states(make_oracle(*constraints), [bash("echo x > a.py")], [bash("git push")])
    assert states == {loser: "overridden", winner: "failed" if winner == "no-push" else "passed"}


def test_a_constraint_is_in_force_from_its_turn_to_its_last() -> None:
    answers = [*make_answers([bash("git push")]), *make_answers([bash("git push")], turn=2, first=1)]
    early, late = PUSH.model_copy(update={"until": 1}), PUSH.model_copy(update={"turn": 2})
    for constraint, exchange in ((early, 0), (late, 1)):
        (verdict,) = decide_constraints(make_oracle(constraint), make_evidence(answers)).verdicts
        assert verdict.result is not None
        assert verdict.result.exchange == exchange
    (verdict,) = decide_constraints(make_oracle(late), make_evidence(answers[:1])).verdicts
    assert verdict.state is VerdictState.INACTIVE


@pytest.mark.parametrize("seed", range(20))
def test_rates_of_drawn_verdicts_are_those_of_counting(seed: int) -> None:
    rng = random.Random(seed)
    sources, states = list(InstructionSource), list(VerdictState)
    verdicts = [
        ConstraintVerdict(
            constraint=bind(f"c{number}", "read-before-edit", turn=rng.randint(1, 3), source=rng.choice(sources)),
            state=rng.choice(states),
        )
        for number in range(rng.randint(0, 12))
    ]
    parts = ConstraintChecklist(verdicts=verdicts).list_parts()
    n_passed = [verdict.state.value for verdict in verdicts].count("passed")
    n_failed = [verdict.state.value for verdict in verdicts].count("failed")
    expected = Fraction(n_passed, n_passed + n_failed) if n_passed + n_failed else Fraction(1)
    assert parts["csr"] == float(expected)
    assert (parts["isr"], parts["failed_constraints"]) == (float(n_failed == 0), n_failed)
    for source in sources:
        own = [verdict.state.value for verdict in verdicts if verdict.constraint.source is source]
        n_active = own.count("passed") + own.count("failed")
        assert parts.get(f"csr_{source}") == (own.count("passed") / n_active if n_active else None)


def test_a_submission_is_read_as_it_was_written() -> None:
    answers = make_answers(["I push.", bash("git push")], "Done.")
    for patch in (b"--- a\n+++ b\n", b"caf\xe9\n", b""):
        data = write_submission(patch, answers, ["close"])
        given = read_submission(data)
        assert (given.patch_bytes, given.list_answers(), given.not_delivered) == (patch, answers, ("close",))
        assert extract_patch(data) == patch
    assert extract_patch(b"--- a\n") == b"--- a\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"--- a/x\n+++ b/x\n", "no JSON of a patch and a conversation"),
        (b"{}", "field answers is missing"),
        (b'{"answers": [], "prompt": 1}', "field prompt is not known"),
        (b'{"answers": [{"exchange": "x", "message": {}}]}', "field answers.0.exchange is not a number"),
        (b"[]", "the submission: it is not an object"),
    ],
)
def test_other_documents_are_refused_in_a_line(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_submission(data)
    assert message in caught.value.format_line()


def test_changed_files_know_their_added_lines() -> None:
    change = ChangedFile("a.py", b"a\nb\nc\n", b"a\nB\nc\nd\n")
    assert (change.added, change.n_removed, change.is_new) == ([(2, "B"), (4, "d")], 1, False)
    assert ChangedFile("a.py", None, b"a\n").added == [(1, "a")]


def test_feedback_lets_a_command_be_forgiven_but_nothing_that_is_missing_still() -> None:
    oracle = make_oracle(PUSH, CLOSE, READ)
    before = make_answers([bash("git push")], [bash("sed -i s/a/b/ a.py")], "Bye.")
    for last, expected in (
        (["The end."], {"no-push": "passed", "close": "passed", "read": "failed"}),
        ([[bash("git push")], "Bye."], {"no-push": "failed", "close": "failed", "read": "failed"}),
    ):
        evidence = make_evidence([*before, *make_answers(*last, turn=2, first=3)])  # type: ignore[arg-type]
        checklist = decide_constraints(oracle, evidence)
        after = decide_after_feedback(checklist, evidence, 2, ["no-push", "close", "read"])
        assert {verdict.constraint.name: verdict.state.value for verdict in after.verdicts} == expected
    unnamed = decide_after_feedback(checklist, make_evidence(before), 2, [])
    assert {verdict.state for verdict in unnamed.verdicts} == {VerdictState.FAILED}
