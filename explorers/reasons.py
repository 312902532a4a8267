"""Why a seed, a walk, a question or a round of evolution is rejected."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason of the stage `explorers`."""

    # Seeds and walks
    UNKNOWN_SEED = "unknown-seed"
    """The search finds nothing for it, and it names no page."""
    SHORT_WALK = "short-walk"
    """The walk ended early although it was sent on."""
    FEW_FACTS = "few-facts"
    """Too few facts have a quote that is in the page."""

    # Answers of models, after all attempts
    UNUSABLE_ANSWER = "unusable-answer"
    TOO_LONG = "too-long"
    """The request exceeds the context length of the model."""

    # The gates, in their order
    UNSUPPORTED_ANSWER = "unsupported-answer"
    """The answer or an alias is in no quoted page."""
    UNSUPPORTED_CLUE = "unsupported-clue"
    """The quote of a clue is not in its page, or does not imply the clue."""
    ANSWER_CHANGED = "answer-changed"
    TIME_DEPENDENT = "time-dependent"
    LEAK = "leak"
    """The answer, an alias, or a name that was removed or blurred is in the question."""
    DIRECT_HIT = "direct-hit"
    """A search for the question or a clue leads straight to the page of the answer."""
    NEAR_DUPLICATE = "near-duplicate"
    CONTAMINATED = "contaminated"
    """It shares words, or a hash, with a benchmark that the user names."""
    KNOWN_WITHOUT_SEARCH = "known-without-search"
    NOT_UNIQUE = "not-unique"
    """Another answer fulfils every clue."""
    UNSOLVED = "unsolved"
    """No sample of a solver is right. Kept aside, never for reinforcement learning."""
    TOO_EASY = "too-easy"
    PATH_NOT_REPEATABLE = "path-not-repeatable"
    """The calls of no right sample gave the same results again and led to its quotes."""


CURABLE = frozenset({Reason.DIRECT_HIT, Reason.KNOWN_WITHOUT_SEARCH, Reason.TOO_EASY})
"""Reasons that a further round may cure: the next round is made of a question that was rejected for it."""
