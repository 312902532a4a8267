"""Which changes are bug fixes."""

from __future__ import annotations

import pytest

from derivers.bugfix import check_bugfix
from taskdb.records import FailureKind, Verification


@pytest.mark.parametrize(
    ("kinds", "bugfix"),
    [
        ((FailureKind.ASSERTION,), True),
        ((FailureKind.ABSENT, FailureKind.ERROR), True),
        ((FailureKind.COLLECTION, FailureKind.ABSENT), False),
    ],
)
def test_a_bug_fix_has_a_behavioural_failure(kinds: tuple[FailureKind, ...], bugfix: bool) -> None:
    verification = Verification(
        parent="",
        candidate="",
        name="a__b-1",
        PASS_TO_PASS=(),
        flaky=(),
        controls=(),
        eval_files=(),
        eval_script="",
        FAIL_TO_PASS=tuple((f"t.py::test_{n}", kind) for n, kind in enumerate(kinds)),
        control_patch=None,
        repeats=1,
        runs=(),
        seconds=0,
    )
    assert (check_bugfix(verification) is None) == bugfix
