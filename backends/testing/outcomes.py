"""What a test run said, test by test, and how such reports are combined.

A report is `{test id: Outcome}`; a test id is `path/to/test_file.py::Class::name[param]`, so two tests never share one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from taskdb.records import Counts


class Status(StrEnum):
    """How one test ended. Only `passed` is a pass: an xfail is not a test that passed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"


FAILING = (Status.FAILED, Status.ERROR)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Status of one test and, where it did not pass, the first line of why, such as `AssertionError: 1 != 2`."""

    status: Status
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Report:
    """All outcomes of one run. `uncollected`: test files (paths) that could not be collected, with the reason."""

    outcomes: Mapping[str, Outcome]
    uncollected: Mapping[str, str]

    def passed(self, test: str) -> bool:
        """Whether a test ran and passed; one that is missing did not."""
        return test in self.outcomes and self.outcomes[test].status is Status.PASSED

    def failed(self, test: str) -> bool:
        """Whether a test ran and failed, by itself or by an error; one that is missing did not."""
        return test in self.outcomes and self.outcomes[test].status in FAILING

    def counts(self) -> Counts:
        """How many tests ended how."""
        n = dict.fromkeys(Status, 0)
        for outcome in self.outcomes.values():
            n[outcome.status] += 1
        return Counts(**{status.value: number for status, number in n.items()})

    def files(self) -> frozenset[str]:
        """Test files of which the report holds at least one test."""
        return frozenset(test.partition("::")[0] for test in self.outcomes)

    def to_bytes(self) -> bytes:
        """Canonical JSON without durations: the same outcomes give the same artifact."""
        data = {
            "outcomes": {test: [o.status.value, o.message] for test, o in self.outcomes.items()},
            "uncollected": dict(self.uncollected),
        }
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Report:
        """Inverse of `to_bytes`, durations aside."""
        raw = json.loads(data)
        outcomes = {test: Outcome(status=Status(s), message=m) for test, (s, m) in raw["outcomes"].items()}
        return cls(outcomes=outcomes, uncollected=raw["uncollected"])
