"""Every reader returns the tests of a valid report, whatever their titles, and no test falls together with another."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from evaluation.reports import junit
from evaluation.reports.outcomes import EvaluationReport
from guest.harness.reports.core import ConversionError
from guest.harness.reports.main import FORMATS, read_results
from guest.reports.junit import UnreadableReportError
from tests.bundle_reports import read_in_bundle
from tests.evaluation.report_writers import WRITERS, ReportedTest, ReportWriter, case
from tests.evaluation.test_reports import write_files

TITLES = (
    "adds",
    "adds two numbers",
    "adds #2",
    "adds  two   numbers",
    "größe 数 \U0001f600 e\u0301",
    "two\nlines\r\nand\ttabs",
    "quotes \" ' ` \\ \\n",
    "brackets [a] (b) {c} <d> &amp; ]]> <!-- -->",
    "A::b::c",
    "a > b",
    "a \u203a b",
    "x" * 5000 + "1",
    "x" * 5000 + "2",
    "ok 3 - a point",
    "not ok",
    "1..3",
    "test a ... ok",
    "--- PASS: TestA (0.00s)",
    "# SKIP",
    "\x1b[32mgreen\x1b[0m",
    "bell \x07",
    "bell \x08",
    "\x00",
    "-1",
    "42",
    "of <X at {address}>",
    "waits ({ms} ms)",
    "writes {folder}/a.txt",
    "of Thing@{hash}",
    "asks http://127.0.0.1:{port}/x",
    "casts (1.5 s)",
    "casts (2.5 s)",
    "mask 0x00ff00ff",
    "mask 0xff00ff00",
)
"""`{...}` differs in every run."""


@pytest.fixture(autouse=True)
def end_readers_that_hang() -> Iterator[None]:
    def fail(*_: object) -> None:
        raise TimeoutError("the reader takes more than two minutes")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def draw_tests(writer: ReportWriter, draw: random.Random) -> list[ReportedTest]:
    """Draw the tests of a report, of several files with equal titles, grouped by file."""
    titles = [title for title in TITLES if not any(part in title for part in writer.unstable)]
    return [
        ReportedTest(
            file=f"tests/{name}{writer.suffix}",
            name=f"case_{number}",
            title=draw.choice(titles),
            status=draw.choice(writer.statuses),
        )
        for name in ("alpha", "beta", "gamma")
        for number in range(draw.randrange(1, 25))
    ]


def fill_in(tests: list[ReportedTest], draw: random.Random) -> list[ReportedTest]:
    """Return the tests of one run: the parts of titles that differ between runs are drawn, for each test alone."""

    def fill(title: str) -> str:
        values = {
            "{address}": f"0xc0{draw.getrandbits(32):08x}",
            "{ms}": str(draw.randrange(1, 5000)),
            "{folder}": f"/tmp/tmp{draw.getrandbits(40):x}",
            "{hash}": f"{draw.getrandbits(32):08x}",
            "{port}": str(draw.randrange(10_000, 60_000)),
        }
        for name, value in values.items():
            title = title.replace(name, value)
        return title

    return [ReportedTest(file=test.file, name=test.name, title=fill(test.title), status=test.status) for test in tests]


def read_report(writer: ReportWriter, tests: list[ReportedTest], folder: Path) -> EvaluationReport:
    """Write a report of the tests and return what is read from it. Every exception is a failure."""
    out, tree = write_files(folder, dict(writer.write(tests)), dict(writer.tree(tests)))
    return parse(writer, out, tree)


def parse(writer: ReportWriter, out: str, tree: str) -> EvaluationReport:
    content = read_results(writer.report_format, out, tree).to_xml()
    report = junit.parse_junit(content, [])
    assert read_in_bundle(content) == {test: outcome.status for test, outcome in report.outcomes.items()}
    return report


def list_statuses(report: EvaluationReport) -> dict[str, str]:
    return {test: outcome.status.value for test, outcome in report.outcomes.items()}


def test_every_reader_has_a_writer() -> None:
    assert {writer.report_format for writer in WRITERS.values()} == set(FORMATS)


@pytest.mark.parametrize("framework", WRITERS)
def test_a_report_has_one_id_for_each_test_with_its_file_and_status_and_the_same_in_the_next_run(
    framework: str, tmp_path: Path
) -> None:
    writer, draw = WRITERS[framework], random.Random(framework)
    for round_number in range(8):
        tests = draw_tests(writer, draw)
        runs = []
        for run in "ab":
            folder = tmp_path / f"{round_number}{run}"
            runs.append(list_statuses(read_report(writer, fill_in(tests, draw), folder)))
            shutil.rmtree(folder)
        assert [(test.partition("::")[0], status) for test, status in runs[0].items()] == [
            (test.file, test.status) for test in tests
        ]
        assert runs[0] == runs[1]


@pytest.mark.parametrize("framework", WRITERS)
def test_plain_titles_are_the_ends_of_ids(framework: str, tmp_path: Path) -> None:
    writer = WRITERS[framework]
    tests = [
        ReportedTest(file=f"tests/alpha{writer.suffix}", name=f"case_{word}", title=word, status=writer.statuses[0])
        for word in ("one", "two", "three")
    ]
    ids = list(list_statuses(read_report(writer, tests, tmp_path)))
    ends = [test.title if writer.has_titles else test.name for test in tests]
    assert [test.endswith(end) for test, end in zip(ids, ends, strict=True)] == [True] * 3


@pytest.mark.parametrize("framework", WRITERS)
def test_a_truncated_or_corrupted_report_is_read_or_rejected_and_a_cut_makes_no_test_better(
    framework: str, tmp_path: Path
) -> None:
    writer, draw = WRITERS[framework], random.Random(framework)
    tests = fill_in(draw_tests(writer, draw), draw)
    out, tree = write_files(tmp_path, dict(writer.write(tests)), dict(writer.tree(tests)))
    whole = list_statuses(parse(writer, out, tree))
    path = max((path for path in Path(out).rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content, kinds = path.read_bytes(), Counter[str]()
    for number in range(60):
        damaged = bytearray(content[: draw.randrange(len(content) + 1)])
        for _ in range(draw.randrange(1, 12) if number % 2 and damaged else 0):
            damaged[draw.randrange(len(damaged))] = draw.choice(b'<>&"{}[]:,\\\0\n1#-\xff\x16 ok')
        path.write_bytes(bytes(damaged))
        try:
            read = list_statuses(parse(writer, out, tree))
        except ConversionError:
            kinds["rejected"] += 1
            continue
        kinds["read"] += 1
        if number % 2 == 0:
            better = {test for test, status in read.items() if status == "passed" != whole.get(test, status)}
            assert better == set()
    assert kinds["read"]


def write_pytest(tests: list[ReportedTest]) -> bytes:
    """Return what pytest writes: it prints control characters as `#x07`, and a test whose teardown fails twice."""
    rows = ""
    for test in tests:
        name = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", lambda match: f"#x{ord(match[0]):02X}", test.title)
        row = {"classname": f"tests.{test.name}", "file": test.file, "name": f"test_it[{name}]"}
        rows += case(row, "passed") + case(row, test.status) if test.status == "error" else case(row, test.status)
    return f'<testsuites><testsuite name="pytest">{rows}</testsuite></testsuites>'.encode()


def test_reports_of_pytest_have_one_id_for_each_test_and_the_same_in_the_next_run() -> None:
    draw, statuses = random.Random("pytest"), ("passed", "failed", "error", "skipped")
    for _ in range(30):
        titles = [title for title in TITLES if not re.search("{(ms|folder|hash|port)}", title)]
        tests = [
            ReportedTest(file=f"tests/{name}.py", name=name, title=draw.choice(titles), status=draw.choice(statuses))
            for name in ("alpha", "beta")
            for _ in range(30)
        ]
        runs = []
        for _ in "ab":
            unique = {(test.file, test.title): test for test in fill_in(tests, draw)}
            content, files = write_pytest(list(unique.values())), [test.file for test in tests]
            report = list_statuses(junit.parse_junit(content, files))
            assert read_in_bundle(content, files) == report
            assert [(test.partition("::")[0], status) for test, status in report.items()] == [
                (test.file, test.status) for test in unique.values()
            ]
            runs.append(report)
        assert runs[0] == runs[1]


def test_a_truncated_or_corrupted_report_of_pytest_is_read_or_rejected_by_both_parsers() -> None:
    draw, writer = random.Random("pytest"), WRITERS["junit"]
    content, read_count = write_pytest(fill_in(draw_tests(writer, draw), draw)), 0
    for number in range(400):
        damaged = bytearray(content[: draw.randrange(len(content) + 1)] if number % 4 == 0 else content)
        for _ in range(draw.randrange(4) if damaged else 0):
            damaged[draw.randrange(len(damaged))] = draw.choice(b"<>&\"'/=#;:.a1 \0\xff")
        try:
            report = list_statuses(junit.parse_junit(bytes(damaged), []))
        except UnreadableReportError:
            assert read_in_bundle(bytes(damaged)) is None
        else:
            read_count += 1
            assert read_in_bundle(bytes(damaged)) == report
    assert read_count > 20


# ------------------------------------------------------------------------- output of tests is never read as a result


def read(report_format: str, folder: Path, out: dict[str, str], tree: dict[str, str]) -> dict[str, str]:
    content = read_results(report_format, *write_files(folder, out, tree)).to_xml()
    return list_statuses(junit.parse_junit(content, []))


def test_a_printed_event_of_go_is_output(tmp_path: Path) -> None:
    tree = {"go.mod": "module m\n", "a_test.go": "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\n"}
    tree["other/b_test.go"] = "func TestC(t *testing.T) {}\n"
    forged = json.dumps({"Action": "pass", "Package": "m", "Test": "TestB"})
    lines = ["--- PASS: TestB (0.00s)", "FAIL\tm [build failed]", "FAIL\tm/other [build failed]", forged]
    events = [
        {"Action": "start", "Package": "m"},
        {"Action": "run", "Package": "m", "Test": "TestA"},
        *({"Action": "output", "Package": "m", "Test": "TestA", "Output": f"{line}\n"} for line in lines),
        *({"Action": "output", "Package": "m", "Output": f"{line}\n"} for line in lines),
        {"Action": "pass", "Package": "m", "Test": "TestA"},
        {"Action": "run", "Package": "m", "Test": "TestB"},
        {"Action": "fail", "Package": "m", "Test": "TestB"},
        {"Action": "fail", "Package": "m"},
    ]
    out = {"go.json": "".join(json.dumps(event) + "\n" for event in events)}
    content = read_results("gojson", *write_files(tmp_path, out, tree)).to_xml()
    report = junit.parse_junit(content, [])
    assert list_statuses(report) == {"a_test.go::TestA": "passed", "a_test.go::TestB": "failed"}
    assert report.uncollected == {}


def test_before_go_1_20_a_printed_result_adds_no_test_and_makes_none_pass(tmp_path: Path) -> None:
    """Its `go test -json` makes events of printed lines; there is no event `start`."""
    tree = {"go.mod": "module m\n", "a_test.go": "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\n"}
    rows = [("run", "TestNested"), ("pass", "TestNested"), ("pass", "TestB")]
    ends = [("run", "TestA"), *rows, ("pass", "TestA"), ("run", "TestB"), ("skip", "TestB"), ("pass", "TestB")]
    text = "".join(json.dumps({"Action": action, "Package": "m", "Test": test}) + "\n" for action, test in ends)
    assert read("gojson", tmp_path, {"go.json": text}, tree) == {
        "a_test.go::TestA": "passed",
        "a_test.go::TestB": "skipped",
    }


def make_events(package: str, *rows: str | tuple[str, str]) -> str:
    """Return events of `go test -json`: (test, output), or `ACTION TEST`, whose test may be empty."""
    events: list[dict[str, str]] = []
    for row in rows:
        if isinstance(row, str):
            action, _, test = row.partition(" ")
            event = {"Action": action, "Test": test}
        else:
            event = {"Action": "output", "Test": row[0], "Output": row[1]}
        events.append({"Package": package} | {key: value for key, value in event.items() if value})
    return "".join(json.dumps(event) + "\n" for event in events)


END = ("", "PASS\n")
HIDDEN_ENDS: dict[str, tuple[Sequence[str | tuple[str, str]], dict[str, str]]] = {
    "of a passed package": (
        ["run TestA", ("TestA", "mean 2--- PASS: TestA (0.00s)\n"), END, "pass"],
        {"TestA": "passed"},
    ),
    "in two outputs": (
        ["run TestA", ("TestA", "mean "), ("TestA", "2--- PASS: TestA (0.00s)\n"), END, "pass"],
        {"TestA": "passed"},
    ),
    "of a skipped test": (
        ["run TestA", ("TestA", "x--- SKIP: TestA (0.00s)\n"), ("TestA", "    a_test.go:3: no\n"), END, "pass"],
        {"TestA": "skipped"},
    ),
    "not to be seen, in a passed package": (
        ["run TestA", ("TestA", "--- PASS: Tx"), ("TestA", "estA (0.00s)\n"), END, "pass"],
        {"TestA": "passed"},
    ),
    "of a failed package": (
        ["run TestA", ("TestA", "2--- PASS: TestA (0.00s)\n"), "run TestB", "fail TestB", ("", "FAIL\n"), "fail"],
        {"TestA": "passed", "TestB": "failed"},
    ),
    "of a failed test": (
        [
            "run TestA",
            ("TestA", " 2--- FAIL: TestA (0.00s)\n"),
            ("TestA", "    a_test.go:3: no\n"),
            ("", "FAIL\n"),
            "fail",
        ],
        {"TestA": "failed"},
    ),
    "of a subtest": (
        [
            "run TestA",
            "run TestA/s",
            ("TestA/s", "x    --- FAIL: TestA/s (0.00s)\n"),
            "fail TestA",
            ("", "FAIL\n"),
            "fail",
        ],
        {"TestA": "failed", "TestA/s": "failed"},
    ),
    "of a test whose begin is hidden, too": (
        [
            "run TestA",
            "pass TestA",
            ("TestA", "x=== RUN   TestB\n"),
            ("TestA", "y--- PASS: TestB (0.00s)\n"),
            END,
            "pass",
        ],
        {"TestA": "passed", "TestB": "passed"},
    ),
    "printed before a panic": (
        ["run TestA", ("TestA", "x--- PASS: TestA (0.00s)\n"), ("TestA", "panic: no\n"), ("", "FAIL\n"), "fail"],
        {"TestA": "error"},
    ),
    "printed before an exit": (
        ["run TestA", ("TestA", "x--- PASS: TestA (0.00s)\n"), ("", "FAIL\tm\t0.01s\n"), "fail"],
        {"TestA": "error"},
    ),
    "of a test that exits with 0": (
        ["run TestA", ("TestA", "x"), ("", "ok  \tm\t0.01s\n"), "pass"],
        {"TestA": "error"},
    ),
    "printed by a newer binary": (
        ["start", "run TestA", ("TestA", "x--- PASS: TestA (0.00s)\n"), END, "pass"],
        {"TestA": "error"},
    ),
    "of a begun subtest": (
        ["run TestA", "run TestA/s", "pass TestA", END, "pass"],
        {"TestA": "passed", "TestA/s": "error"},
    ),
}


@pytest.mark.parametrize("kind", HIDDEN_ENDS)
def test_before_go_1_20_the_end_of_a_test_stands_behind_what_it_printed(kind: str, tmp_path: Path) -> None:
    rows, expected = HIDDEN_ENDS[kind]
    tree = {"go.mod": "module m\n", "a_test.go": "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}\n"}
    outcomes = read("gojson", tmp_path, {"go.json": make_events("m", *rows)}, tree)
    assert outcomes == {f"a_test.go::{test}": status for test, status in expected.items()}


def test_modules_of_one_path_have_tests_of_their_own(tmp_path: Path) -> None:
    files = {"go.mod": "module main\n", "a_test.go": "func TestA(t *testing.T) {}\n"}
    tree = {f"{folder}/{name}": text for folder in ("one", "two") for name, text in files.items()}
    event = '{{"Action":"{}","Package":"main","Test":"TestA"}}\n'
    out = {"one/go.json": event.format("pass"), "two/go.json": event.format("fail")}
    assert read("gojson", tmp_path, out, tree) == {"one/a_test.go::TestA": "passed", "two/a_test.go::TestA": "failed"}


POINTS = {
    "out of sequence": ("ok 1 - a\nok 7 - printed\nok 2 - b\nnot ok 3 - c\n1..3\n", {}),
    "without a number": ("ok 1 - a\nok, this works\nnot ok\nok 2 - b\nnot ok 3 - c\n1..3\n", {}),
    "in a diagnostic": (
        "not ok 1 - c\n  ---\n  got: |-\n    ok 1 - printed\n    1..1\n  ...\nok 2 - b\nok 3 - a\n1..3\n",
        {},
    ),
    "in a subtest": (
        "    ok 1 - x\n    ok 9 - printed\n    1..1\nok 1 - a\nok 2 - b\nnot ok 3 - c\n1..3\n",
        {"a > x": "passed"},
    ),
    "with a number": ("ok a\nok 7 - printed\nok b\nnot ok c\n1..3\n", {}),
    "indented": ("ok 1 - a\n    ok 1 - printed\nok 2 - b\nnot ok 3 - c\n1..3\n    ok 4 - printed\n", {}),
    "of a test": (
        "ok 1 - a\nok 3 - printed\nok 2 - b\nnot ok 3 - c\n1..3\n",
        {"printed": "error", "c": "error", "(plan)": "error"},
    ),
    "before a point without a title": ("ok 7 - printed\nok 1 - a\nok 2 - b\nnot ok 3\n1..3\n", {"(test 3)": "failed"}),
    "of prove": ("ok 1 - a\nResult: PASS\nok 2 - b\nnot ok 3 - c\n1..3\n", {}),
    "indented bail out": ("ok 1 - a\n  Bail out! not really\nok 2 - b\nnot ok 3 - c\n1..3\n", {}),
}


@pytest.mark.parametrize("kind", POINTS)
def test_a_printed_line_of_tap_is_no_test_and_makes_none_pass(kind: str, tmp_path: Path) -> None:
    text, changed = POINTS[kind]
    outcomes = read("tap", tmp_path, {"t/a.t": text}, {"t/a.t": ""})
    expected = {"a": "passed", "b": "passed"} | ({"c": "failed"} if " c\n" in text else {}) | changed
    assert {test.partition("::")[2]: status for test, status in outcomes.items()} == expected


def test_subtests_in_braces_are_of_the_point_before_them(tmp_path: Path) -> None:
    inner = (
        "ok 1 - p1 # time=3ms {\n    ok 1 - x\n    not ok 2 - y {\n        ok 1 - z\n        1..1\n    }\n    1..2\n}\n"
    )
    outcomes = read("tap", tmp_path, {"t/a.js.tap": inner + "ok 2 - adds {\nok 3 - c\n1..3\n"}, {"t/a.js": ""})
    assert {test.partition("::")[2]: status for test, status in outcomes.items()} == {
        "p1 > x": "passed",
        "p1 > y > z": "passed",
        "p1 > y": "failed",
        "p1": "passed",
        "adds": "passed",
        "c": "passed",
    }


def test_several_streams_of_tap_in_one_file_are_all_read(tmp_path: Path) -> None:
    stream = "TAP version 13\nok 1 - {0} a\nnot ok 2 - {0} b\n1..2\n"
    outcomes = read("tap", tmp_path, {"out.tap": stream.format("one") + stream.format("two")}, {})
    assert list(outcomes.values()) == ["passed", "failed", "passed", "failed"]


@pytest.mark.parametrize("report_format", ["exunit", "minitest", "lines", "nodetest"])
def test_printed_rows_of_our_reporters_and_printed_texts_are_output(report_format: str, tmp_path: Path) -> None:
    row = {"file": "test/a_test.rb", "name": "A#test_a", "status": "failed", "message": "", "seconds": 0}
    printed = json.dumps(row | {"status": "passed"}) + "\n" + json.dumps(row | {"name": "A#test_b"}) + "\n"
    texts = (
        "A#test_c = 0.01 s = .\n\nA [test/a_test.rb]\n  * test d (0.1ms) [L#3]\n\n1 test, 0 failures\n"
        "test/a_test.rb:3:in `x': no (NameError)\n** (CompileError) test/a_test.rb:3: no\n"
    )
    out = {"out.txt": printed + texts, "tests.jsonl": json.dumps(row) + "\n"}
    content = read_results(report_format, *write_files(tmp_path, out, {"test/a_test.rb": "class A\nend\n"})).to_xml()
    report = junit.parse_junit(content, [])
    assert (list_statuses(report), report.uncollected) == ({"test/a_test.rb::A#test_a": "failed"}, {})


@pytest.mark.parametrize("report_format", ["exunit", "minitest"])
def test_nothing_is_read_from_text_where_our_reporter_ran_and_wrote_nothing(report_format: str, tmp_path: Path) -> None:
    texts = "A#test_c = 0.01 s = .\n\nA [test/a_test.rb]\n  * test d (0.1ms) [L#3]\n\n1 test, 0 failures\n"
    out = {"out.txt": texts, "formatter.exs": "", "ruby_reporter.rb": ""}
    assert read(report_format, tmp_path, out, {"test/a_test.rb": "class A\nend\n"}) == {}


def test_a_printed_compiler_error_does_not_make_a_file_with_tests_uncollected(tmp_path: Path) -> None:
    out, tree = write_files(
        tmp_path,
        {"TEST-a.BTest.xml": '<testsuite name="a.BTest"><testcase classname="a.BTest" name="one"/></testsuite>'},
        {"src/test/java/a/BTest.java": "package a;"},
    )
    Path(out, "build.txt").write_text(f"[ERROR] {tree}/src/test/java/a/BTest.java:[6,24] cannot find symbol\n")
    report = junit.parse_junit(read_results("jvm", out, tree).to_xml(), [])
    assert (list(report.outcomes), report.uncollected) == (["src/test/java/a/BTest.java::one"], {})


# ----------------------------------------------------------------------------------------------- ids of single forms


def test_tests_of_ctest_with_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    listed = [{"name": "unit", "command": [f"/opt/build/{name}"]} for name in ("one_test", "two_test")]
    rows = '<testcase name="unit" status="run"/><testcase name="unit" status="fail"><failure message=""/></testcase>'
    out = {"ctest.xml": f"<testsuite>{rows}</testsuite>", "tests.json": json.dumps({"tests": listed})}
    assert read("ctest", tmp_path, out, {"a/one_test.c": "", "b/two_test.c": ""}) == {
        "a/one_test.c::unit": "passed",
        "b/two_test.c::unit": "failed",
    }


def test_tests_of_meson_are_named_by_the_sources_of_their_programs(tmp_path: Path) -> None:
    def suite(name: str, *rows: tuple[str, str]) -> str:
        cases = "".join(f'<testcase classname="{owner}" name="{test}"/>' for owner, test in rows)
        return f'<testsuite name="{name}">{cases}</testsuite>'

    tests = [
        {"name": "unit", "suite": ["shop"], "cmd": ["/opt/build/tests/unit-test", "-q"]},
        {"name": "unit", "suite": ["lib:fast"], "cmd": ["/opt/build/subprojects/lib/unit"]},
        {"name": "points", "suite": ["shop"], "cmd": ["/usr/bin/python3", "/src/tests/points.py"]},
        {"name": "sums", "suite": ["shop"], "cmd": ["/opt/build/sums"]},
        {"name": "lost", "suite": ["shop"], "cmd": ["/usr/bin/true"]},
    ]
    sources = {
        "/opt/build/tests/unit-test": ["/src/cart.c", "/src/tests/unittest.c"],
        "/opt/build/subprojects/lib/unit": ["/src/subprojects/lib/unit.c"],
        "/opt/build/sums": ["/src/tests/sums.cc"],
    }
    targets = [{"filename": [program], "target_sources": [{"sources": of}, {}]} for program, of in sources.items()]
    rows = (
        suite("shop", ("shop", "unit"), ("shop", "lost")),
        suite("lib", ("lib", "unit")),
        suite("shop.points", ("shop.points", "3 - of one"), ("shop.points", "4")),
        suite("shop.sums.Sums", ("Sums", "adds")),
    )
    out = {
        "testlog.junit.xml": f"<testsuites>{''.join(rows)}</testsuites>",
        "intro-tests.json": json.dumps(tests),
        "intro-targets.json": json.dumps(targets),
    }
    tree = dict.fromkeys(["cart.c", "tests/unittest.c", "subprojects/lib/unit.c", "tests/points.py"], "")
    assert list(read("meson", tmp_path / "a", out, tree | {"tests/sums.cc": "TEST(Sums, adds) {}\n"})) == [
        "tests/unittest.c::unit",
        "shop::lost",
        "subprojects/lib/unit.c::unit",
        "tests/points.py::points > of one",
        "tests/points.py::points > 4",
        "tests/sums.cc::Sums.adds",
    ]
    of_before = {"testlog.junit.xml": out["testlog.junit.xml"]}
    assert list(read("meson", tmp_path / "b", of_before, {}))[:2] == ["shop::unit", "shop::lost"]


def test_text_of_ctest_is_not_read_where_it_should_have_written_a_report(tmp_path: Path) -> None:
    text = "1/1 Test  #1: unit ......   Passed    0.01 sec\n"
    tests = json.dumps({"tests": [{"name": "unit", "command": ["unit"]}]})
    assert read("ctest", tmp_path / "a", {"configure.log": text, "tests.json": tests}, {}) == {}
    assert read("ctest", tmp_path / "b", {"ctest.txt": text}, {}) == {"CMakeLists.txt::unit": "passed"}


def test_tests_of_catch2_whose_names_hold_slashes_are_not_their_sections(tmp_path: Path) -> None:
    rows = "".join(f'<testcase classname="all.global" name="{name}"/>' for name in ("a/b", "a/c/deep", "a/c/deeper"))
    tree = {"t.cpp": 'TEST_CASE("a/b") {}\nTEST_CASE("a/c") {}\n'}
    outcomes = read("catch2", tmp_path, {"c.xml": f"<testsuite>{rows}</testsuite>"}, tree)
    assert list(outcomes) == ["t.cpp::a/b", "t.cpp::a/c"]


def test_ids_do_not_fall_together_where_a_substitute_for_the_file_has_colons(tmp_path: Path) -> None:
    rows = '<testcase classname="A" name="B::c"/><testcase classname="A::B" name="c"><failure/></testcase>'
    outcomes = read("junit", tmp_path, {"x.xml": f"<testsuite>{rows}</testsuite>"}, {})
    assert outcomes == {"A::B::c": "passed", "A::B::c #2": "failed"}


def test_a_file_of_the_tree_keeps_its_name(tmp_path: Path) -> None:
    files = ["tests/0xdeadbeef.js", "tests/two  spaces.js"]
    rows = "".join(json.dumps({"file": file, "name": "adds", "status": "passed"}) + "\n" for file in files)
    assert list(read("lines", tmp_path, {"t.jsonl": rows}, dict.fromkeys(files, ""))) == [f"{f}::adds" for f in files]


def test_reports_of_projects_that_tests_build_are_not_read(tmp_path: Path) -> None:
    row = '<testsuite name="{0}"><testcase classname="{0}" name="one"/></testsuite>'
    folders = ["target/surefire-reports", "core/target/surefire-reports", "core/build/test-results/test"]
    nested = ["target/it/shop/target/surefire-reports", "core/build/tmp/kit/build/test-results/test"]
    tree = {f"{folder}/TEST-{n}.xml": row.format(f"C{n}") for n, folder in enumerate(folders + nested)}
    assert set(read("jvm", tmp_path, {}, tree)) == {"C0::one", "C1::one", "C2::one"}


def test_files_that_testng_writes_next_to_the_reports_are_not_read(tmp_path: Path) -> None:
    suite = '<!DOCTYPE suite SYSTEM "https://testng.org/testng-1.0.dtd"><suite name="Failed suite"/>'
    report = '<testsuite name="A"><testcase classname="A" name="one"><failure/></testcase></testsuite>'
    tree = {"TEST-TestSuite.xml": report, "testng-failed.xml": suite, "Surefire suite/testng-failed.xml": suite}
    placed = {f"target/surefire-reports/{name}": content for name, content in tree.items()}
    assert read("jvm", tmp_path, {}, placed) == {"A::one": "failed"}


def test_early_releases_of_vitest_list_tests_in_place_of_files(tmp_path: Path) -> None:
    def make(name: str, status: str | None, message: str | None = None) -> dict[str, object]:
        entry = {"displayName": name, "status": status, "skipped": status is None, "perfStats": {"runtime": 12.5}}
        return {**entry, "testFilePath": f"{tmp_path}/tree/test/a.test.ts", "failureMessage": message}

    entries = [make("adds", "pass"), make("fails", "fail", "expected 1 to be 2"), make("waits", None)]
    report = json.dumps({"numTotalTests": 3, "success": False, "testResults": entries})
    outcomes = read("jest", tmp_path, {"vitest.json": report}, {"test/a.test.ts": ""})
    statuses = {"adds": "passed", "fails": "failed", "waits": "skipped"}
    assert outcomes == {f"test/a.test.ts::{name}": status for name, status in statuses.items()}


CARGO_TREE = {"Cargo.toml": '[package]\nname = "a"\n', "tests/it.rs": ""}
HEADING = "     Running tests/it.rs (target/debug/deps/it-0123456789abcdef)\n\nrunning 2 tests\n"


@pytest.mark.parametrize(
    ("text", "log", "expected"),
    [
        pytest.param("no line end" + HEADING, "ok b\nfailed c\n", {"b": "passed", "c": "failed"}, id="heading-hidden"),
        pytest.param(
            HEADING + "test b ... ok\ntest c ... ", "ok b\n", {"b": "passed", "c": "error"}, id="a-test-ends-the-binary"
        ),
        pytest.param(
            HEADING + "test b ... ok\ntest printed ... \n", "ok b\nok c\n", {"b": "passed", "c": "passed"}, id="printed"
        ),
        pytest.param(
            HEADING, "running 2 tests\ntest b ... ok\ntest c d ... FAILED\n\nfailures:\n\ntest e ... ok\n",
            {"b": "passed", "c d": "failed"}, id="log-of-libtest-mimic"
        ),
    ],
)  # fmt: skip
def test_results_of_rust_are_those_in_the_logs(text: str, log: str, expected: dict[str, str], tmp_path: Path) -> None:
    outcomes = read("cargo", tmp_path, {"cargo.txt": text, "it-0123456789abcdef.log": log}, CARGO_TREE)
    assert outcomes == {f"tests/it.rs::{test}": status for test, status in expected.items()}
