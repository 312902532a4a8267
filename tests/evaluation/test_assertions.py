"""Which tests failed by an assertion, and which by an exception or a crash: of every framework, from its own report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.lists import classify_failure, is_assertion
from evaluation.reports import junit
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from guest.harness import HARNESS_FOLDER
from guest.harness.reports.core import ConversionError, is_exit_of_assertion
from guest.harness.reports.main import convert_report
from languages.base import read_packaged_file
from languages.registry import LANGUAGES
from taskdb.records import FailureKind
from tests.evaluation.test_reports import RECORDINGS, copy_recording

# recording: parts of the names of the tests that failed by an assertion, and of those that failed otherwise
RECORDED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "go": (("TestAdd", "TestAdd/plus_2"), ("TestPanics",)),
    "cargo": (("tests::adds_wrongly", "doc add #2"), ("words::long::returns",)),
    "cargo-noisy": ((), ("tests::fails", "tests::panics_in_another_way")),
    "jest": (("1 is 2",), ("on localhost:…",)),
    "vitest": (("1 is 2",), ("on localhost:…",)),
    "mocha": (("sums wrongly",), ()),
    "nodetest-tap": (("inner fails", "with subtests"), ("throws", "deep", "add")),
    "ava": (("sums wrongly",), ("ERR_MODULE_NOT_FOUND",)),
    "bun": (("1 is 2",), ("on localhost:…",)),
    "tape": (("equal", "plan != count"), ()),
    "prove": (("sums wrongly",), ()),
    "rspec": (("sums wrongly",), ("raises",)),
    "minitest": (("test_sums_wrongly",), ()),
    "test-unit": (("test_each[two]",), ()),
    "phpunit": (("testSumsWrongly", "data set #0"), ()),
    "busted": (("sums wrongly",), ()),
    "luaunit": (("test_sums_wrongly",), ()),
    "testthat": (("sums wrongly",), ()),
    "exunit": (("sums wrongly",), ("raises",)),
    "exunit-text": (("sums wrongly",), ("raises",)),
    "googletest": (("SumsWrongly", "IsOne/1"), ()),
    "catch2": (("adding sums up",), ("throws",)),
    "cases": (('a "quoted" year', "a century"), ("throws", "plain")),
    "maven": (("each(int)[2]", "sumsWrongly"), ()),
    "gradle": (("sumsWrongly",), ("throwing",)),
    "sbt": (("should fail", "fails"), ()),
    "swift": (("named()", "many(_:)", "testFails"), ("deep()", "testThrows", "testCrashes")),
    "trx-xunit": (("a kettle fails", 'IsCold(heat: 1, name: "a.b")'), ("Waits",)),
}


def read_kinds(name: str, files: Mapping[str, str], tmp_path: Path, **tree: str) -> dict[str, bool]:
    """Return test -> whether it failed by an assertion, of a report that its framework wrote into `files`."""
    for folder, texts in (("out", files), ("tree", tree)):
        for path, text in texts.items():
            (tmp_path / folder / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / path).write_text(text, encoding="utf-8")
        (tmp_path / folder).mkdir(exist_ok=True)
    report = junit.parse_junit(convert_report(name, str(tmp_path / "out"), str(tmp_path / "tree")), [])
    failed = {test: outcome for test, outcome in report.outcomes.items() if outcome.status is OutcomeStatus.FAILED}
    return {test.partition("::")[2]: is_assertion(outcome) for test, outcome in failed.items()}


@pytest.mark.parametrize("recording", RECORDED)
def test_a_recorded_failure_is_of_an_assertion_or_not(recording: str, tmp_path: Path) -> None:
    name, out, tree = copy_recording(recording, tmp_path)
    report = junit.parse_junit(convert_report(name, str(out), str(tree)), [])
    failed = {test: outcome for test, outcome in report.outcomes.items() if outcome.status is OutcomeStatus.FAILED}
    asserting, others = RECORDED[recording]
    for kind, ends in ((True, asserting), (False, others)):
        names = sorted(test for test, outcome in failed.items() if is_assertion(outcome) is kind)
        assert len(names) == len(ends)
        assert all(any(end in test for test in names) for end in ends)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("assert 1 == 2", True),
        ("AssertionError", True),
        ("AssertionError: x", True),
        ("greet.testing.GreetAssertionError: x", True),
        ("Failed: DID NOT RAISE <class 'KeyError'>", True),
        ("Failed: Timeout (>1.0s) from pytest-timeout.", False),
        ("[XPASS(strict)] gone", True),
        ("UnboundLocalError: cannot access local variable 'total'", False),
        ("NameError: name 'x' is not defined", False),
        ("greet.errors.Problem: assert 1 == 2", False),
        ("", False),
    ],
)
def test_a_failure_of_pytest_is_read_from_its_message(message: str, expected: bool) -> None:
    assert is_assertion(Outcome(status=OutcomeStatus.FAILED, message=message)) is expected
    assert not is_assertion(Outcome(status=OutcomeStatus.ERROR, message=message))


def test_what_a_report_says_precedes_the_message_and_is_stored() -> None:
    outcomes = {
        f"a.go::{kind}": Outcome(status=OutcomeStatus.FAILED, message="assert 1 == 2", by_assertion=kind)
        for kind in (True, False, None)
    }
    report = EvaluationReport(outcomes=outcomes, uncollected={})
    stored = EvaluationReport.from_bytes(report.to_bytes())
    assert stored == report
    kinds = [classify_failure(stored, test) for test in outcomes]
    assert kinds == [FailureKind.ASSERTION, FailureKind.ERROR, FailureKind.ASSERTION]
    earlier = b'{"outcomes":{"a.py::a":["failed","assert 0"]},"uncollected":{}}'
    assert classify_failure(EvaluationReport.from_bytes(earlier), "a.py::a") is FailureKind.ASSERTION


RUST = """fn check() {
    assert!(false, "of a message of its own");
    insta::assert_snapshot!("x");
    panic!("of a message of its own");
    None::<u8>.expect("of a message of its own");
}
"""
RUST_PANICS = {
    "asserts": ("src/lib.rs:2:5:", "of a message of its own", True),
    "asserts_by_path": ("src/lib.rs:3:5:", "of a message of its own", True),
    "panics": ("src/lib.rs:4:5:", "of a message of its own", False),
    "expects": ("src/lib.rs:5:16:", "of a message of its own", False),
    "equal": ("src/gone.rs:9:5:", "assertion `left == right` failed: sums differ", True),
    "unwraps": ("src/lib.rs:2:5000:", "called `Option::unwrap()` on a `None` value", False),
    "overflows": ("src/lib.rs:999:5:", "attempt to subtract with overflow", False),
    "property": ("src/lib.rs:1:1:", "[quickcheck] TEST FAILED. Arguments: (1)", True),
    "crashing_property": ("src/lib.rs:1:1:", "[quickcheck] TEST FAILED (runtime error). Arguments: (1)", False),
}


def test_a_panic_of_rust_is_of_an_assertion_by_its_message_or_its_place(tmp_path: Path) -> None:
    lines = ["     Running unittests src/lib.rs (target/debug/deps/greet-0123456789abcdef)", "running 11 tests"]
    names = [*RUST_PANICS, "returns", "should_panic"]
    lines += [f"test {name} ... FAILED" for name in names] + ["", "failures:", ""]
    for name, (place, message, _) in RUST_PANICS.items():
        lines += [f"---- {name} stdout ----", f"thread '{name}' panicked at {place}", message, ""]
    lines += ["---- returns stdout ----", 'Error: "no word"', ""]
    lines += ["---- should_panic stdout ----", "note: test did not panic as expected", ""]
    manifest = '[package]\nname = "greet"\n'
    tree = {"src/lib.rs": RUST, "Cargo.toml": manifest}
    kinds = read_kinds("cargo", {"cargo.txt": "\n".join(lines) + "\n"}, tmp_path, **tree)
    expected = {name: kind for name, (_, _, kind) in RUST_PANICS.items()}
    assert kinds == {**expected, "returns": False, "should_panic": True}


def test_a_panic_of_go_is_of_no_assertion_even_of_a_suite_or_a_subtest(tmp_path: Path) -> None:
    outputs = {
        "TestFails": "    a_test.go:3: got 1, want 2\n",
        "TestLogsFirst": "    a_test.go:3: starting\n",
        "TestSuite": "    suite.go:87: test panicked: runtime error: index out of range\n",
        "TestParent": "",
        "TestParent/deep": "panic: runtime error [recovered]\n",
    }
    events: list[dict[str, Any]] = [{"Action": "start", "Package": "p"}]
    for test, text in outputs.items():
        events.append({"Action": "run", "Package": "p", "Test": test})
        events.append({"Action": "output", "Package": "p", "Test": test, "Output": text})
        if test == "TestLogsFirst":
            events.append({"Action": "output", "Package": "p", "Test": test, "Output": "panic: no\n"})
        events.append({"Action": "fail", "Package": "p", "Test": test, "Elapsed": 0})
    text = "\n".join(map(json.dumps, events))
    tree = {"go.mod": "module p\n", "a_test.go": "".join(f"func {test}(" for test in outputs)}
    kinds = read_kinds("gojson", {"go.json": text}, tmp_path, **tree)
    assert [test for test, kind in kinds.items() if kind] == ["TestFails"]
    assert len(kinds) == 5


def test_exceptions_in_failures_of_gradle_and_sbt_are_found_by_their_type(tmp_path: Path) -> None:
    types = {
        "java.lang.AssertionError": True,
        "org.opentest4j.AssertionFailedError": True,
        "org.junit.ComparisonFailure": True,
        "org.mockito.exceptions.verification.WantedButNotInvoked": True,
        "org.spockframework.runtime.ConditionNotSatisfiedError": True,
        "org.scalatest.exceptions.TestFailedException": True,
        "munit.FailException": True,
        "java.lang.NullPointerException": False,
        "java.lang.StackOverflowError": False,
        "a.LoginFailedException": False,
        "a.PreconditionError": False,
    }
    rows = "".join(
        f'<testcase classname="a.BTest" name="{name}"><failure message="x" type="{name}">{name}: x</failure></testcase>'
        for name in types
    )
    kinds = read_kinds("jvm", {"TEST-a.xml": f'<testsuite name="a.BTest">{rows}</testsuite>'}, tmp_path)
    assert kinds == types


@pytest.mark.parametrize("name", ["mocha", "nodetest", "lines"])
def test_rows_of_our_reporters_have_the_kind_where_the_framework_has_one_status(name: str, tmp_path: Path) -> None:
    rows = [
        {"file": "a.js", "name": test, "status": "failed", "message": "x", **kind}
        for test, kind in (("raises", {"assertion": False}), ("asserts", {"assertion": True}), ("fails", {}))
    ]
    text = "\n".join(map(json.dumps, rows))
    if name == "mocha":
        errors = {
            "raises": {"message": "x", "stack": "TypeError: x\n at f"},
            "asserts": {"message": "x", "stack": "AssertionError: x\n at f"},
            "fails": {"message": "x", "stack": "Error: x", "actual": "1", "expected": "2"},
        }
        tests = [{"file": "a.js", "fullTitle": test, "err": error} for test, error in errors.items()]
        text = json.dumps({"stats": {}, "tests": tests, "failures": tests, "pending": []})
    file = "mocha.json" if name == "mocha" else "tests.jsonl"
    kinds = read_kinds(name, {file: text}, tmp_path, **{"a.js": ""})
    assert kinds == {"raises": False, "asserts": True, "fails": True}


NODE_TESTS = """
const test = require('node:test');
const assert = require('node:assert');
test('compares', () => assert.strictEqual(1, 2));
test('checks', () => assert(false));
test('rejects', () => assert.rejects(async () => 1));
test('raises', () => null.x);
test('throws', () => { throw new Error('no'); });
test('parent', (t) => t.test('child', () => null.x));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_reports_which_errors_are_of_assertions(tmp_path: Path) -> None:
    (tmp_path / "a.test.cjs").write_text(NODE_TESTS, encoding="utf-8")
    reporter = HARNESS_FOLDER / "reports" / "assets" / "node_reporter.mjs"
    command = ["node", "--test", f"--test-reporter={reporter}", "a.test.cjs"]
    environment = {name: value for name, value in os.environ.items() if name != "NODE_TEST_CONTEXT"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert [row["name"] for row in rows if row["assertion"]] == ["compares", "checks", "rejects"]
    assert len(rows) == 7


def test_automake_reports_the_status_of_a_program_that_a_signal_ended(tmp_path: Path) -> None:
    statuses = {"fails": "1", "asserts": "134", "crashes": "139", "silent": ""}
    lines = [
        f"echo ':global-test-result: FAIL' > {name}.trs; echo 'FAIL {name} (exit status: {status})' > {name}.log"
        for name, status in statuses.items()
    ]
    (tmp_path / "check.sh").write_text("\n".join(lines), encoding="utf-8")
    shell = read_packaged_file("languages.native", "automake.sh.j2")
    function = shell.partition("command=(")[0]
    script = function.replace("{% if folder %}{{ folder }}/{% endif %}", "") + 'automake_tests "$PWD" bash check.sh\n'
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False, capture_output=True)
    rows = [json.loads(line) for line in (tmp_path / "tests.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = {row["name"]: row["assertion"] for row in rows}
    assert kinds == {"fails": True, "asserts": True, "crashes": False, "silent": True}


def test_what_ends_a_program_is_read_from_the_log_of_ctest(tmp_path: Path) -> None:
    names = ["fails", "asserts", "crashes", "hangs"]
    rows = "".join(f'<testcase name="{name}" status="fail"><failure message=""/></testcase>' for name in names)
    ends = ["***Failed", "Subprocess aborted***Exception:", "***Exception: SegFault", "***Timeout"]
    text = "\n".join(
        f"{number}/4 Test #{number}: {name} ......{end}    0.01 sec"
        for number, (name, end) in enumerate(zip(names, ends, strict=True), 1)
    )
    kinds = read_kinds("ctest", {"ctest.xml": f"<testsuite>{rows}</testsuite>", "ctest.log": text}, tmp_path / "ctest")
    assert kinds == {"fails": True, "asserts": True, "crashes": False, "hangs": False}
    with pytest.raises(ConversionError):  # the log alone has no results, as programs print there
        read_kinds("ctest", {"ctest.log": text}, tmp_path / "log")


@pytest.mark.parametrize("prefix", ["p:slow / ", ""])
def test_what_ends_a_program_is_read_from_the_log_of_meson(prefix: str, tmp_path: Path) -> None:
    ends = {
        "fails": "FAIL            0.09s   exit status 1",
        "asserts": "FAIL            0.08s   killed by signal 6 SIGABRT",
        "crashes": "FAIL            0.12s   killed by signal 11 SIGSEGV",
        "hangs": "TIMEOUT         1.07s   killed by signal 15 SIGTERM",
    }
    text = "\n".join(f"{number}/4 p:slow / {name}   {end}" for number, (name, end) in enumerate(ends.items(), 1))
    rows = "".join(f'<testcase name="{prefix}{name}" classname="p"><failure/></testcase>' for name in list(ends)[:3])
    rows += f'<testcase name="{prefix}hangs" classname="p"/>'
    files = {"testlog.junit.xml": f'<testsuites><testsuite name="p">{rows}</testsuite></testsuites>'}
    kinds = read_kinds("meson", {**files, "testlog.txt": text}, tmp_path)
    assert [kind for _, kind in sorted(kinds.items())] == [True, False, True]
    report = convert_report("meson", str(tmp_path / "out"), str(tmp_path / "tree"))
    (status,) = (outcome.status for test, outcome in junit.parse_junit(report, []).outcomes.items() if "hangs" in test)
    assert status is OutcomeStatus.ERROR


def test_a_recipe_of_make_that_a_signal_ended_is_of_no_assertion(tmp_path: Path) -> None:
    codes = {"fails": 1, "asserts": 134, "crashes": 139, "is missing": 127}
    rows = [json.dumps({"test": name, "programs": [], "code": code, "folder": "."}) for name, code in codes.items()]
    kinds = read_kinds("make", {"recipes.jsonl": "\n".join(rows)}, tmp_path, Makefile="")
    assert kinds == {"fails": True, "asserts": True, "crashes": False, "is missing": False}


def test_an_exit_status_may_be_of_an_assertion_unless_a_signal_ended_the_program() -> None:
    assert all(map(is_exit_of_assertion, (1, 3, 255, 134, -6)))
    assert not any(map(is_exit_of_assertion, (139, -11, 136, -8, 124, 126, 127, 137, -9)))


def test_exceptions_of_googletest_and_catch2_are_no_assertions(tmp_path: Path) -> None:
    messages = {
        "fails": "a.cc:4&#10;Expected equality of these values:",
        "throws": "unknown file&#10;C++ exception with description &quot;no&quot; thrown in the test body.",
    }
    rows = "".join(
        f'<testcase classname="A" name="{name}"><failure message="{text}" type=""/></testcase>'
        for name, text in messages.items()
    )
    report = f'<testsuites name="AllTests"><testsuite name="A">{rows}</testsuite></testsuites>'
    assert read_kinds("googletest", {"a.xml": report}, tmp_path / "g") == {"A.fails": True, "A.throws": False}
    inner = {
        "fails": '<Expression success="false"><Original>a</Original><Expanded>1</Expanded></Expression>',
        "calls FAIL": "<Failure>no</Failure>",
        "throws in an expression": '<Expression success="false"><Exception>no</Exception></Expression>',
        "crashes": "<FatalErrorCondition>SIGSEGV - Segmentation violation signal</FatalErrorCondition>",
    }
    cases = "".join(
        f'<TestCase name="{name}" filename="a.cpp">{text}<OverallResult success="false"/></TestCase>'
        for name, text in inner.items()
    )
    kinds = read_kinds("catch2", {"a.xml": f"<Catch><Group>{cases}</Group></Catch>"}, tmp_path / "c")
    assert kinds == {"fails": True, "calls FAIL": True, "throws in an expression": False, "crashes": False}


def test_every_format_of_a_framework_is_tested() -> None:
    formats = {framework.report for language in LANGUAGES.values() for framework in language.frameworks}
    recorded = {RECORDINGS[recording][0] for recording in RECORDED}
    assert formats - {None} <= recorded | {"nodetest", "ctest", "meson", "make"}
