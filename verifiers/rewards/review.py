"""Reward of a review: how many defects it finds, and how many of its findings are right.

If there are defects, the value is recall x precision^2:

- A defect is found if a finding is at its lines (`verifiers.rewards.findings`) and, with a model, describes it
  (`verifiers.rewards.defect_matching`). Locations with the same claim belong to one defect: one of them is
  enough, and further findings at the others are not wrong.
- Recall is the share of defects found, precision the share of findings matched with a location of their own, and the
  hallucination rate is 1 - precision. Precision is squared so that listing every suspicious location earns less than
  naming the most likely one: of n locations, k named ones earn 1 / (n k) on average.

For a control without defects, a review without findings earns 1 and one with n findings 1 / (1 + n)^2. A missing
review earns 0.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from backends.services import Services
from taskdb.oracles import Defect, ReviewOracle
from taskdb.records import Score, Task
from verifiers.judge.client import JudgeClient
from verifiers.rewards.defect_matching import DefectMatcher
from verifiers.rewards.findings import ReviewFinding, UnreadableReviewError, is_at_defect, match_findings, parse_review


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """Return the score of a review in JSON (see docs/kinds.md); anything else earns 0 with an explanation.

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
    if not oracle.defects:
        return _score_control(task, len(findings))
    files = oracle.load_files(services.artifacts)
    matcher = _make_matcher(task, oracle, files, services)
    pairs = match_findings(_find_edges(oracle.defects, findings, files, matcher))
    claims = {defect.claim for defect in oracle.defects}
    found = {oracle.defects[location].claim for location in pairs}
    recall = len(found) / len(claims)
    precision = len(pairs) / len(findings) if findings else 0.0
    parts = {
        "recall": recall,
        "precision": precision,
        "hallucination_rate": 1 - precision if findings else 0.0,
        "matched": len(pairs),
        "findings": len(findings),
        "defects": len(claims),
    }
    if matcher:
        parts |= {"judged": matcher.judged, "void": matcher.void}
    explanation = (
        f"{len(found)} of {len(claims)} defects found, {len(findings) - len(pairs)} of {len(findings)} findings wrong"
    )
    return _build_score(task, recall * precision**2, parts, explanation)


def make_gold_review(task: Task, services: Services) -> bytes:
    """Return the review that names every location of every defect and nothing else."""
    del services
    findings = [
        {"file": defect.path, "first_line": defect.first_line, "last_line": defect.last_line, "claim": defect.claim}
        for defect in _require_oracle(task).defects
    ]
    return json.dumps({"findings": findings}, ensure_ascii=False).encode()


def _score_control(task: Task, findings: int) -> Score:
    wrong = float(findings > 0)
    parts = {
        "recall": 1.0,
        "precision": 1.0 - wrong,
        "hallucination_rate": wrong,
        "matched": 0.0,
        "findings": float(findings),
        "defects": 0.0,
    }
    return _build_score(task, 1 / (1 + findings) ** 2, parts, f"no known defects, {findings} findings")


def _find_edges(
    defects: Sequence[Defect], findings: Sequence[ReviewFinding], files: dict[str, str], matcher: DefectMatcher | None
) -> list[list[int]]:
    """Return for each defect the findings at its lines, without those that describe something else."""
    lines = {path: text.count("\n") + (not text.endswith("\n")) for path, text in files.items()}
    candidates = [
        [n for n, finding in enumerate(findings) if is_at_defect(finding, defect, lines)] for defect in defects
    ]
    if matcher is None:
        return candidates
    return [
        [n for n in numbers if matcher.is_same_defect(findings[n], defect) is not False]
        for defect, numbers in zip(defects, candidates, strict=True)
    ]


def _make_matcher(task: Task, oracle: ReviewOracle, files: dict[str, str], services: Services) -> DefectMatcher | None:
    if services.model is None:
        return None
    change = services.artifacts.get_text(task.gold_patch) if oracle.target in ("before-fix", "diff") else ""
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
