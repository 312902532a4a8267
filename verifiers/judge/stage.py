"""The judge's stage: what was verified, with a verdict on its statement. It runs nothing and needs no engine."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from backends.git import Repository, TreeEntry
from backends.llm.base import Model
from backends.services import Services
from taskdb.lineage import Lineage
from taskdb.records import Rejection
from taskdb.verdicts import Asked, Verdict
from verifiers.judge.asking import Asking
from verifiers.judge.assess import Assessment, assess
from verifiers.judge.case import Case
from verifiers.judge.completion.interfaces import interfaces
from verifiers.judge.hearing import hear

MAX_FILE = 1024 * 1024
"""Bytes of a file that is read; nobody looks for names in larger ones."""
_AT_ONCE = 500
_WORD = re.compile(r"\w+")


def judge(lineage: Lineage, services: Services) -> Verdict | Rejection:
    """The verdict on the statement of a verified change; whatever it says, the change goes on with it.

    Args:
        lineage: a candidate that was verified.
        services: clones and artifacts are used, and the model where there is one.

    Raises:
        InputError: the clone is gone or lacks objects, or the model's endpoint refuses what is asked.
        Transient: the model's endpoint does not answer.
    """
    started = time.perf_counter()
    case = case_of(lineage, services)
    found = assess(case)
    heard = {} if services.model is None else _heard(case, found, services.model, services)
    verdict = Verdict(
        parent=lineage.the_verification.id, candidate=lineage.candidate.id, name=lineage.candidate.name,
        underspecified=round(found.underspecified, 4), unfair_tests=round(found.unfair_tests, 4),
        findings=found.findings, set_aside=found.set_aside, interfaces=interfaces(case),
    )  # fmt: skip
    return verdict.model_copy(update=heard | {"seconds": time.perf_counter() - started})


def _heard(case: Case, found: Assessment, model: Model, services: Services) -> dict[str, Any]:
    """What models change of a verdict, by its fields."""
    heard = hear(case, found, Asking.begin(model, services.settings, services.artifacts))
    paid: list[Asked] = [*heard.panel.opinions, *([heard.completion] if heard.completion else [])]
    return {
        "underspecified": round(heard.underspecified, 4), "unfair_tests": round(heard.unfair_tests, 4),
        "set_aside": heard.set_aside, "opinions": heard.panel.opinions, "agreement": heard.panel.agreement,
        "alpha": heard.panel.alpha, "completion": heard.completion, "tokens": sum(one.tokens for one in paid),
        "cost": sum(one.cost for one in paid),
    }  # fmt: skip


def case_of(lineage: Lineage, services: Services) -> Case:
    """A verified change as the rules see it; its base tree is read when a rule asks for it, and once."""
    candidate, verification = lineage.candidate, lineage.the_verification
    return Case(
        name=candidate.name, repo=candidate.repo, statement=candidate.problem_statement, hints=candidate.hints,
        gold=services.artifacts.text(candidate.gold_patch), tests=services.artifacts.text(candidate.test_patch),
        fail_to_pass=tuple(test for test, _ in verification.FAIL_TO_PASS), pass_to_pass=verification.PASS_TO_PASS,
        number=_number(candidate.name), merge_commit=candidate.merge_commit,
        mentions=BaseTree(lineage, services).mentions,
    )  # fmt: skip


def _number(name: str) -> int | None:
    """The pull request's number in the name of a change; commits and releases have none."""
    found = re.search(r"-(\d{1,6})$", name)
    return int(found[1]) if found else None


@dataclass(frozen=True)
class BaseTree:
    """The files of a candidate's base commit, asked for texts."""

    lineage: Lineage
    services: Services

    def mentions(self, texts: Collection[str]) -> set[str]:
        """Those of the texts that some file holds; a name only as a word of its own."""
        wanted = {text: _pattern(text) for text in texts if text}
        found: set[str] = set()
        for content in self._contents() if wanted else ():
            here = {text for text, pattern in wanted.items() if pattern.search(content)}
            found |= here
            wanted = {text: pattern for text, pattern in wanted.items() if text not in here}
            if not wanted:
                break
        return found

    @cached_property
    def _tree(self) -> tuple[Repository, list[TreeEntry]]:
        candidate = self.lineage.candidate
        tree = self.services.clones.open(candidate.source, candidate.repo)
        entries = tree.ls_tree(candidate.base_commit)
        return tree, [entry for entry in entries if entry.mode.startswith("100") and entry.size <= MAX_FILE]

    def _contents(self) -> Iterator[bytes]:
        tree, entries = self._tree
        for at in range(0, len(entries), _AT_ONCE):
            yield from tree.blobs([entry.oid for entry in entries[at : at + _AT_ONCE]])


def _pattern(text: str) -> re.Pattern[bytes]:
    raw = re.escape(text.encode())
    return re.compile(rb"\b" + raw + rb"\b") if _WORD.fullmatch(text) else re.compile(raw)
