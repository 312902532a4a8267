"""Which runs the evidence of an injected bug takes, with a stand-in for the containers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from derivers.injected import evidence
from derivers.injected.evidence import EarlierRuns, InjectionEvidence, verify_injection
from derivers.injected.patches import InjectionPatches
from derivers.injected.search import Reason
from evaluation.controls.controls import BlindControls
from evaluation.lists import make_lists
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import RunVariant
from tests import records

BUG, STABLE, BREAKABLE = "t.py::bug", "t.py::stable", "t.py::breakable"
CANDIDATE = records.make_candidate(records.make_pull_request(1))
LINEAGE = SimpleNamespace(
    candidate=CANDIDATE, require_environment=lambda: records.make_environment(CANDIDATE), is_renewal=False
)


def make_report(*failing: str) -> EvaluationReport:
    failed = Outcome(status=OutcomeStatus.FAILED, message="AssertionError: 1 != 2")
    passed = Outcome(status=OutcomeStatus.PASSED)
    tests = (BUG, STABLE, BREAKABLE)
    return EvaluationReport(outcomes={test: failed if test in failing else passed for test in tests}, uncollected={})


@dataclass(frozen=True)
class StubRun:
    """A run of a task's image."""

    report: EvaluationReport
    canary_status: str

    @property
    def result(self) -> Any:
        return SimpleNamespace(canary_status=self.canary_status, report=self.report, has_forged_canary=False)

    @property
    def record(self) -> Any:
        return SimpleNamespace(seconds=2.0, test_seconds=1.0)

    def with_report(self, report: EvaluationReport) -> StubRun:
        return StubRun(report, self.canary_status)


@dataclass
class Image:
    """The image of a task: which tests fail in it without the bug, and whether its runner collects canaries."""

    broken: Collection[str] = ()
    collects_canaries: bool = True
    controls: Sequence[dict[str, Any] | None] = ({},)
    """Document of each attempt to make controls; the last of all further ones."""
    runs: list[str] = field(default_factory=list)
    listed: list[tuple[Sequence[str], Sequence[str]]] = field(default_factory=list)
    """FAIL_TO_PASS and PASS_TO_PASS for which controls were made."""

    def make_evaluator(self, *, script: str, **_: object) -> Any:
        canary_status = ("right" if self.collects_canaries else "missing") if script else "none"

        def run(variant: RunVariant, **_: object) -> StubRun:
            self.runs.append(f"{variant.value}{'' if script else ' bare'}")
            failing = self.broken if variant is RunVariant.GOLD else (*self.broken, BUG)
            return StubRun(make_report(*failing), canary_status)

        return SimpleNamespace(run=run, script=script)

    def build_controls(self, *_: object, tests: Sequence[str], others: Sequence[str], **__: object) -> BlindControls:
        self.listed.append((tests, others))
        document = self.controls[min(len(self.listed), len(self.controls)) - 1]
        return BlindControls(document=document, runs=cast("Any", (StubRun(make_report(), "right"),)))


def verify(
    image: Image, monkeypatch: pytest.MonkeyPatch, *, is_single: bool = True, **options: Any
) -> InjectionEvidence | Reason:
    """Verify a bug that was tried before. `is_single`: whether the task has no further bugs."""
    services = SimpleNamespace(
        source_images=SimpleNamespace(build=lambda *_: SimpleNamespace(name="image", digest="sha256:1")),
        sandbox=SimpleNamespace(open_pool=lambda *_, **__: nullcontext()),
        clones=SimpleNamespace(open_history=lambda *_: None, open_tree=lambda *_: None),
        test_limits=lambda _: None,
    )
    monkeypatch.setattr(evidence, "Evaluator", image.make_evaluator)
    monkeypatch.setattr(evidence, "build_controls", image.build_controls)
    monkeypatch.setattr(evidence, "open_patched_commit", lambda *_: nullcontext((None, "")))
    monkeypatch.setattr(evidence, "render_plan_script", lambda *_, canaries_beside, **__: " ".join(canaries_beside))
    monkeypatch.setattr(
        evidence,
        "make_undated_lists",
        lambda buggy, gold, _: make_lists([run.report for run in buggy], [run.report for run in gold]),
    )
    earlier = EarlierRuns(
        base=make_report(),
        buggy=make_report(BUG) if is_single else None,
        seconds=3.0,
        collects_canaries=options.pop("collects_canaries", True),
    )
    patches = InjectionPatches(setup_patch=b"s", gold_patch=b"g", test_patch=b"t")
    return verify_injection(
        cast("Any", LINEAGE), cast("Any", services), patches, hidden=["t.py"], files=(), earlier=earlier, **options
    )


def test_the_run_that_confirms_the_controls_is_the_one_without_the_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image()
    result = verify(image, monkeypatch)
    assert isinstance(result, InjectionEvidence)
    assert image.runs == ["test-only"]
    assert image.listed == [([BUG], (BREAKABLE, STABLE))]
    assert (result.controls.document, result.test_seconds, result.has_canaries) == ({}, 1.0, True)


def test_bugs_that_were_not_tried_together_are_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image()
    assert isinstance(verify(image, monkeypatch, is_single=False), InjectionEvidence)
    assert image.runs == ["test-only", "test-only"]


def test_without_controls_a_run_shows_that_gold_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image(controls=[None])
    result = verify(image, monkeypatch)
    assert isinstance(result, InjectionEvidence)
    assert image.runs == ["test-only", "gold"]
    assert len(image.listed) == 1, "the lists are as before, and so are the controls"


def test_a_test_that_fails_in_the_image_of_the_task_alone_is_in_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image(broken=[BREAKABLE], controls=[None, {}])
    result = verify(image, monkeypatch, is_single=False)
    assert isinstance(result, InjectionEvidence)
    assert image.runs == ["test-only", "test-only", "gold"]
    assert image.listed == [([BREAKABLE, BUG], (STABLE,)), ([BUG], (STABLE,))]
    assert (result.lists.pass_to_pass, result.controls.document) == ((STABLE,), {})


def test_a_runner_that_collects_no_canaries_is_run_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image(collects_canaries=False)
    result = verify(image, monkeypatch)
    assert isinstance(result, InjectionEvidence)
    assert image.runs == ["test-only", "gold", "gold bare", "test-only bare"]
    assert not result.has_canaries
    later = Image(collects_canaries=False)
    again = verify(later, monkeypatch, collects_canaries=False)
    assert isinstance(again, InjectionEvidence)
    assert (later.runs, again.has_canaries) == (["test-only bare"], False), "the next task knows"


def test_lists_that_give_no_task_take_no_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image()
    assert verify(image, monkeypatch, check=lambda *_: Reason.SAME_TESTS_FAIL) is Reason.SAME_TESTS_FAIL
    assert (image.runs, image.listed) == (["test-only"], [])
