"""Reward of a review: how many defects it finds, how many findings are right (`guest.scoring.findings`).

With a model, a finding at the lines of a defect must also describe it (`verifiers.rewards.defect_matching`). A missing
review earns 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from backends.services import Services
from guest.scoring.findings import (
    ReviewFinding,
    UnreadableReviewError,
    count_lines,
    find_edges,
    parse_review,
    score_review,
)
from taskdb.records import Score, Task
from taskdb.records.oracles import Defect, ReviewOracle
from verifiers.judge.client import JudgeClient
from verifiers.rewards.defect_matching import DefectMatcher

FIXED_FORMS = ("before-fix", "diff", "cross-file")
"""Forms whose gold patch repairs the defects."""


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """Return the score of a review in JSON (see docs/guide/derive/kinds.md); anything else earns 0 with an explanation.

    `parts`: recall, precision, hallucination_rate, matched, findings, defects; with a model also judged and void.

    Raises:
        Transient: the model's endpoint does not answer.
        InputError: the endpoint rejects the request, or an artifact of the task does not exist.
    """
    oracle = _require_oracle(task)
    try:
        findings = parse_review(submission)
    except UnreadableReviewError as error:
        return _build_score(task, 0.0, {}, str(error))
    files = oracle.load_files(services.artifacts)
    matcher = _make_matcher(task, oracle, files, services) if oracle.defects else None
    edges = find_edges(oracle.defects, findings, count_lines(files))
    if matcher:
        edges = _filter_edges(edges, oracle.defects, findings, matcher)
    value, parts, explanation = score_review(oracle.defects, len(findings), edges)
    if matcher:
        parts |= {"judged": matcher.judged, "void": matcher.void}
    return _build_score(task, value, parts, explanation)


def make_gold_review(task: Task, services: Services) -> bytes:
    """Return the review that names every location of every defect and nothing else."""
    del services
    findings = [
        {"file": defect.path, "first_line": defect.first_line, "last_line": defect.last_line, "claim": defect.claim}
        for defect in _require_oracle(task).defects
    ]
    return json.dumps({"findings": findings}, ensure_ascii=False).encode()


def _filter_edges(
    edges: Sequence[Sequence[int]], defects: Sequence[Defect], findings: Sequence[ReviewFinding], matcher: DefectMatcher
) -> list[list[int]]:
    """Return the edges without the findings that describe something else."""
    return [
        [n for n in numbers if matcher.is_same_defect(findings[n], defect) is not False]
        for defect, numbers in zip(defects, edges, strict=True)
    ]


def _make_matcher(task: Task, oracle: ReviewOracle, files: dict[str, str], services: Services) -> DefectMatcher | None:
    if services.model is None:
        return None
    change = services.artifacts.get_text(task.gold_patch) if oracle.target in FIXED_FORMS else ""
    return DefectMatcher(
        JudgeClient.from_settings(services.model, services.settings, services.artifacts), files, change
    )


def _require_oracle(task: Task) -> ReviewOracle:
    if isinstance(task.oracle, ReviewOracle):
        return task.oracle
    raise LookupError(f"{task.name} is no review")


def _build_score(task: Task, value: float, parts: dict[str, float], explanation: str) -> Score:
    """Build a score: `resolved` for a complete review without wrong findings. No tests are run, so both rates are 1."""
    return Score(
        task=task.name,
        value=value,
        resolved=value == 1.0,
        f2p_rate=1.0,
        p2p_rate=1.0,
        parts=parts,
        explanation=explanation,
    )
