"""The gold patch of a verification: without incidental files where the tests pass without them."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records.lineage import ChangeTests
from verifiers.verify import CandidateVerifier

FIX = b"diff --git a/core.py b/core.py\n--- a/core.py\n+++ b/core.py\n@@ -1 +1 @@\n-a\n+b\n"
LOCK = b"diff --git a/uv.lock b/uv.lock\n--- a/uv.lock\n+++ b/uv.lock\n@@ -1 +1 @@\n-1\n+2\n"
WHOLE = FIX + LOCK
OWN, OTHER = "tests/own.py::test", "tests/other.py::test"
NOTHING = cast("Any", None)
Outcomes = dict[str, str] | None
UNCHANGED: dict[str, str] = {}


def make_run(outcomes: Outcomes) -> Any:
    report = EvaluationReport(
        outcomes={test: Outcome(status=OutcomeStatus(status)) for test, status in (outcomes or {}).items()},
        uncollected={},
    )
    result = SimpleNamespace(
        is_applied=True,
        script_error="",
        exec_result=SimpleNamespace(killed_by=None),
        has_forged_canary=False,
        report=None if outcomes is None else report,
        failure_detail="no report",
    )
    return SimpleNamespace(report=report, result=result, record=SimpleNamespace(log="", seconds=1.0))


def choose(
    monkeypatch: pytest.MonkeyPatch,
    reduced: Outcomes,
    whole: Outcomes,
    files: tuple[str, ...],
    again: Outcomes = UNCHANGED,
) -> Any:
    """Return the patch that is chosen and the patches of the runs, by the outcomes of both and of the first again."""
    patches: list[bytes] = []

    def run(_: object, __: object, patch: bytes) -> tuple[Any, Any]:
        patches.append(patch)
        return SimpleNamespace(patch=patch, run=run_again), make_run(whole if patch == WHOLE else reduced)

    def run_again(_: object, *, patch: bytes, **__: object) -> Any:
        patches.append(patch)
        return make_run(reduced if again is UNCHANGED else again)

    monkeypatch.setattr(import_module("verifiers.verify"), "select_evaluator", run)
    verifier = CandidateVerifier(
        candidate=cast("Any", SimpleNamespace(gold_patch="gold", incidental_files=files, language="python")),
        tests=ChangeTests("tests", ("tests/own.py",)),
        environment=NOTHING,
        services=cast("Any", SimpleNamespace(artifacts=SimpleNamespace(get=lambda _: WHOLE))),
        pool=NOTHING,
        started=0,
    )
    first = verifier._run_first_gold()
    assert cast("Any", verifier.evaluator).patch == verifier.gold_patch
    assert first.report.outcomes.keys() == ((whole if verifier.gold_patch == WHOLE else reduced) or {}).keys()
    return verifier.gold_patch, patches


PASSED = {OWN: "passed", OTHER: "passed"}


@pytest.mark.parametrize(
    ("reduced", "whole", "patch", "patches"),
    [
        (PASSED, PASSED, FIX, [FIX]),
        (PASSED | {"tests/more.py::test": "skipped"}, PASSED, FIX, [FIX]),
        (PASSED | {OWN: "failed"}, PASSED, WHOLE, [FIX, WHOLE, FIX]),
        (PASSED | {OWN: "skipped"}, PASSED, WHOLE, [FIX, WHOLE, FIX]),
        (PASSED | {OTHER: "error"}, PASSED, WHOLE, [FIX, WHOLE, FIX]),
        (PASSED | {OTHER: "failed"}, PASSED | {OTHER: "failed"}, FIX, [FIX, WHOLE]),
        (None, PASSED, WHOLE, [FIX, WHOLE]),
        (None, None, WHOLE, [FIX, WHOLE]),
        (PASSED | {OWN: "failed"}, None, FIX, [FIX, WHOLE]),
    ],
)
def test_incidental_files_are_left_out_where_no_test_needs_them(
    monkeypatch: pytest.MonkeyPatch, reduced: Outcomes, whole: Outcomes, patch: bytes, patches: list[bytes]
) -> None:
    assert choose(monkeypatch, reduced, whole, ("uv.lock",)) == (patch, patches)


def test_a_test_that_fails_once_by_chance_does_not_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = PASSED | {OTHER: "failed"}
    assert choose(monkeypatch, flaky, PASSED, ("uv.lock",), again=PASSED) == (FIX, [FIX, WHOLE, FIX])
    other = PASSED | {OWN: "failed"}
    assert choose(monkeypatch, flaky, PASSED, ("uv.lock",), again=other) == (FIX, [FIX, WHOLE, FIX])


def test_a_change_without_them_has_one_run_with_its_whole_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose(monkeypatch, None, PASSED | {OWN: "failed"}, ()) == (WHOLE, [WHOLE])
