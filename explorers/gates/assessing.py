"""The gates of a question, in their order: programs, the judge of clues, samples without tools, solvers, rivals."""

from __future__ import annotations

from collections.abc import Callable

from explorers.gates.rivals import check_entities, check_rivals
from explorers.gates.samples import check_closed_book, check_difficulty, check_path, run_solvers
from explorers.gates.subject import GateFailure, GateFindings, GateSubject
from explorers.gates.texts import (
    check_answer_kept,
    check_answer_support,
    check_benchmarks,
    check_duplicates,
    check_implications,
    check_leaks,
    check_quotes,
    check_ranks,
    check_time,
)

QuestionGate = Callable[[GateSubject, GateFindings], GateFailure | None]

GATES: tuple[QuestionGate, ...] = (
    check_answer_support,
    check_quotes,
    check_answer_kept,
    check_time,
    check_leaks,
    check_ranks,
    check_duplicates,
    check_benchmarks,
    check_implications,
    check_entities,
    check_closed_book,
    run_solvers,
    check_rivals,
    check_difficulty,
    check_path,
)
"""The first gate that fails rejects the question. Answers of solvers are judged after the rivals: a question with two
answers is not unsolved, as its solvers may have found the other answer."""


def assess_question(subject: GateSubject) -> tuple[GateFindings, GateFailure | None]:
    """Return the measurements of the gates, and the failure of the first that rejects the question.

    Raises:
        Transient: a judge gave no verdict, or the endpoint failed.
        InputError, CancelledRunError: as `LanguageModel.complete`.
    """
    findings = GateFindings()
    for gate in GATES:
        failure = gate(subject, findings)
        if failure is not None:
            return findings, failure
    return findings, None
