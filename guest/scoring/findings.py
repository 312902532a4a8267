"""Findings of a review: parsing, matching with defects by lines, and the value of the review.

If there are defects, the value is recall x precision^2:

- A defect is found if a finding is at its lines and, with a model, describes it. Locations with the same claim belong
  to a defect: one of them is enough, and further findings at the others are not wrong.
- Recall is the share of defects found, precision the share of findings matched with a location of their own, and the
  hallucination rate is 1 - precision. Precision is squared so that listing every suspicious location earns less than
  naming the most likely location: of n locations, k named locations earn 1 / (n k) on average.

For a control without defects, a review without findings earns 1 and a review with n findings 1 / (1 + n)^2.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

MAX_BYTES = 1_000_000
"""Maximum size of a submission in bytes."""
MAX_FINDINGS = 1_000
"""Maximum number of findings in a submission."""
MAX_TOLERANCE, LINES_PER_TOLERANCE = 2, 20
"""Maximum distance in lines between finding and defect. It is a line per 20 lines of the file, at most two, since in
short files all lines are close to each other."""
MIN_ALLOWED_WIDTH = 10
"""Number of lines that a finding may always have; a longer finding may have at most twice the lines of the defect."""
MAX_REPORTED_ERRORS = 3
"""Maximum number of reported errors of the schema."""
_FIELDS = (("file", str), ("first_line", int), ("last_line", int), ("claim", str))


class KnownDefect(Protocol):
    """Lines of a file, 1-based and inclusive, and the fault that is wrong there."""

    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def first_line(self) -> int:
        """First line."""

    @property
    def last_line(self) -> int:
        """Last line."""

    @property
    def claim(self) -> str:
        """Fault that is wrong."""


class ReviewFinding(NamedTuple):
    """A finding of a review, or a defect in the data of a bundle. Lines are 1-based and inclusive."""

    file: str
    first_line: int
    last_line: int
    claim: str

    @property
    def path(self) -> str:
        """Path of the file as the task writes it."""
        return self.file.removeprefix("./")


class ReviewValue(NamedTuple):
    """Value of a review, its components and a line of explanation."""

    value: float
    parts: dict[str, float]
    explanation: str


def grade_findings(submission: bytes, defects: Sequence[Mapping[str, Any]], files: Mapping[str, str]) -> ReviewValue:
    """Return the value of a submission by lines alone, without a model; 0 where it is not a valid review.

    Args:
        submission: the submission that is handed in.
        defects: the known defects in the form of findings.
        files: path -> text, of all files under review.
    """
    try:
        findings = parse_review(submission)
    except UnreadableReviewError as error:
        return ReviewValue(0.0, {}, str(error))
    known = [ReviewFinding(**defect) for defect in defects]
    return score_review(known, len(findings), find_edges(known, findings, count_lines(files)))


class UnreadableReviewError(Exception):
    """The submission is not a valid review; the message states why."""


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
    errors = [error for error, _ in zip(_iterate_errors(data), range(MAX_REPORTED_ERRORS))]
    if errors:
        raise UnreadableReviewError(f"the review has another schema: {'; '.join(errors)}")
    if len(data["findings"]) > MAX_FINDINGS:
        raise UnreadableReviewError(
            f"the review has {len(data['findings'])} findings, at most {MAX_FINDINGS} are allowed"
        )
    return tuple(ReviewFinding(*(row[name] for name, _ in _FIELDS)) for row in data["findings"])


def _iterate_errors(data: Any) -> Iterator[str]:
    """Yield the differences from the schema; further fields are ignored."""
    if not isinstance(data, dict):
        yield "the review: it must be an object"
    elif "findings" not in data:
        yield "findings: Field required"
    elif not isinstance(data["findings"], list):
        yield "findings: it must be a list"
    else:
        for number, row in enumerate(data["findings"]):
            if not isinstance(row, dict):
                yield f"findings.{number}: it must be an object"
                continue
            for name, kind in _FIELDS:
                if name not in row:
                    yield f"findings.{number}.{name}: Field required"
                elif not isinstance(row[name], kind) or isinstance(row[name], bool):
                    yield f"findings.{number}.{name}: it must be {'text' if kind is str else 'a whole number'}"


def count_lines(files: Mapping[str, str]) -> dict[str, int]:
    """Return path -> number of lines of each text."""
    return {path: text.count("\n") + (not text.endswith("\n")) for path, text in files.items()}


def is_at_defect(finding: ReviewFinding, defect: KnownDefect, lines: Mapping[str, int]) -> bool:
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


def find_edges(
    defects: Sequence[KnownDefect], findings: Sequence[ReviewFinding], lines: Mapping[str, int]
) -> list[list[int]]:
    """Return for each defect the numbers of the findings at its lines."""
    return [[n for n, finding in enumerate(findings) if is_at_defect(finding, defect, lines)] for defect in defects]


def match_findings(edges: Sequence[Collection[int]]) -> dict[int, int]:
    """Return a maximum matching defect -> finding (augmenting paths).

    Args:
        edges: numbers of the findings at the lines of each defect.
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


def score_review(defects: Sequence[KnownDefect], n_findings: int, edges: Sequence[Collection[int]]) -> ReviewValue:
    """Return the value of a review.

    Args:
        defects: the known defects; none for a control.
        n_findings: number of findings of the review.
        edges: numbers of the findings that describe each defect.
    """
    if not defects:
        return _score_control(n_findings)
    pairs = match_findings(edges)
    claims = {defect.claim for defect in defects}
    matched = {defects[location].claim for location in pairs}
    recall = len(matched) / len(claims)
    precision = len(pairs) / n_findings if n_findings else 0.0
    parts = {
        "recall": recall,
        "precision": precision,
        "hallucination_rate": 1 - precision if n_findings else 0.0,
        "matched": float(len(pairs)),
        "findings": float(n_findings),
        "defects": float(len(claims)),
    }
    wrong = n_findings - len(pairs)
    explanation = f"{len(matched)} of {len(claims)} defects found, {wrong} of {n_findings} findings wrong"
    return ReviewValue(recall * precision**2, parts, explanation)


def _score_control(n_findings: int) -> ReviewValue:
    wrong = float(n_findings > 0)
    parts = {
        "recall": 1.0,
        "precision": 1.0 - wrong,
        "hallucination_rate": wrong,
        "matched": 0.0,
        "findings": float(n_findings),
        "defects": 0.0,
    }
    return ReviewValue(1 / (1 + n_findings) ** 2, parts, f"no known defects, {n_findings} findings")
