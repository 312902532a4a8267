from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from evaluation.differences import Diagnosis, ObservedRun, compare_with_runs
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.artifacts import Artifacts
from taskdb.records import PublishedLists, RunVariant, TestRun
from tests import records

TEST = "tests/test_a.py::test_one"


def make_run(
    outcomes: Mapping[str, str],
    uncollected: Mapping[str, str] | None = None,
    log: str = "",
    killed_by: str | None = None,
) -> ObservedRun:
    """Make a run; an outcome is `status` or `status: message`."""
    parsed = {}
    for test, text in outcomes.items():
        status, _, message = text.partition(": ")
        parsed[test] = Outcome(status=OutcomeStatus(status), message=message)
    report = EvaluationReport(outcomes=parsed, uncollected=uncollected or {})
    return ObservedRun(report=report, log=log, killed_by=killed_by)


def make_diagnosis(
    before: ObservedRun | list[ObservedRun],
    gold: ObservedRun | list[ObservedRun],
    *,
    f2p: tuple[str, ...] = (),
    p2p: tuple[str, ...] = (),
    eval_files: tuple[str, ...] = ("tests/test_a.py",),
) -> Diagnosis:
    return Diagnosis(
        published=PublishedLists(FAIL_TO_PASS=f2p, PASS_TO_PASS=p2p),
        test_only=before if isinstance(before, list) else [before],
        gold=gold if isinstance(gold, list) else [gold],
        eval_files=eval_files,
    )


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ("failed", "failed: socket.gaierror: [Errno -2] Name or service not known", "network"),
        ("failed", "failed: ECONNREFUSED 127.0.0.1:80", "network"),
        ("failed", "failed: Timeout of 2000ms exceeded", "time"),
        ("failed", "failed: certificate has expired", "time"),
        ("failed", "error: ModuleNotFoundError: No module named 'yaml'", "environment"),
        ("failed", "skipped: needs Windows", "environment"),
        ("failed", "skipped: could not resolve host example.org", "network"),
        ("failed", "failed: AssertionError: 1 != 2", "unknown"),
        ("passed", "passed", "unknown"),
    ],
)
def test_a_missing_test_that_was_run_is_explained_by_its_result(before: str, after: str, cause: str) -> None:
    diagnosis = make_diagnosis(make_run({TEST: before}), make_run({TEST: after}))
    reason, detail = diagnosis.explain_missing(TEST, "FAIL_TO_PASS")
    assert reason == cause
    assert detail


def test_a_test_whose_status_varies_is_flaky() -> None:
    failed, passed = make_run({TEST: "failed"}), make_run({TEST: "passed"})
    diagnosis = make_diagnosis([failed, failed], [passed, failed])
    assert diagnosis.explain_missing(TEST, "FAIL_TO_PASS") == (
        "flaky",
        "test-only: failed 2; gold: failed 1, passed 1",
    )


def test_a_failure_without_a_message_is_explained_by_the_log() -> None:
    test = "net_test.go::TestFetch"
    gold = make_run(
        {test: "failed"}, log="--- FAIL: TestFetch (0.00s)\n    net_test.go:9: dial tcp: lookup x.org\nFAIL\n"
    )
    cause, detail = make_diagnosis(make_run({test: "failed"}), gold).explain_missing("TestFetch", "FAIL_TO_PASS")
    assert (cause, detail) == ("network", "net_test.go:9: dial tcp: lookup x.org")


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("SyntaxError: invalid syntax", "collection"),
        ("ImportError: cannot import name 'x'", "environment"),
        ("URLError: <urlopen error>", "network"),
    ],
)
def test_a_file_that_is_not_collected_explains_its_missing_tests(reason: str, cause: str) -> None:
    run = make_run({"tests/test_b.py::test_x": "passed"}, {"tests/test_a.py": reason})
    assert make_diagnosis(run, run).explain_missing(TEST, "FAIL_TO_PASS") == (cause, reason)


def test_a_test_of_another_file_was_not_run() -> None:
    run = make_run({TEST: "passed"})
    assert make_diagnosis(run, run).explain_missing("tests/test_z.py::test_q", "PASS_TO_PASS")[0] == "collection"
    whole = make_diagnosis(run, run, eval_files=())
    assert whole.explain_missing("tests/test_z.py::test_q", "PASS_TO_PASS")[0] == "unknown"
    unreported = make_diagnosis(run, run).explain_missing("tests/test_a.py::test_q", "PASS_TO_PASS")
    assert unreported == ("unknown", "tests/test_a.py was run and reports no such test")


def test_a_run_ended_for_time_explains_what_it_does_not_report() -> None:
    run = make_run({TEST: "passed"}, killed_by="time")
    assert make_diagnosis(run, run).explain_missing("tests/test_z.py::test_q", "PASS_TO_PASS")[0] == "time"


