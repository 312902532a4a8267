"""Test files of further runs: those of the reports, the whole suite, or files that the suite leaves out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.git import GitRepository
from core.config import Settings
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.file_selection import can_select_files
from evaluation.script.render import render_script
from evaluation.weak_tests.find import TreeSource
from languages.registry import frameworks_by_name
from taskdb.records import RunVariant, TestCommand
from taskdb.records.lineage import ChangeTests
from tests.derivers.review_helpers import create_services
from tests.helpers import TinyRepo
from tests.verifiers.test_evaluated_files import make_repository
from verifiers.evaluated_files import select_eval_files
from verifiers.verify import CandidateVerifier, Reason, VerificationFailure

WHOLE_SUITE = {"automake", "cabal-test", "catch2", "ctest", "googletest", "make", "meson", "programs"}
NOTHING = cast("Any", None)


def test_frameworks_that_take_no_files_run_the_whole_suite() -> None:
    assert {name for name, framework in frameworks_by_name().items() if not framework.selects_files} == WHOLE_SUITE
    for name in WHOLE_SUITE | {"pytest", "go-test"}:
        script = render_script(
            TestCommand(framework=name, argv=("x",)), workdir="/t", test_patch=b"", files=["a"], canaries_beside=()
        )
        assert ("none of the test files is there" in script) is (name not in WHOLE_SUITE)


@pytest.mark.parametrize("source", ["git:.", "instances:x.jsonl"])
def test_no_files_are_chosen_for_a_framework_that_takes_none(source: str, tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"tests/test_a.py": ""})
    candidate, environment = make_repository(repo, base, source, 50)
    settings = Settings(budget_seconds=100, test_timeout=100)
    files = [
        select_eval_files(
            candidate,
            environment.model_copy(update={"plan": environment.plan.model_copy(update={"test": test})}),
            settings.verify,
            settings.budget,
            tree=GitRepository(repo.path),
            test_files=candidate.test_files,
        )
        for test in (TestCommand(framework=name, argv=("x",)) for name in ("pytest", "meson"))
    ]
    assert files == [("tests/test_new.py",), ()]


def test_a_test_patch_without_test_files_has_those_near_what_is_touched(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    names = ("src/test_near.py", "src/a.py", "tests/x/test_snap.py", "tests/x/data/in.txt", "tests/test_far.py")
    base = repo.commit("Start", dict.fromkeys(names, ""))
    candidate, environment = make_repository(repo, base, "git:.", 50)
    candidate = candidate.model_copy(update={"gold_files": ("src/a.py",), "test_files": ("tests/x/data/in.txt",)})
    settings = Settings(budget_seconds=100, test_timeout=100)
    tree = GitRepository(repo.path)
    assert select_eval_files(
        candidate, environment, settings.verify, settings.budget, tree=tree, test_files=candidate.test_files
    ) == ("src/test_near.py", "tests/x/test_snap.py")


@pytest.mark.parametrize(
    ("framework", "fixed", "others", "can"),
    [
        ("pytest", ["tests/a.py::x", "tests/new.py::y"], [], True),
        ("pytest", ["tests/a.py::x", "shop.Suite::y"], ["tests/a.py::x"], False),
        ("pytest", [], ["tests/a.py::x", "shop.Suite::y"], True),
        ("pytest", [], ["shop.Suite::y"], False),
        ("meson", ["tests/a.py::x"], [], False),
    ],
    ids=["files", "class", "some-files", "no-files", "takes-none"],
)
def test_files_are_given_where_the_fixed_tests_have_files_of_the_tree(
    framework: str, fixed: list[str], others: list[str], can: bool, tmp_path: Path
) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"tests/a.py": "1\n"})
    merge = repo.commit("Add", {"tests/new.py": "2\n"})
    patch = f"{repo.git('diff', base, merge)}\n".encode()
    tree = TreeSource(repository=GitRepository(repo.path), base=base, patches=[patch])
    assert can_select_files(framework, tree, fixed, others) is can


@dataclass(kw_only=True)
class SuiteVerifier(CandidateVerifier):
    """Verifier whose runner reports what `report` returns for a variant and the files that it was given."""

    report_tests: Callable[[RunVariant, Sequence[str]], Mapping[str, str]]
    given: list[tuple[str, ...]] = field(default_factory=list)
    """Files of each run; none for the suite."""

    def _run_first_gold(self) -> Any:
        return self._make_run(RunVariant.GOLD, ())

    def _add_run(self, variant: RunVariant, seed: int) -> VerificationFailure | None:
        return self._record_run(variant, self._make_run(variant, self._list_files(seed)))

    def _run_pair_in_turn(self, seed: int) -> list[Any]:
        return [self._make_run(variant, self._list_files(seed)) for variant in (RunVariant.TEST_ONLY, RunVariant.GOLD)]

    def _record_run(self, variant: RunVariant, run: Any) -> VerificationFailure | None:
        (self.gold_runs if variant is RunVariant.GOLD else self.test_only_runs).append(run)
        return None

    def _make_run(self, variant: RunVariant, files: Sequence[str]) -> Any:
        chosen = tuple(files or self.eval_files)
        self.given.append(chosen)
        statuses = self.report_tests(variant, chosen)
        outcomes = {test: Outcome(status=OutcomeStatus(status)) for test, status in statuses.items()}
        report = EvaluationReport(outcomes=outcomes, uncollected={})
        record = SimpleNamespace(log="log", counts=report.count_statuses())
        result = SimpleNamespace(
            report=report,
            started=1.0,
            is_applied=True,
            script_error=None,
            has_forged_canary=False,
            exec_result=SimpleNamespace(killed_by=None),
        )
        return SimpleNamespace(report=report, record=record, result=result)


def make_verifier(folder: Path, report_tests: Any, **changes: Any) -> SuiteVerifier:
    repo, services = TinyRepo(folder / "repo"), create_services(folder)
    base = repo.commit("Start", {"a.py": "1\n", "tests/test_a.py": "1\n"})
    merge = repo.commit("Fix", {"a.py": "2\n", "more/test_b.py": "def test_b():\n    assert a == 2\n"})
    candidate, environment = make_repository(repo, base, f"git:{repo.path}", 1)
    gold, tests = (f"{repo.git('diff', base, merge, '--', path)}\n" for path in ("a.py", "more"))
    patches = {"gold_patch": services.artifacts.put_text(gold), "test_patch": services.artifacts.put_text(tests)}
    candidate = candidate.model_copy(update={**patches, "test_files": ("more/test_b.py",), "gold_files": ("a.py",)})
    verifier = SuiteVerifier(
        candidate=candidate,
        tests=ChangeTests(candidate.test_patch, candidate.test_files),
        environment=environment,
        services=services,
        pool=NOTHING,
        started=time.perf_counter(),
        report_tests=report_tests,
        **changes,
    )
    verifier.eval_files = ()
    return verifier


def test_files_of_the_change_that_the_suite_leaves_out_are_run_where_nothing_else_fails(tmp_path: Path) -> None:
    def report(variant: RunVariant, files: Sequence[str]) -> dict[str, str]:
        own = {"more/test_b.py::b": "passed" if variant is RunVariant.GOLD else "failed"}
        return {"tests/test_a.py::a": "passed"} | (own if "more/test_b.py" in files else {})

    verifier = make_verifier(tmp_path, report)
    assert verifier._run_first_pair() is None
    both = ("more/test_b.py", "tests/test_a.py")
    assert (verifier.eval_files, verifier.given) == (both, [(), (), both, both])
    lists = verifier.compute_lists()
    assert lists is not None
    assert [test for test, _ in lists.fail_to_pass] == ["more/test_b.py::b"]
    assert lists.pass_to_pass == ("tests/test_a.py::a",)


def test_a_change_without_a_failing_test_is_rejected_with_what_was_tried(tmp_path: Path) -> None:
    def report(_: RunVariant, files: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(["tests/test_a.py::a", *(["more/test_b.py::b"] if files else [])], "passed")

    failure = make_verifier(tmp_path / "a", report)._run_first_pair()
    assert failure is not None
    assert (failure.reason, failure.detail) == (
        Reason.NO_FAIL_TO_PASS,
        (
            "none of 1 passing tests fails without the gold patch; with more/test_b.py, which the suite leaves out: "
            "none of 2 passing tests fails without the gold patch"
        ),
    )
    verifier = make_verifier(tmp_path / "b", lambda *_: report(RunVariant.GOLD, ("all",)))
    failure = verifier._run_first_pair()
    assert failure is not None
    assert failure.detail == "none of 2 passing tests fails without the gold patch"
    assert len(verifier.given) == 2


def test_a_failure_of_the_runs_with_further_files_is_the_detail_and_no_other_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = make_verifier(tmp_path, lambda *_: {"tests/test_a.py::a": "passed"})
    ended = VerificationFailure(reason=Reason.KILLED_BY_TIME, detail="the tests were ended", log=None)
    monkeypatch.setattr(verifier, "_run_missed_files", lambda _: ended)
    failure = verifier._run_first_pair()
    assert failure is not None
    assert failure.reason is Reason.NO_FAIL_TO_PASS
    assert failure.detail.endswith("with more/test_b.py, which the suite leaves out: the tests were ended")


def report_half(variant: RunVariant, files: Sequence[str], *, own: str = "passed") -> dict[str, str]:
    """Return the outcomes of a suite in which a test fails before the change, and those of the file it leaves out."""
    half = {"tests/test_a.py::a": "passed" if variant is RunVariant.GOLD else "failed"}
    statuses = {"more/test_b.py::b": own if variant is RunVariant.GOLD else "failed"}
    return half | (statuses if "more/test_b.py" in files else {})


def test_half_of_a_change_is_not_enough_where_the_suite_leaves_out_the_tests_of_the_other(tmp_path: Path) -> None:
    verifier = make_verifier(tmp_path, report_half)
    assert (verifier._run_first_pair(), verifier._run_repeats()) == (None, None)
    both = ("more/test_b.py", "tests/test_a.py")
    assert (verifier.eval_files, verifier.given[:4]) == (both, [(), (), both, both])
    lists = verifier.compute_lists()
    assert lists is not None
    assert [test for test, _ in lists.fail_to_pass] == ["more/test_b.py::b", "tests/test_a.py::a"]


def test_files_of_the_change_that_fail_wherever_they_run_are_left_out(tmp_path: Path) -> None:
    verifier = make_verifier(tmp_path, partial(report_half, own="failed"))
    assert verifier._run_first_pair() is None
    assert (verifier.eval_files, len(verifier.given), len(verifier.gold_runs)) == ((), 4, 1)
    assert list(verifier.gold_runs[0].report.outcomes) == ["tests/test_a.py::a"]


def test_changed_files_without_tests_cost_no_run(tmp_path: Path) -> None:
    verifier = make_verifier(tmp_path, report_half)
    deleted = verifier.test_patch.replace(b"+def test_b():\n+    assert a == 2\n", b"+WORDS = ()\n+# none\n")
    verifier.tests = ChangeTests(verifier.services.artifacts.put(deleted), verifier.tests.files)
    vars(verifier).pop("test_patch")
    assert verifier._run_first_pair() is None
    assert verifier.given == [(), ()]


def test_suites_that_are_no_files_are_run_as_a_whole_again(tmp_path: Path) -> None:
    def report(variant: RunVariant, _: Sequence[str]) -> dict[str, str]:
        return {"shop::unit": "passed" if variant is RunVariant.GOLD else "failed", "tests/test_a.py::a": "passed"}

    verifier = make_verifier(tmp_path, report)
    assert (verifier._run_first_pair(), verifier._run_repeats()) == (None, None)
    assert verifier.given == [()] * 6
