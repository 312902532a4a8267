"""Findings of a review: parsing, and matching with defects by lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from taskdb.oracles import Defect

MAX_BYTES = 1_000_000
"""Maximum size of a submission in bytes."""
MAX_FINDINGS = 1_000
"""Maximum number of findings in a submission."""
MAX_TOLERANCE, LINES_PER_TOLERANCE = 2, 20
"""Maximum distance in lines between finding and defect. It is one line per 20 lines of the file, at most two, since in
short files all lines are close to each other."""
MIN_ALLOWED_WIDTH = 10
"""Number of lines that a finding may always have; a longer one may have at most twice the lines of the defect."""
MAX_REPORTED_ERRORS = 3
"""Maximum number of reported validation errors."""


class ReviewFinding(BaseModel):
    """One finding of a review. Lines are 1-based and inclusive."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    file: str
    first_line: int
    last_line: int
    claim: str

    @property
    def path(self) -> str:
        """Path of the file as the task writes it."""
        return self.file.removeprefix("./")


class ReviewSubmission(BaseModel):
    """A submission: `{"findings": [...]}`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    findings: tuple[ReviewFinding, ...]


class UnreadableReviewError(Exception):
    """The submission is no valid review; the message states why."""


def parse_review(submission: bytes) -> tuple[ReviewFinding, ...]:
    """Return the findings of a submission, which must be exactly one JSON object.

    A truncated review is not repaired: it would look like a review with fewer findings.

    Raises:
        UnreadableReviewError: the submission is empty, too long, no JSON, or has another schema.
    """
    if not submission.strip():
        raise UnreadableReviewError('the review is missing; one without findings is {"findings": []}')
    if len(submission) > MAX_BYTES:
        raise UnreadableReviewError(f"the review has {len(submission)} bytes, at most {MAX_BYTES} are allowed")
    try:
        data = json.loads(submission.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UnreadableReviewError(f"the review is not valid JSON: {error}"[:200]) from error
    try:
        findings = ReviewSubmission.model_validate(data).findings
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)[:MAX_REPORTED_ERRORS]
        errors = "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'the review'}: {detail['msg']}" for detail in details
        )
        raise UnreadableReviewError(f"the review has another schema: {errors}") from error
    if len(findings) > MAX_FINDINGS:
        raise UnreadableReviewError(f"the review has {len(findings)} findings, at most {MAX_FINDINGS} are allowed")
    return findings


def is_at_defect(finding: ReviewFinding, defect: Defect, lines: Mapping[str, int]) -> bool:
    """Return whether a finding covers the lines of a defect and has a claim.

    A finding much wider than the defect does not count, nor does a whole file for a smaller defect.

    Args:
        finding: a submitted finding.
        defect: a defect of the oracle.
        lines: path -> number of lines, of all files under review.
    """
    n = lines.get(finding.path, 0)
    if (
        finding.path != defect.path
        or not 1 <= finding.first_line <= finding.last_line <= n
        or not finding.claim.strip()
    ):
        return False
    width, defect_width = finding.last_line - finding.first_line + 1, defect.last_line - defect.first_line + 1
    if width > max(MIN_ALLOWED_WIDTH, 2 * defect_width) or (width == n and defect_width < n):
        return False
    tolerance = min(MAX_TOLERANCE, n // LINES_PER_TOLERANCE)
    return finding.first_line - tolerance <= defect.last_line and defect.first_line <= finding.last_line + tolerance


def match_findings(edges: Sequence[Collection[int]]) -> dict[int, int]:
    """Return a maximum matching defect -> finding (augmenting paths).

    Args:
        edges: for each defect the numbers of the findings at its lines.
    """
    defect_by_finding: dict[int, int] = {}

    def assign(defect: int, visited: set[int]) -> bool:
        for finding in edges[defect]:
            if finding in visited:
                continue
            visited.add(finding)
            if finding not in defect_by_finding or assign(defect_by_finding[finding], visited):
                defect_by_finding[finding] = defect
                return True
        return False

    for defect in range(len(edges)):
        assign(defect, set())
    return {defect: finding for finding, defect in defect_by_finding.items()}
