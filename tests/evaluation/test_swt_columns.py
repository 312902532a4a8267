"""Columns of SWT-Bench: twelve submitted patches against the definitions of the paper (arXiv 2406.12952)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.scoring.swt import SuiteRuns, compute_columns, list_changed_lines, make_suite_runs

GOLD = """\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -3,4 +3,5 @@
 def total(items):
-    n = len(items) - 1
-    return sum(items[:n])
+    if not items:
+        return 0
+    return sum(items)
 # end
"""
REMOVED, ADDED = {("shop.py", 4), ("shop.py", 5)}, {("shop.py", 4), ("shop.py", 5), ("shop.py", 6)}
LETTERS = {"P": "passed", "F": "failed", "E": "error", "S": "skipped", "X": "xfailed"}


@dataclass(frozen=True)
class Suite:
    """Status of each test before and after the fix, `-` for an absent one, and the executed lines of shop.py."""

    tests: Mapping[str, str]
    before: frozenset[int] = frozenset()
    after: frozenset[int] = frozenset()

    def make_report(self, side: int) -> EvaluationReport:
        statuses = {test: letters[side] for test, letters in self.tests.items() if letters[side] != "-"}
        outcomes = {test: Outcome(status=OutcomeStatus(LETTERS[letter])) for test, letter in statuses.items()}
        return EvaluationReport(outcomes=outcomes, uncollected={})

    def make_runs(self) -> SuiteRuns:
        lines = [{"shop.py": covered} for covered in (self.before, self.after)]
        return make_suite_runs(self.make_report(0), self.make_report(1), *lines)


@dataclass(frozen=True)
class Submitted:
    """Tests of a submission beside those of the base suite; None where its patch does not apply."""

    suite: Suite | None
    success: bool = False
    names: tuple[str, ...] = field(default=())


OLD = {"old": "PP", "broken": "FF"}
BASE = Suite(OLD, frozenset({1, 4}), frozenset({1, 4}))
OWN = Suite({**OLD, "own": "FP"}, frozenset({1, 4, 5}), frozenset({1, 4, 5, 6}))
SUBMISSIONS = {
    "detects": Submitted(Suite({**OLD, "new": "FP"}, frozenset({4, 5}), frozenset({4, 6})), success=True),
    "detects by an error": Submitted(Suite({**OLD, "new": "EP"}, frozenset({4}), frozenset({4, 5, 6})), success=True),
    "detects, absent before": Submitted(Suite({**OLD, "new": "-P"}), success=True),
    "passes always": Submitted(Suite({**OLD, "new": "PP"}, frozenset({4}), frozenset({4, 6}))),
    "fails after the fix": Submitted(Suite({**OLD, "new": "PF"}, frozenset({4}), frozenset({4}))),
    "fails always": Submitted(Suite({**OLD, "new": "FF"}, frozenset({4, 5}), frozenset({4, 5, 6}))),
    "detects and fails": Submitted(Suite({**OLD, "new": "FP", "other": "FF"}, frozenset({5}), frozenset({5}))),
    "detects and breaks": Submitted(Suite({"old": "PF", "broken": "FF", "new": "FP"}, frozenset({5}), frozenset())),
    "never runs": Submitted(Suite({**OLD, "new": "SS"}, frozenset({1, 4}), frozenset({1, 4}))),
    "detects, another never runs": Submitted(Suite({**OLD, "new": "FP", "other": "SS"})),
    "expected to fail": Submitted(Suite({**OLD, "new": "XP"}, frozenset({1}), frozenset({1, 6})), success=True),
    "does not apply": Submitted(None),
}


def list_transitions(suite: Suite) -> dict[str, set[str]]:
    """Transitions of section 3 of the paper: a test that does not pass, for whatever reason, fails."""
    transitions: dict[str, set[str]] = {"FP": set(), "PP": set(), "FF": set(), "PF": set()}
    for test, letters in suite.tests.items():
        transitions["".join("P" if letter == "P" else "F" for letter in letters)].add(test)
    return transitions


def compute_by_paper(suite: Suite | None) -> dict[str, float]:
    """Columns as the paper defines them: of the tests that the submission adds, and of the changed lines."""
    if suite is None:
        return dict.fromkeys(
            ("applies", "success", "fails_before", "fail_to_pass", "pass_to_pass", "coverage_delta"), 0.0
        )
    base, own = list_transitions(BASE), list_transitions(suite)
    added = {name: own[name] - base[name] for name in own}
    covered = 0
    executable = 0
    for lines, runs, of_base, of_gold in (
        (REMOVED, suite.before, BASE.before, OWN.before),
        (ADDED, suite.after, BASE.after, OWN.after),
    ):
        for _, line in lines:
            count_base, count_gold, count = (int(line in executed) for executed in (of_base, of_gold, runs))
            if count_base + count_gold > 0:
                executable += 1
                # The suite with the added tests runs a line at least as often as the suite alone.
                covered += max(count_base, count) > count_base
    return {
        "applies": 1.0,
        "success": float(bool(added["FP"]) and not added["FF"] and not added["PF"] and own["FP"] >= base["FP"]),
        "fails_before": float(bool(added["FP"] or added["FF"])),
        "fail_to_pass": float(bool(added["FP"])),
        "pass_to_pass": float(bool(added["PP"])),
        "coverage_delta": covered / executable,
    }


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_the_columns_are_those_of_the_paper(name: str) -> None:
    submitted = SUBMISSIONS[name]
    runs = submitted.suite.make_runs() if submitted.suite else None
    columns = compute_columns(runs, BASE.make_runs(), OWN.make_runs(), list_changed_lines(GOLD))
    of_gold = columns.pop("coverage_of_gold")
    assert columns == compute_by_paper(submitted.suite)
    assert columns["success"] == float(submitted.success)
    assert of_gold is not None


def test_coverage_is_compared_with_the_own_tests_and_unknown_where_it_was_not_measured() -> None:
    changed = list_changed_lines(GOLD)
    assert (changed.removed, changed.added) == (REMOVED, ADDED)
    submitted = SUBMISSIONS["passes always"].suite
    assert submitted is not None
    columns = compute_columns(submitted.make_runs(), BASE.make_runs(), OWN.make_runs(), changed)
    assert columns["coverage_of_gold"] == pytest.approx(1 / 3)
    assert columns["coverage_delta"] == pytest.approx(1 / 5)
    unmeasured = make_suite_runs(submitted.make_report(0), submitted.make_report(1), None, None)
    assert compute_columns(unmeasured, BASE.make_runs(), OWN.make_runs(), changed)["coverage_delta"] is None
    assert compute_columns(None, BASE.make_runs(), unmeasured, changed)["coverage_delta"] is None


def test_lines_of_a_renamed_file_have_the_path_of_their_side() -> None:
    patch = "diff --git a/a.py b/b.py\nsimilarity index 90%\nrename from a.py\nrename to b.py\n--- a/a.py\n+++ b/b.py\n"
    changed = list_changed_lines(patch + "@@ -1 +1 @@\n-x\n+y\n")
    assert (changed.removed, changed.added) == ({("a.py", 1)}, {("b.py", 1)})
