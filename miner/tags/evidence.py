"""Evidence for kinds, collected from texts, labels, linked issues, paths, the diff, the author and rejecting rules.

Weights are logarithms of odds and add up, as in naive Bayes; where labelled texts exist they are learned
(`weights.json`), elsewhere set by hand next to the signs. docs/guide/mine/tags.md lists which are which.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from miner.changes import Reason
from miner.tags.issues import extract_issue_features
from miner.tags.labels import parse_conventional_title, parse_label
from miner.tags.lexicon import GROUP_WEIGHTS, PHRASES
from miner.tags.signs import Sign
from miner.tags.weights import MAX_SIGNS, load_model
from taskdb.records.discussion import LinkedIssue
from taskdb.records.tags import ChangeKind as K
from taskdb.records.tags import TagEvidence

LABEL_WEIGHT = 4.0
"""Weight of a label on the change."""
CONVENTION_WEIGHT = 4.5
"""Weight of a conventional title, such as `fix(core): ...`."""
ISSUE_LABEL_WEIGHT = 2.5
"""Weight of a label on an issue that the change closes."""
ISSUE_WORDS_WEIGHT = 1.2
"""Largest weight of an issue's words; they are weak evidence across projects."""
BIAS: Mapping[K, float] = defaultdict(lambda: -2.4, {K.FEATURE: -1.6, K.PERFORMANCE: -2.6, K.CHORE: -2.8})
"""Prior log odds of kinds whose weights are not learned."""
CHANGE_MODELS = {K.BUGFIX: "corrective", K.REFACTOR: "refactor"}
"""Kind -> learned model for a change's own words."""
ISSUE_MODELS = {K.BUGFIX: "issue-bug", K.FEATURE: "issue-feature"}
WORD_WEIGHTS: Mapping[str, tuple[tuple[K, float, float], ...]] = {
    **GROUP_WEIGHTS,
    "speed": ((K.PERFORMANCE, 4.0, 2.7),),
    "memory": ((K.PERFORMANCE, 1.8, 0.4),),
}
"""Group of words -> kinds, with the weight in the title and in the text."""
FIRST_WORD_WEIGHT = 0.8
"""Additional weight of the group of a title's first word."""
REASON_WEIGHTS: Mapping[str, tuple[K, float]] = {
    Reason.FORMATTING_ONLY: (K.STYLE, 6.0),
    Reason.DOCSTRINGS_ONLY: (K.DOCUMENTATION, 6.0),
    Reason.MOVES_ONLY: (K.REFACTOR, 5.0),
    Reason.VERSION_BUMP: (K.RELEASE, 5.0),
    Reason.BRANCH_MERGE: (K.MERGE, 6.0),
}
"""Reason of a rejection -> kind that the rule proves, with its weight."""


_PHRASES = tuple((kind, re.compile(pattern, re.IGNORECASE), weight) for kind, weight, pattern in PHRASES)


@dataclass
class KindEvidence:
    """Signs by kind, and the log odds they add up to."""

    odds: dict[K, float] = field(default_factory=dict)
    signs: dict[K, list[TagEvidence]] = field(default_factory=dict)

    def add(self, kind: K, rule: str, quote: str, weight: float) -> None:
        """Add a sign by its parts."""
        self.odds[kind] = self.odds.get(kind, BIAS[kind]) + weight
        self.signs.setdefault(kind, []).append(TagEvidence(rule=rule, quote=quote[:80], weight=weight))

    def add_words(self, features: Mapping[str, str]) -> None:
        """Add the words of the change's own title and text; `features`: their features."""
        first = next((quote for name, quote in features.items() if name.startswith("0:")), None)
        for name, quote in features.items():
            place, _, group = name.partition(":")
            for kind, title, body in WORD_WEIGHTS.get(group, ()) if place in ("T", "B") else ():
                weight = body if place == "B" else title + FIRST_WORD_WEIGHT * (quote == first and title > 0)
                if weight:
                    self.add(kind, "title" if place == "T" else "text", quote, round(weight, 2))
        for kind, output in CHANGE_MODELS.items():
            model = load_model(output)
            self.odds[kind] = self.odds.get(kind, 0.0) + model.compute_log_odds(features)
            self.signs.setdefault(kind, []).extend(model.list_signs(features, "words"))

    def add_title(self, title: str) -> None:
        """Add the kinds of a conventional title, and phrases."""
        for kind, quote in parse_conventional_title(title):
            self.add(kind, "convention", quote, CONVENTION_WEIGHT)
        for kind, pattern, weight in _PHRASES:
            if match := pattern.search(title):
                self.add(kind, "phrase", match[0], weight)

    def add_labels(self, labels: Iterable[str], rule: str = "label", weight: float = LABEL_WEIGHT) -> None:
        """Add the kinds of labels."""
        for label in labels:
            if kind := parse_label(label):
                self.add(kind, rule, label, weight)

    def add_issues(self, issues: Iterable[LinkedIssue]) -> None:
        """Add labels and words of linked issues."""
        for issue in issues:
            self.add_labels(issue.labels, f"label of {issue.issue}", ISSUE_LABEL_WEIGHT)
            features = extract_issue_features(issue.title, issue.body)
            for kind, output in ISSUE_MODELS.items():
                weight = max(
                    -ISSUE_WORDS_WEIGHT, min(ISSUE_WORDS_WEIGHT, load_model(output).compute_log_odds(features))
                )
                self.add(kind, f"words of {issue.issue}", issue.title, round(weight, 2))

    def add_signs(self, signs: Sequence[Sign]) -> None:
        """Add signs from paths or the diff."""
        for sign in signs:
            self.add(*sign)

    def add_reason(self, reason: str, detail: str) -> None:
        """Add the kind that the rejecting rule proves."""
        if reason in REASON_WEIGHTS:
            kind, weight = REASON_WEIGHTS[reason]
            self.add(kind, f"rule:{reason}", detail, weight)

    def list_strongest(self, kind: K) -> tuple[TagEvidence, ...]:
        """Return the signs with the largest weights for or against a kind."""
        ranked = sorted(self.signs.get(kind, ()), key=lambda sign: (-abs(sign.weight), sign.rule, sign.quote))
        return tuple(ranked[:MAX_SIGNS])
