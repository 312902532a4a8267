"""All that speaks for a kind, gathered: texts, labels, linked issues, paths, the diff, who wrote it, what a rule found.

Weights are logarithms of odds and add up, as in naive Bayes; where people labelled texts they are learned
(`weights.json`), elsewhere set by hand: the numbers stand beside what they weigh. docs/tags.md says which are which.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from miner.changes import Reason
from miner.tags.issues import issue_features
from miner.tags.labels import kind_of_label, kinds_of_convention
from miner.tags.lexicon import PHRASES, SPEAKS_FOR
from miner.tags.weights import MOST_SIGNS, learned
from taskdb.discussion import LinkedIssue
from taskdb.tags import ChangeKind as K
from taskdb.tags import Sign

LABEL = 4.0
"""Weight of a label on the change."""
CONVENTION = 4.5
"""Weight of a conventional title, such as `fix(core): ...`."""
ISSUE_LABEL = 2.5
"""Weight of a label on an issue that the change closes."""
ISSUE_WORDS = 1.2
"""Largest weight of what an issue's words say; across projects they are a weak witness."""
BIAS: Mapping[K, float] = defaultdict(lambda: -2.4, {K.FEATURE: -1.6, K.PERFORMANCE: -2.6, K.CHORE: -2.8})
"""Odds of a kind before anything was seen, for kinds whose weights are not learned."""
LEARNED = {K.BUGFIX: "corrective", K.REFACTOR: "refactor"}
"""Kind -> output of the learned weights for a change's own words."""
OF_ISSUES = {K.BUGFIX: "issue-bug", K.FEATURE: "issue-feature"}
OF_WORDS: Mapping[str, tuple[tuple[K, float, float], ...]] = {
    **SPEAKS_FOR,
    "speed": ((K.PERFORMANCE, 4.0, 2.7),),
    "memory": ((K.PERFORMANCE, 1.8, 0.4),),
}
"""Group of words -> kinds, with the weight in the title and in the text."""
FIRST_WORD = 0.8
"""What the group of a title's first word weighs more."""
OF_REASONS: Mapping[str, tuple[K, float]] = {
    Reason.FORMATTING_ONLY: (K.STYLE, 6.0), Reason.DOCSTRINGS_ONLY: (K.DOCUMENTATION, 6.0),
    Reason.MOVES_ONLY: (K.REFACTOR, 5.0), Reason.VERSION_BUMP: (K.RELEASE, 5.0), Reason.BRANCH_MERGE: (K.MERGE, 6.0),
}  # fmt: skip
"""What the miner's rules found out by reading both trees, and the kind that it proves."""


_PHRASES = tuple((kind, re.compile(pattern, re.IGNORECASE), weight) for kind, weight, pattern in PHRASES)


@dataclass
class Evidence:
    """Signs by kind, and the odds they add up to."""

    odds: dict[K, float] = field(default_factory=dict)
    signs: dict[K, list[Sign]] = field(default_factory=dict)

    def add(self, kind: K, rule: str, quote: str, weight: float) -> None:
        """One sign."""
        self.odds[kind] = self.odds.get(kind, BIAS[kind]) + weight
        self.signs.setdefault(kind, []).append(Sign(rule=rule, quote=quote[:80], weight=weight))

    def of_words(self, found: Mapping[str, str]) -> None:
        """What the change's own title and text say; `found`: their features."""
        first = next((quote for name, quote in found.items() if name.startswith("0:")), None)
        for name, quote in found.items():
            place, _, group = name.partition(":")
            for kind, title, body in OF_WORDS.get(group, ()) if place in ("T", "B") else ():
                weight = body if place == "B" else title + FIRST_WORD * (quote == first and title > 0)
                if weight:
                    self.add(kind, "title" if place == "T" else "text", quote, round(weight, 2))
        for kind, output in LEARNED.items():
            model = learned(output)
            self.odds[kind] = self.odds.get(kind, 0.0) + model.odds(found)
            self.signs.setdefault(kind, []).extend(model.signs(found, "words"))

    def of_title(self, title: str) -> None:
        """What a conventional title names, and what is said in a phrase."""
        for kind, quote in kinds_of_convention(title):
            self.add(kind, "convention", quote, CONVENTION)
        for kind, pattern, weight in _PHRASES:
            if said := pattern.search(title):
                self.add(kind, "phrase", said[0], weight)

    def of_labels(self, labels: Iterable[str], rule: str = "label", weight: float = LABEL) -> None:
        """What labels name."""
        for label in labels:
            if kind := kind_of_label(label):
                self.add(kind, rule, label, weight)

    def of_issues(self, issues: Iterable[LinkedIssue]) -> None:
        """What linked issues say of themselves, by labels and words."""
        for issue in issues:
            self.of_labels(issue.labels, f"label of {issue.issue}", ISSUE_LABEL)
            found = issue_features(issue.title, issue.body)
            for kind, output in OF_ISSUES.items():
                weight = max(-ISSUE_WORDS, min(ISSUE_WORDS, learned(output).odds(found)))
                self.add(kind, f"words of {issue.issue}", issue.title, round(weight, 2))

    def of_signs(self, signs: Sequence[tuple[K, str, str, float]]) -> None:
        """Signs as paths and diff give them."""
        for sign in signs:
            self.add(*sign)

    def of_reason(self, reason: str, detail: str) -> None:
        """What the rule that rejected the change proved of it."""
        if reason in OF_REASONS:
            kind, weight = OF_REASONS[reason]
            self.add(kind, f"rule:{reason}", detail, weight)

    def strongest(self, kind: K) -> tuple[Sign, ...]:
        """The signs that weigh most for or against a kind."""
        ranked = sorted(self.signs.get(kind, ()), key=lambda sign: (-abs(sign.weight), sign.rule, sign.quote))
        return tuple(ranked[:MOST_SIGNS])
