"""Judgements of reviews by models: which findings describe a known defect or a later fix, and votes on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaluation.scoring.review_bench import (
    ReviewMaterial,
    has_lines,
    is_nonexistent,
    list_candidates,
    list_fixed_later,
)
from guest.scoring.findings import ReviewFinding
from mergemill.bench.review_metric import REVIEW, ReviewCase, make_case, make_maker
from taskdb.records import Task
from taskdb.records.oracles import Defect, LaterFix, ReviewOracle
from verifiers.judge.client import JudgeClient
from verifiers.judge.findings import FindingJudge, name_judge
from verifiers.rewards.defect_matching import DefectMatcher
from verifiers.rewards.review import FIXED_FORMS

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from core.config import Settings
    from mergemill.bench.review_material import ReviewMaterials


@dataclass
class ReviewJudging:
    """Maker of judgements. Threads may share it.

    Attributes:
        model: model that matches defects, and votes unless the settings name others.
        settings: limits, budget and judges.
        materials: texts of the tasks.
    """

    model: LanguageModel
    settings: Settings
    materials: ReviewMaterials
    metric: str = field(default=REVIEW, init=False)

    @property
    def maker(self) -> str:
        """Prompt and name of the judge."""
        return make_maker(name_judge(self._open_client()))

    def applies_to(self, task: Task) -> bool:
        """Return whether a task is a review."""
        return isinstance(task.oracle, ReviewOracle)

    def measure(self, task: Task, submission: bytes) -> dict[str, Any]:
        """Return the judgement of a review, with its votes; of one that cannot be read, without findings.

        Raises:
            Transient: the endpoint failed.
            InputError: the endpoint rejects key, model or request.
        """
        oracle = task.oracle
        if not isinstance(oracle, ReviewOracle):
            raise TypeError(f"{task.name} is no review")
        material = self.materials.load(task)
        case = make_case(oracle, material, submission)
        if case.findings is None:
            return {"edges": [[] for _ in oracle.defects], "later": [], "votes": {}}
        change = self.materials.artifacts.get_text(task.gold_patch) if oracle.target in FIXED_FORMS else ""
        client = self._open_client()
        matcher = DefectMatcher(client, dict(material.files), change)
        edges = _match_defects(case, matcher)
        described = {n for numbers in edges for n in numbers}
        rest = [n for n, finding in enumerate(case.findings) if not is_nonexistent(finding, material)]
        rest = [n for n in rest if n not in described]
        later = _match_fixes(case.findings, oracle.others, material, matcher, rest)
        judge = FindingJudge(client=client, material=material, instructions=task.problem_statement)
        votes = {str(n): judge.collect_votes(case.findings[n]) for n in rest if n not in later}
        return {"edges": edges, "later": later, "votes": votes}

    def judge_findings(self, task: Task, findings: Sequence[ReviewFinding]) -> list[Any]:
        """Return the votes on each finding, whatever defects are known.

        Raises:
            Transient, InputError: as of `measure`.
        """
        oracle = task.oracle
        if not isinstance(oracle, ReviewOracle):
            raise TypeError(f"{task.name} is no review")
        material = self.materials.load(task)
        judge = FindingJudge(client=self._open_client(), material=material, instructions=task.problem_statement)
        return [judge.collect_votes(finding) for finding in findings]

    def stop(self) -> None:
        """End the requests that threads wait for."""
        self.model.stop()

    def _open_client(self) -> JudgeClient:
        """Return a client with a budget of its own."""
        return JudgeClient.from_settings(self.model, self.settings, self.materials.artifacts)


def _match_defects(case: ReviewCase, matcher: DefectMatcher) -> list[list[int]]:
    """Return for each defect the findings that describe it; without a valid answer the lines decide, if it has any."""
    findings = case.findings or ()
    edges = []
    for defect, numbers in zip(
        case.oracle.defects, list_candidates(case.oracle.defects, findings, case.material), strict=True
    ):
        if has_lines(defect):
            edges.append([n for n in numbers if matcher.is_same_defect(findings[n], defect) is not False])
        else:
            placed = [n for n in numbers if case.material.has_lines(findings[n])]
            edges.append([n for n in placed if matcher.is_same_defect(findings[n], _place(defect, findings[n]))])
    return edges


def _place(defect: Defect, finding: ReviewFinding) -> Defect:
    """Return a defect without lines at those of a finding, where the model looks for it."""
    return Defect(path=finding.path, first_line=finding.first_line, last_line=finding.last_line, claim=defect.claim)


def _match_fixes(
    findings: Sequence[ReviewFinding],
    others: Sequence[LaterFix],
    material: ReviewMaterial,
    matcher: DefectMatcher,
    numbers: Sequence[int],
) -> list[int]:
    """Return which of some findings match a later fix: lines, and the message where there is an answer."""
    later = list_fixed_later(findings, others, material)
    matched = []
    for n in numbers:
        fixes = [
            Defect(path=fix.path, first_line=fix.first_line, last_line=fix.last_line, claim=fix.message)
            for fix in later.get(n, ())
        ]
        if any(matcher.is_same_defect(findings[n], fix) is not False for fix in fixes):
            matched.append(n)
    return matched
