"""Extend an assessment with language models: opinions, combined probabilities, a completed statement.

A model can improve a case only with an addition that the rules accept, and it cannot set a case aside: its opinions
change the probabilities and are stored with their quotes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from taskdb.verdicts import Completion, Finding, append_addition
from verifiers.judge.assess import Assessment, find_decisive_rule
from verifiers.judge.case import JudgeCase, TextSearch
from verifiers.judge.client import JudgeClient
from verifiers.judge.completion import complete
from verifiers.judge.opinions import OpinionPanel, collect_opinions
from verifiers.judge.rules import apply_rules

COMPLETABLE_RULES = frozenset({"message-not-stated", "name-not-stated"})
"""Findings that an addition has to resolve. Values are not included: an expected value may follow from the statement,
so values are added only if models report them as missing. An empty statement is not completed."""
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


def judge_with_models(case: JudgeCase, found: Assessment, client: JudgeClient) -> ModelVerdict:
    """Collect opinions, and an addition if rules or opinions find something missing.

    Raises:
        Transient, InputError, Stopped: see `collect_opinions`.
    """
    case = replace(case, find_in_base_tree=_cache_search(case.find_in_base_tree))
    panel = collect_opinions(case, client)
    completion = complete(case, client, lambda statement: find_completable(case, statement), panel.missing)
    set_aside = found.set_aside
    if completion and completion.addition:
        completed_case = replace(case, statement=append_addition(case.statement, completion.addition))
        set_aside = find_decisive_rule(apply_rules(completed_case))
    return ModelVerdict(
        underspecified=combine_probabilities(found.underspecified, panel.underspecified),
        unfair_tests=combine_probabilities(found.unfair_tests, panel.unfair_tests),
        set_aside=set_aside,
        panel=panel,
        completion=completion,
    )


def find_completable(case: JudgeCase, statement: str) -> list[Finding]:
    """Return the findings that an addition to this statement still has to resolve."""
    return [found for found in apply_rules(replace(case, statement=statement)) if found.rule in COMPLETABLE_RULES]


def combine_probabilities(rules: float, opinions: float | None) -> float:
    """Return the weighted average of the rules' and the opinions' probability; the former without valid opinions."""
    return rules if opinions is None else (1 - OPINION_WEIGHT) * rules + OPINION_WEIGHT * opinions


def _cache_search(search: TextSearch) -> TextSearch:
    """Return a search that looks up each text once: rules run on every addition, and a tree may be large."""
    known: dict[str, bool] = {}

    def search_cached(texts: Collection[str]) -> set[str]:
        new = [text for text in texts if text not in known]
        found = search(new) if new else set()
        known.update({text: text in found for text in new})
        return {text for text in texts if known[text]}

    return search_cached
