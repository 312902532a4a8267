"""Reasons of removals that give no task."""

from __future__ import annotations

from typing import cast

import pytest

from backends.git import GitRepository
from derivers.injected import search as bugs
from derivers.rebuild.search import Reason, RemovalSearch, convert_reason


@pytest.mark.parametrize(
    ("of_bug", "of_removal"),
    [
        (bugs.Reason.NO_MUTANT_DETECTED, Reason.NOTHING_FAILS),
        (bugs.Reason.BUILD_BREAKS, Reason.BUILD_BREAKS),
        (bugs.Reason.TIMES_OUT, Reason.TIMES_OUT),
        (bugs.Reason.ALL_TESTS_FAIL, Reason.ALL_TESTS_FAIL),
        (bugs.Reason.TESTS_IN_SOURCE, Reason.TESTS_IN_SOURCE),
        (bugs.Reason.NO_IMAGE, Reason.NO_IMAGE),
        (bugs.Reason.NOT_STABLE, Reason.NOT_STABLE),
        (bugs.Reason.BUGS_DO_NOT_COMBINE, Reason.NOT_STABLE),
    ],
)
def test_reasons_of_runs_are_those_of_bugs(of_bug: bugs.Reason, of_removal: Reason) -> None:
    assert convert_reason(of_bug) is of_removal


@pytest.mark.parametrize(
    ("tally", "reason", "detail"),
    [
        ([], Reason.NO_FURTHER_CODE, "every function that can be removed is a task"),
        (
            [Reason.NOTHING_FAILS, Reason.NOTHING_FAILS, Reason.NOT_STABLE],
            Reason.NOT_STABLE,
            "3 removals gave no task: nothing-fails 2, not-stable 1",
        ),
    ],
)
def test_the_reason_is_that_of_the_removal_that_made_most_progress(
    tally: list[Reason], reason: Reason, detail: str
) -> None:
    search = RemovalSearch(
        base=cast("bugs.BugSearch", None), repository=cast("GitRepository", None), passing=frozenset()
    )
    search.tally.update(tally)
    assert search.explain_rejection() == (reason, detail)
