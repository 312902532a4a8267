"""Reports of test runs, as `guest.reports.junit` parses them, with outcomes as the rest of mergemill has them."""

from __future__ import annotations

from collections.abc import Collection

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from guest.reports import junit


def parse_junit(content: bytes, known_files: Collection[str]) -> EvaluationReport:
    """Return the report in `content`, JUnit XML in the canonical form or that of pytest.

    Args:
        content: JUnit XML, as `guest.reports.junit.parse_report` reads it.
        known_files: paths of the files in the tree, from its root.

    Raises:
        UnreadableReportError: the content cannot be read.
    """
    report = junit.parse_report(content, known_files)
    outcomes = {
        test: Outcome(
            status=OutcomeStatus(outcome.status),
            message=outcome.message,
            seconds=outcome.seconds,
            by_assertion=outcome.by_assertion,
        )
        for test, outcome in report.outcomes.items()
    }
    return EvaluationReport(outcomes=outcomes, uncollected=report.uncollected, repeated=report.repeated)