def test_ids_of_equal_letters_and_cut_ids_are_spelled_otherwise() -> None:
    run = make_run({"tests/test_a.py::test_p[a-b]": "passed", "tests/test_a.py::test_p[c-d]": "passed"})
    diagnosis = make_diagnosis(run, run, p2p=("tests/test_a.py::test_p[a_b]",))
    assert diagnosis.explain_missing("tests/test_a.py::test_p[a_b]", "PASS_TO_PASS")[0] == "id-spelling"
    assert diagnosis.explain_extra("tests/test_a.py::test_p[a-b]", "PASS_TO_PASS")[0] == "id-spelling"
    cause, detail = diagnosis.explain_missing("tests/test_a.py::test_p[", "PASS_TO_PASS")
    assert cause == "id-spelling"
    assert "2 tests" in detail


def test_tests_of_a_file_that_does_not_compile_before_the_fix_fail_to_pass() -> None:
    test = "src/a.rs::works"
    before, gold = make_run({}), make_run({test: "passed"})
    diagnosis = make_diagnosis(before, gold, f2p=(), p2p=("works",))
    assert diagnosis.explain_missing("works", "PASS_TO_PASS")[0] == "collection"
    assert diagnosis.explain_extra(test, "FAIL_TO_PASS")[0] == "collection"


def test_an_extra_test_is_explained_by_the_published_lists() -> None:
    other = "tests/test_b.py::test_two"
    run = make_run({TEST: "failed: AssertionError", other: "failed: gaierror"})
    gold = make_run({TEST: "passed", other: "passed"})
    elsewhere = make_diagnosis(run, gold, p2p=(TEST,))
    assert elsewhere.explain_extra(TEST, "FAIL_TO_PASS") == (
        "unknown",
        "published as PASS_TO_PASS; before the fix: AssertionError",
    )
    assert elsewhere.explain_extra(other, "FAIL_TO_PASS")[0] == "network"
    assert elsewhere.explain_extra(other, "PASS_TO_PASS")[0] == "collection"
    assert elsewhere.explain_extra("tests/test_a.py::test_new", "PASS_TO_PASS")[0] == "unknown"


def test_other_tests_of_a_file_that_is_published_as_a_whole_are_no_unknown_difference() -> None:
    fixed, kept = "test/std-test.cc::std.fixed", "test/std-test.cc::std.kept"
    before, gold = make_run({fixed: "failed", kept: "passed"}), make_run({fixed: "passed", kept: "passed"})
    diagnosis = make_diagnosis(before, gold, f2p=("std-test",))
    assert diagnosis.explain_extra(kept, "PASS_TO_PASS") == (
        "id-spelling",
        "all of std-test is published as FAIL_TO_PASS",
    )
    assert make_diagnosis(before, gold).explain_extra(kept, "PASS_TO_PASS")[0] == "unknown"


def test_tests_of_a_program_that_no_published_name_belongs_to_were_not_run_there() -> None:
    ours = {"test/a-test.cc::a.one": "passed", "test/a-test.cc::a.two": "passed", "test/b-test.cc::b.one": "passed"}
    diagnosis = make_diagnosis(make_run(ours), make_run(ours), p2p=("a.one",))
    assert diagnosis.explain_extra("test/b-test.cc::b.one", "PASS_TO_PASS")[0] == "collection"
    assert diagnosis.explain_extra("test/a-test.cc::a.two", "PASS_TO_PASS")[0] == "unknown"


def test_each_difference_has_its_cause_in_the_verdict(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    gone = "tests/test_a.py::test_gone"

    def make_record(variant: RunVariant, run: ObservedRun) -> TestRun:
        return records.make_test_run(
            variant=variant,
            report=artifacts.put(run.report.to_bytes()),
            log=artifacts.put_text(run.log),
            killed_by=run.killed_by,
        )

    runs = [
        make_record(RunVariant.TEST_ONLY, make_run({TEST: "failed"})),
        make_record(RunVariant.GOLD, make_run({TEST: "passed"})),
        make_record(RunVariant.CONTROL, make_run({TEST: "failed", gone: "failed"})),
    ]
    published = PublishedLists(FAIL_TO_PASS=(gone,), PASS_TO_PASS=())
    verdict = compare_with_runs(published, [TEST], [], runs=runs, eval_files=("tests/test_a.py",), artifacts=artifacts)
    assert verdict.verdict == "different"
    assert [(cause.list_name, cause.side, cause.test, cause.cause, cause.detail) for cause in verdict.causes] == [
        ("FAIL_TO_PASS", "missing", gone, "unknown", "tests/test_a.py was run and reports no such test"),
        ("FAIL_TO_PASS", "extra", TEST, "unknown", "in no published list"),
    ]
    agreed = compare_with_runs(
        PublishedLists(FAIL_TO_PASS=(TEST,), PASS_TO_PASS=()), [TEST], [], runs=[], eval_files=(), artifacts=artifacts
    )
    assert (agreed.verdict, agreed.causes) == ("exact", ())
