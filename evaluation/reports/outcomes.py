"""Outcomes of a test run, test by test.

A report maps test ids to outcomes. A test id is `path/to/test_file.py::Class::name[param]`, unique within a report.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from taskdb.records import Counts


class OutcomeStatus(StrEnum):
    """Status of a test. Only `passed` counts as passing; `xfailed` does not."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"


FAILING_STATUSES = (OutcomeStatus.FAILED, OutcomeStatus.ERROR)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Status of a test and, where it did not pass, the first line of the reason, such as `AssertionError: 1 != 2`."""

    status: OutcomeStatus
    message: str = ""
    seconds: float = 0.0
    by_assertion: bool | None = None
    """Whether a failed test failed by an assertion; None where the report does not have that, as pytest's, whose
    message decides."""


@dataclass(frozen=True, kw_only=True)
class EvaluationReport:
    """All outcomes of a run. `uncollected`: test files (paths) that could not be collected, with the reason."""

    outcomes: Mapping[str, Outcome]
    uncollected: Mapping[str, str]
    repeated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Test that several rows report -> their statuses; its outcome is the worst."""

    def has_passed(self, test: str) -> bool:
        """Return whether the test ran and passed; False for an absent test."""
        return test in self.outcomes and self.outcomes[test].status is OutcomeStatus.PASSED

    def has_failed(self, test: str) -> bool:
        """Return whether the test ran and ended as failed or error; False for an absent test."""
        return test in self.outcomes and self.outcomes[test].status in FAILING_STATUSES

    def count_statuses(self) -> Counts:
        """Return the number of tests with each status."""
        n = dict.fromkeys(OutcomeStatus, 0)
        for outcome in self.outcomes.values():
            n[outcome.status] += 1
        return Counts(**{status.value: number for status, number in n.items()})

    def list_results(self) -> dict[str, tuple[str, str]]:
        """Return test -> (status, message), as `guest.controls.blind.Judgement.add` expects it."""
        return {test: (outcome.status.value, outcome.message) for test, outcome in self.outcomes.items()}

    def list_files(self) -> frozenset[str]:
        """Return the test files that have at least one test in the report."""
        return frozenset(test.partition("::")[0] for test in self.outcomes)

    def keep_files(self, files: Collection[str]) -> EvaluationReport:
        """Return the report of the tests of some files."""
        return EvaluationReport(
            outcomes={test: outcome for test, outcome in self.outcomes.items() if test.partition("::")[0] in files},
            uncollected={file: why for file, why in self.uncollected.items() if file in files},
            repeated={test: rows for test, rows in self.repeated.items() if test.partition("::")[0] in files},
        )

    def without_files(self, files: Collection[str]) -> EvaluationReport:
        """Return the report without the outcomes that it has of some files."""
        return EvaluationReport(
            outcomes={test: outcome for test, outcome in self.outcomes.items() if test.partition("::")[0] not in files},
            uncollected={file: why for file, why in self.uncollected.items() if file not in files},
            repeated={test: rows for test, rows in self.repeated.items() if test.partition("::")[0] not in files},
        )

    def list_failing(self, files: Collection[str]) -> list[str]:
        """Return the tests of some files that failed, then those of the files that could not be collected."""
        failing = [test for test in self.outcomes if test.partition("::")[0] in files and self.has_failed(test)]
        return failing + [file for file in self.uncollected if file in files]

    def list_differing(self, other: EvaluationReport) -> set[str]:
        """Return the tests with another status in another report, and the files that one of both could not collect."""
        tests = self.outcomes.keys() | other.outcomes.keys()
        differing = {test for test in tests if self._get_status(test) != other._get_status(test)}
        return differing | (self.uncollected.keys() ^ other.uncollected.keys())

    def _get_status(self, test: str) -> OutcomeStatus | None:
        return self.outcomes[test].status if test in self.outcomes else None

    def to_bytes(self) -> bytes:
        """Return canonical JSON without durations, so that equal outcomes give equal artifacts."""
        data = {
            "outcomes": {test: _list_fields(outcome) for test, outcome in self.outcomes.items()},
            "uncollected": dict(self.uncollected),
            **({"repeated": {test: list(rows) for test, rows in self.repeated.items()}} if self.repeated else {}),
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> EvaluationReport:
        """Return the report that `to_bytes` wrote, without durations."""
        raw = json.loads(data)
        outcomes = {test: _read_outcome(*fields) for test, fields in raw["outcomes"].items()}
        repeated = {test: tuple(rows) for test, rows in raw.get("repeated", {}).items()}
        return cls(outcomes=outcomes, uncollected=raw["uncollected"], repeated=repeated)


def _list_fields(outcome: Outcome) -> list[str | bool]:
    kind = [] if outcome.by_assertion is None else [outcome.by_assertion]
    return [outcome.status.value, outcome.message, *kind]


def _read_outcome(status: str, message: str, by_assertion: bool | None = None) -> Outcome:
    return Outcome(status=OutcomeStatus(status), message=message, by_assertion=by_assertion)
