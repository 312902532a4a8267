"""Complete a statement without a model.

The behaviour that the tests demand is appended, if the checks of additions accept it.
"""

from __future__ import annotations

import time
from dataclasses import replace

from taskdb.records.verdicts import Completion, StatementScores, append_addition
from verifiers.judge.assess import Assessment, assess
from verifiers.judge.case import JudgeCase
from verifiers.judge.completion.checks import CompletionDraft, find_completable, find_objection
from verifiers.judge.completion.interfaces import find_interfaces
from verifiers.judge.completion.requirements import find_requirements

COMPLETED_RULE = "message-not-stated"
"""Finding for which rules complete a statement. Changes that it does not set aside keep their statement."""


def complete_by_rules(case: JudgeCase, assessment: Assessment) -> Completion | None:
    """Complete the statement of a case; return None unless it is set aside for a message.

    Args:
        case: the statement, and the behaviour that the tests require.
        assessment: assessment of the case.
    """
    if assessment.set_aside != COMPLETED_RULE:
        return None
    started = time.monotonic()
    requirements = find_requirements(case, assessment.findings)
    interfaces = tuple(dict.fromkeys((*find_interfaces(case), *requirements.interfaces)))
    rejected: list[str] = []
    addition = ""
    # Values are left out where they alone make the addition too long or contain a line of the patch.
    for with_values in (True, False) if requirements.values else (False,):
        text = requirements.render(with_values=with_values)
        draft = CompletionDraft(
            case=case,
            text=text,
            findings=lambda statement: find_completable(case, statement),
            interfaces=interfaces,
            demanded=requirements.texts,
        )
        if not (objection := find_objection(draft)):
            addition = text
            break
        rejected.append(objection)
    return Completion(
        model="",
        prompt="",
        addition=addition,
        made_by="rules",
        rejected=tuple(rejected),
        seconds=time.monotonic() - started,
    )


def measure_completion(
    case: JudgeCase, assessment: Assessment, completion: Completion | None
) -> tuple[Completion | None, str | None]:
    """Return a completion with the scores of both versions of the statement, and the rule that still sets it aside.

    Args:
        case: case with the original statement.
        assessment: its assessment.
        completion: completion that may have no addition.
    """
    if completion is None or not completion.addition:
        return completion, assessment.set_aside
    completed = assess(replace(case, statement=append_addition(case.statement, completion.addition)))
    scores = {"before": _get_scores(assessment), "after": _get_scores(completed)}
    return completion.model_copy(update=scores), completed.set_aside


def _get_scores(assessment: Assessment) -> StatementScores:
    return StatementScores(
        underspecified=round(assessment.underspecified, 4), unfair_tests=round(assessment.unfair_tests, 4)
    )
