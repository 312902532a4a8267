"""The findings of a review: how they are read, and which of them stand where a defect is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from taskdb.oracles import Defect

LONGEST = 1_000_000
"""Bytes of a submission that are read."""
MOST = 1_000
"""Findings of a submission."""
TOLERANCE, OF_LINES = 2, 20
"""Lines by which a finding may lie beside a defect: at most so many, and one for so many lines of the file, for in
short files everything is close by."""
NARROW = 10
"""Lines that a finding may always have; one with more must not have more than twice those of the defect."""
TOLD = 3
"""Faults of a submission that are told."""


class Finding(BaseModel):
    """One place of a review. Lines are 1-based, both included."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    file: str
    first_line: int
    last_line: int
    claim: str

    @property
    def path(self) -> str:
        """The file, as the task names it."""
        return self.file.removeprefix("./")


class Findings(BaseModel):
    """A submission: `{"findings": [...]}`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    findings: tuple[Finding, ...]


class Unreadable(Exception):  # noqa: N818 - a fault of the submission, worth 0, not an error of ours
    """A submission is no review; the text says why."""


def read(submission: bytes) -> tuple[Finding, ...]:
    """The findings of a submission, which is one JSON object and nothing else.

    Nothing is repaired: a review that was cut off must not be read as one that finds nothing more.

    Raises:
        Unreadable: it is empty, too long, no JSON, or of another form.
    """
    if not submission.strip():
        raise Unreadable('there is no review; one without findings is {"findings": []}')
    if len(submission) > LONGEST:
        raise Unreadable(f"the review has {len(submission)} bytes, {LONGEST} are read")
    try:
        data = json.loads(submission.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the review is no JSON: {error}"[:200]) from error
    try:
        found = Findings.model_validate(data).findings
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)[:TOLD]
        told = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'the review'}: {fault['msg']}" for fault in faults)
        raise Unreadable(f"the review has another form: {told}") from error
    if len(found) > MOST:
        raise Unreadable(f"the review has {len(found)} findings, {MOST} are read")
    return found


def stands_at(finding: Finding, defect: Defect, lines: Mapping[str, int]) -> bool:
    """Whether a finding is about the lines of a defect and says something.

    It is not when it is much wider than the defect, or names the whole file where the defect is not the whole file.

    Args:
        finding: what was submitted.
        defect: what is to be found.
        lines: path -> number of lines, of all files under review.
    """
    n = lines.get(finding.path, 0)
    if (
        finding.path != defect.path
        or not 1 <= finding.first_line <= finding.last_line <= n
        or not finding.claim.strip()
    ):
        return False
    width, wrong = finding.last_line - finding.first_line + 1, defect.last_line - defect.first_line + 1
    if width > max(NARROW, 2 * wrong) or (width == n and wrong < n):
        return False
    near = min(TOLERANCE, n // OF_LINES)
    return finding.first_line - near <= defect.last_line and defect.first_line <= finding.last_line + near


def matched(edges: Sequence[Collection[int]]) -> dict[int, int]:
    """Defect -> finding, as many as possible, none twice (augmenting paths).

    Args:
        edges: for each defect the numbers of the findings that stand there.
    """
    of_finding: dict[int, int] = {}

    def placed(defect: int, seen: set[int]) -> bool:
        for finding in edges[defect]:
            if finding in seen:
                continue
            seen.add(finding)
            if finding not in of_finding or placed(of_finding[finding], seen):
                of_finding[finding] = defect
                return True
        return False

    for defect in range(len(edges)):
        placed(defect, set())
    return {defect: finding for finding, defect in of_finding.items()}
