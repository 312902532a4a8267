"""Check of statement variants by the rules of the judge.

An honest solver must find in them the facts that the tests need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from backends.services import Services
from derivers.base import KindRejection
from derivers.variants import Reason
from taskdb.records import Task
from taskdb.records.lineage import Lineage
from verifiers.judge.assess import find_decisive_rule
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules import apply_rules
from verifiers.judge.stage import build_case

MIN_TEXT_LENGTH = {"name": 3, "string": 2, "number": 2}
"""Category of token -> characters from which it is specific."""
LEFT_OPEN = re.compile(r"\w+-not-stated$|solution-")
"""Rules whose findings a variant must not have unless its original has them, too."""


def check_variant(lineage: Lineage, task: Task, services: Services) -> KindRejection | None:
    """Return why the statement of a variant is rejected, or None.

    It is compared with the original: a detail that both leave open is a matter for the judge, not for the variant.
    """
    original = build_case(lineage, services)
    if lineage.verdict is not None and lineage.verdict.addition:
        original = replace(original, statement=f"{original.statement}\n\n{lineage.verdict.addition}")
    variant = replace(original, statement=task.problem_statement, hints="")
    findings = apply_rules(variant)
    known = {(finding.rule, finding.quote) for finding in apply_rules(original)}
    rule = find_decisive_rule(findings)
    finding = next((finding for finding in findings if finding.rule == rule), None) or next(
        (
            finding
            for finding in findings
            if LEFT_OPEN.match(finding.rule) and (finding.rule, finding.quote) not in known
        ),
        None,
    )
    if finding is not None:
        return KindRejection(finding.rule, f"{finding.detail}: {finding.quote!r}")
    if lost := next(_find_lost_details(original, variant), None):
        return KindRejection(Reason.LOSES_DETAIL, f"the tests use {lost!r}, which only the original contains")
    return None


def _find_lost_details(original: JudgeCase, variant: JudgeCase) -> Iterator[str]:
    """Yield the names that the tests use and the original contains, but neither the variant nor the base tree.

    A name counts where the gold patch uses it, too: others are the tests' own.
    """
    gold_names = {token.text for _, token in original.gold_tokens if token.category == "name"}
    texts = dict.fromkeys(
        text
        for added in original.test_tokens
        if len(text := added.token.value.strip()) >= MIN_TEXT_LENGTH.get(added.token.category, len(text) + 1)
        and (added.token.category != "name" or text in gold_names)
    )
    lost = [text for text in texts if _contains(original.statement, text) and not _contains(variant.statement, text)]
    known = original.find_in_base_tree(lost) if lost else set()
    yield from (text for text in lost if text not in known)


def _contains(statement: str, text: str) -> bool:
    """Return whether a statement contains a text, as whole words and whatever the white space."""
    pattern = r"\s+".join(re.escape(word) for word in text.split())
    return re.search(rf"(?<!\w){pattern}(?!\w)", statement) is not None
