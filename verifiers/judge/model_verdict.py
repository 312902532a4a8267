"""Extend an assessment with language models: opinions, combined probabilities, a completed statement.

A model can improve a case only with an addition that the rules accept, and it cannot set a case aside: its opinions
change the probabilities and are stored with their quotes.
"""

from __future__ import annotations

from dataclasses import dataclass

from taskdb.records.verdicts import Completion
from verifiers.judge.assess import Assessment
from verifiers.judge.case import JudgeCase
from verifiers.judge.client import JudgeClient
from verifiers.judge.completion import complete, complete_by_rules, measure_completion
from verifiers.judge.completion.checks import find_completable
from verifiers.judge.opinions import OpinionPanel, collect_opinions

OPINION_WEIGHT = 0.5
"""Weight of opinions relative to the rules' probability. It is not fitted to labels, since it has to suit any model."""


@dataclass(frozen=True, kw_only=True)
class ModelVerdict:
    """Verdict on a case with language models.

    Probabilities are 0..1 and refer to the original statement; `set_aside` refers to the statement with its addition.
    """

    underspecified: float
    unfair_tests: float
    set_aside: str | None
    panel: OpinionPanel
    completion: Completion | None

    @property
    def addition(self) -> str:
        """The text appended to the statement; empty if there is none."""
        return self.completion.addition if self.completion else ""


def judge_with_models(case: JudgeCase, assessment: Assessment, client: JudgeClient) -> ModelVerdict:
    """Collect opinions, and an addition if rules or opinions find something missing.

    The model writes the addition. Where it has none that is accepted, rules write an addition as they do without a
    model.

    Raises:
        Transient, InputError, Stopped: see `collect_opinions`.
    """
    case = case.cache_searches()
    panel = collect_opinions(case, client)
    completion = complete(case, client, lambda statement: find_completable(case, statement), panel.missing)
    if (completion is None or not completion.addition) and (by_rules := complete_by_rules(case, assessment)):
        completion = _merge_attempts(completion, by_rules)
    completion, set_aside = measure_completion(case, assessment, completion)
    return ModelVerdict(
        underspecified=combine_probabilities(assessment.underspecified, panel.underspecified),
        unfair_tests=combine_probabilities(assessment.unfair_tests, panel.unfair_tests),
        set_aside=set_aside,
        panel=panel,
        completion=completion,
    )


def _merge_attempts(by_model: Completion | None, by_rules: Completion) -> Completion:
    """Return the rules' completion with the costs and rejections of a model that found no addition before."""
    if by_model is None:
        return by_rules
    rejected = (*by_model.rejected, *by_rules.rejected)
    return by_model.model_copy(
        update={"addition": by_rules.addition, "made_by": by_rules.made_by, "rejected": rejected}
    )


def combine_probabilities(rules: float, opinions: float | None) -> float:
    """Return the weighted average of the rules' and the opinions' probability; the former without valid opinions."""
    return rules if opinions is None else (1 - OPINION_WEIGHT) * rules + OPINION_WEIGHT * opinions
