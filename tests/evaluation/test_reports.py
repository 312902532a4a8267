"""Reports of every framework are converted to one form, with ids that are the same in every run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evaluation.reports import converter, junit
from guest.harness import HARNESS_FOLDER
from guest.harness.reports.core import ConversionError, ConvertedResults, ReportTree, stabilize_name
from guest.harness.reports.main import convert_report
from tests.bundle_reports import read_in_bundle

HERE = Path(__file__).parent

# recording: (format, project in `trees`)
RECORDINGS = {
    "go": ("gojson", "go"),
    "go-text-builds": ("gojson", "go"),
    "cargo": ("cargo", "cargo"),
    "cargo-broken": ("cargo", "cargo"),
    "cargo-noisy": ("cargo", "cargo-noisy"),
    "jest": ("jest", "jest"),
    "vitest": ("jest", "vitest"),
    "jest-junit": ("junit", "jest"),
    "vitest-junit": ("junit", "vitest"),
    "mocha": ("mocha", "mocha"),
    "mocha-stdout": ("mocha", "mocha"),
    "mocha-xunit": ("junit", "mocha"),
    "nodetest": ("nodetest", "nodetest"),
    "nodetest-18": ("nodetest", "nodetest"),
    "nodetest-22": ("nodetest", "nodetest"),
    "nodetest-tap": ("tap", "nodetest"),
    "nodetest-junit": ("junit", "nodetest"),
    "tape": ("tap", "tape"),
    "ava": ("ava", "ava"),
    "bun": ("bun", "bun"),
    "prove": ("tap", "prove"),
    "prove-v": ("tap", "prove"),
    "bats": ("junit", "bats"),
    "bats-tap": ("tap", "bats"),
    "rspec": ("rspec", "rspec"),
    "rspec-broken": ("rspec", "rspec"),
    "minitest": ("minitest", "minitest"),
    "minitest-text": ("minitest", "minitest"),
    "test-unit": ("minitest", "test-unit"),
    "phpunit": ("junit", "phpunit"),
    "busted": ("lines", "busted"),
    "luaunit": ("luaunit", "luaunit"),
    "testthat": ("lines", "testthat"),
    "julia": ("lines", "julia"),
    "dart": ("dart", "dart"),
    "exunit": ("exunit", "exunit"),
    "exunit-text": ("exunit", "exunit"),
    "minitest-broken": ("minitest", "minitest"),
    "exunit-broken": ("exunit", "exunit"),
    "ctest-and-googletest": ("ctest", "cxx"),
    "ctest": ("ctest", "cxx"),
    "ctest-dashboard": ("ctest", "cxx"),
    "ctest-text": ("ctest", "cxx"),
    "googletest": ("googletest", "cxx"),
    "googletest-by-ctest": ("googletest", "cxx"),
    "catch2": ("catch2", "cxx"),
    "catch2-junit": ("catch2", "cxx"),
    "cases": ("cases", "cases"),
    "maven": ("jvm", "maven"),
    "gradle": ("jvm", "gradle"),
    "sbt": ("jvm", "sbt"),
    "swift": ("swift", "swift"),
    "trx-xunit": ("trx", "dotnet"),
    "trx-nunit": ("trx", "dotnet"),
    "trx-mstest": ("trx", "dotnet"),
}


def copy_recording(recording: str, folder: Path) -> tuple[str, Path, Path]:
    """Copy a recording to `folder`, with its paths, and return (format, OUT_DIR, WORKDIR)."""
    name, project = RECORDINGS[recording]
    out, tree = folder / "out", folder / "tree"
    shutil.copytree(HERE / "trees" / project, tree)
    shutil.copytree(HERE / "recordings" / recording, out)
    for path in out.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace("@TREE@", str(tree)).replace("@BUILD@", f"{folder}/build")
            path.write_text(text, encoding="utf-8")
    return name, out, tree


def format_report(content: bytes, tree: Path) -> Iterator[str]:
    """Yield a line for each test and for each uncollected file."""
    report = junit.parse_junit(content, [])
    for test, outcome in report.outcomes.items():
        yield f"{outcome.status.value:8} {test}" + (f"  | {outcome.message}" if outcome.message else "")
    for file, reason in report.uncollected.items():
        yield f"{'--':8} {file}  | {reason}"


def format_lines(content: bytes, tree: Path) -> list[str]:
    return [line.replace(str(tree), "@TREE@") for line in format_report(content, tree)]


@pytest.mark.parametrize("recording", RECORDINGS)
def test_a_report_of_a_framework_is_converted(recording: str, tmp_path: Path) -> None:
    name, out, tree = copy_recording(recording, tmp_path)
    expected = (HERE / "expected" / f"{recording}.txt").read_text(encoding="utf-8").splitlines()
    content = convert_report(name, str(out), str(tree))
    assert format_lines(content, tree) == expected
    statuses = {test: outcome.status.value for test, outcome in junit.parse_junit(content, []).outcomes.items()}
    assert read_in_bundle(content) == statuses  # the bundles' grader must agree


def test_the_packed_converter_runs_on_its_own(tmp_path: Path) -> None:
    name, out, tree = copy_recording("go", tmp_path)
    (tmp_path / "reports.pyz").write_bytes(converter.pack_converter())
    command = [sys.executable, "-I", "-S", "reports.pyz"]
    run = subprocess.run([*command, name, out, tree], cwd=tmp_path, capture_output=True, check=True)
    assert run.stdout == convert_report(name, str(out), str(tree))
    asset = subprocess.run([*command, "asset", "node_reporter.mjs"], cwd=tmp_path, capture_output=True, check=True)
    assert asset.stdout.decode() == converter.read_asset("node_reporter.mjs")
    (tmp_path / "empty").mkdir()
    for words in (["jest", out, tree], ["junit", tmp_path / "empty", tree], ["gojson", tmp_path / "gone", tree]):
        nothing = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, check=False)
        assert (nothing.returncode, nothing.stdout) == (3, b"")


def test_the_converter_packs_to_the_same_bytes_and_names_every_format_in_its_table() -> None:
    before = converter.pack_converter()
    converter.pack_converter.cache_clear()
    assert converter.pack_converter() == before
    table = (HARNESS_FOLDER / "reports/__init__.py").read_text()
    assert [name for name in converter.FORMATS if f"\n{name} " not in table] == []


# -------------------------------------------------------------------------------------------------- handmade reports


def write_files(folder: Path, out: dict[str, str], tree: dict[str, str] | None = None) -> tuple[str, str]:
    """Write the files and return (OUT_DIR, WORKDIR)."""
    for name, files in (("out", out), ("tree", tree or {})):
        (folder / name).mkdir(parents=True)
        for path, text in files.items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_text(text, encoding="utf-8")
    return str(folder / "out"), str(folder / "tree")


def read(name: str, folder: Path, out: dict[str, str], tree: dict[str, str] | None = None) -> dict[str, str]:
    """Convert a report and return test id -> status."""
    content = convert_report(name, *write_files(folder, out, tree))
    return {test: outcome.status.value for test, outcome in junit.parse_junit(content, []).outcomes.items()}


def test_a_truncated_file_still_reports_the_tests_that_ended(tmp_path: Path) -> None:
    torn = (
        '<testsuites><testsuite name="s"><testcase classname="a" name="one"/><testcase classname="a" name="two"><fail'
    )
    assert read("junit", tmp_path, {"x.xml": torn}) == {"a::one": "passed"}


def test_characters_that_xml_cannot_hold_are_replaced(tmp_path: Path) -> None:
    failure = '<failure message="\x1b[31mno &#27;[0m \x00"/>'
    text = f'<testsuite><testcase classname="a" name="one">{failure}</testcase></testsuite>'
    assert read("junit", tmp_path, {"x.xml": text}) == {"a::one": "failed"}


def test_junit_of_node_is_mapped_by_its_file_attributes(tmp_path: Path) -> None:
    case = f'<testcase name="sums" classname="test" file="{tmp_path}/tree/t/a.mjs"/>'
    out = {"x.xml": f'<testsuites><testsuite name="add">{case}</testsuite></testsuites>'}
    assert read("junit", tmp_path, out, {"t/a.mjs": ""}) == {"t/a.mjs::add > sums": "passed"}


def test_output_of_old_cargo_is_mapped_by_binaries(tmp_path: Path) -> None:
    text = """
     Running target/debug/deps/greet_it-0123456789abcdef

running 1 test
test words::short ... ok

     Running target/debug/deps/it-0123456789abcdef

running 2 tests
test whole ... ok
test half ... noise
more noise
FAILED
"""
    tree = {"Cargo.toml": '[package]\nname = "greet-it"\n', "src/lib.rs": "", "src/words.rs": "", "tests/it.rs": ""}
    assert read("cargo", tmp_path, {"c.txt": text}, tree) == {
        "src/words.rs::words::short": "passed",
        "tests/it.rs::whole": "passed",
        "tests/it.rs::half": "failed",
    }


def test_output_of_a_test_before_its_result_does_not_hide_it(tmp_path: Path) -> None:
    text = """
     Running tests/it.rs (target/debug/deps/it-0123456789abcdef)

running 2 tests
a word without a new linetest whole ... ok
test half ... ok
"""
    assert read("cargo", tmp_path, {"c.txt": text}, {"tests/it.rs": ""}) == {
        "tests/it.rs::whole": "passed",
        "tests/it.rs::half": "passed",
    }


def test_reports_of_several_packages_in_one_output_are_all_read(tmp_path: Path) -> None:
    row = '{{\n  "stats": {{"tests": 1}},\n  "tests": [{{"fullTitle": "{0}", "file": "{0}/a.js", "err": {{}}}}]\n}}'
    text = "> first\n" + row.format("one") + "\n> second\n{not json\n" + row.format("two") + "\ndone\n"
    tree = {"one/a.js": "", "two/a.js": ""}
    assert read("mocha", tmp_path, {"out.txt": text}, tree) == {"one/a.js::one": "passed", "two/a.js::two": "passed"}


def test_output_of_nextest_is_mapped_by_binaries(tmp_path: Path) -> None:
    case = '<testcase name="{}" classname="{}" time="0.1">{}</testcase>'
    rows = [
        case.format("words::short", "greet", ""),
        case.format("whole", "greet::it", '<failure type="test failure" message="panicked"/>'),
        case.format("main", "greet::bin/greet", ""),
    ]
    text = f'<testsuites name="nextest-run"><testsuite name="greet">{"".join(rows)}</testsuite></testsuites>'
    tree = {
        "a/Cargo.toml": '[package]\nname = "greet"\n',
        "a/src/lib.rs": "",
        "a/src/main.rs": "",
        "a/src/words.rs": "",
        "a/tests/it.rs": "",
    }
    assert read("nextest", tmp_path, {"junit.xml": text}, tree) == {
        "a/src/words.rs::words::short": "passed",
        "a/tests/it.rs::whole": "failed",
        "a/src/main.rs::main": "passed",
    }


def test_reports_of_the_jvm_are_found_in_the_tree_and_older_ones_are_skipped(tmp_path: Path) -> None:
    case = '<testsuite name="a.BTest"><testcase classname="a.BTest" name="{}"/></testsuite>'
    tree = {"src/test/java/a/BTest.java": "package a;", "target/surefire-reports/TEST-a.BTest.xml": case.format("new")}
    out, root = write_files(tmp_path, {"build.txt": "[INFO] nothing"}, tree)
    assert b'file="src/test/java/a/BTest.java" name="new"' in convert_report("jvm", out, root)
    with pytest.raises(ConversionError):
        convert_report("jvm", out, root, since=4e9)


def test_classes_of_kotlin_and_scala_are_found_in_files_of_other_names(tmp_path: Path) -> None:
    case = '<testcase classname="{}" name="{}"/>'
    rows = case.format("org.a.SumTest", "sums()") + case.format("org.b.SumSpec", "A sum should be right")
    tree = {
        "app/src/test/kotlin/SumTests.kt": "package org.a\n\ninternal class SumTest {\n}\n",
        "core/src/test/scala/org/b/AllSpecs.scala": "package org.b\n\nclass SumSpec extends AnyFlatSpec {}\n",
        "app/src/main/kotlin/SumTest.kt": "package org.other\n\nclass SumTest\n",
    }
    assert read("jvm", tmp_path, {"TEST-a.xml": f"<testsuite>{rows}</testsuite>"}, tree) == {
        "app/src/test/kotlin/SumTests.kt::SumTest::sums": "passed",
        "core/src/test/scala/org/b/AllSpecs.scala::SumSpec::A sum should be right": "passed",
    }


def test_a_file_that_defines_no_test_is_skipped_unless_the_report_has_a_test_of_it(tmp_path: Path) -> None:
    rows = [
        {"file": "a.rb", "uncollected": "it defines no test", "skipped": True},
        {"file": "b.rb", "uncollected": "it defines no test", "skipped": True},
        {"file": "c.rb", "uncollected": "LoadError"},
        {"file": "b.rb", "name": "works", "status": "passed"},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    content = convert_report(
        "minitest", *write_files(tmp_path, {"tests.jsonl": lines}, dict.fromkeys(("a.rb", "b.rb"), ""))
    )
    assert junit.parse_junit(content, []).uncollected == {
        "a.rb": "collection skipped: it defines no test",
        "c.rb": "collection failure: LoadError",
    }


def test_compiler_errors_of_the_jvm_give_uncollected_files(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    text = f"""
[ERROR] {root}/src/test/java/a/ATest.java:[6,24] cannot find symbol
{root}/src/test/java/a/BTest.java:7: error: ';' expected
e: file://{root}/src/test/kotlin/CTest.kt:3:8 Unresolved reference: gone
e: {root}/src/test/kotlin/DTest.kt: (3, 8): Unresolved reference: gone
[error] {root}/src/test/scala/ESpec.scala:3:8: not found: value gone
[WARNING] {root}/src/test/java/a/FTest.java:[6,24] deprecated
[ERROR] {root}/src/main/java/a/Main.java:[6,24] cannot find symbol
"""
    content = convert_report("jvm", *write_files(tmp_path, {"build.txt": text}))
    assert {Path(file).stem: reason for file, reason in junit.parse_junit(content, []).uncollected.items()} == {
        "ATest": "collection failure: cannot find symbol",
        "BTest": "collection failure: ';' expected",
        "CTest": "collection failure: Unresolved reference: gone",
        "ESpec": "collection failure: not found: value gone",
        "DTest": "collection failure: Unresolved reference: gone",
    }


def test_repeated_names_are_numbered_or_merged_to_the_worst_status() -> None:
    results = ConvertedResults(ReportTree("/nowhere"))
    for status in ("passed", "failed", "passed"):
        results.add("a.js", "sums", status)
    for status in ("passed", "error", "skipped"):
        results.add("a.go", "TestSums", status, identity="TestSums")
    results.add("a.js", "sums #2", "skipped")
    report = junit.parse_junit(results.to_xml(), [])
    assert {test: outcome.status.value for test, outcome in report.outcomes.items()} == {
        "a.js::sums": "passed",
        "a.js::sums #2": "failed",
        "a.js::sums #3": "passed",
        "a.go::TestSums": "error",
        "a.js::sums #2 #2": "skipped",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adds (12 ms)", "adds"),
        ("adds  (1m 2.5s)", "adds"),
        ("waits 100 ms", "waits 100 ms"),
        ("\x1b[32madds\x1b[0m", "adds"),
        ("of Thing@1b2c3d4e", "of Thing@…"),
        ("mails a@deadbeef.org", "mails a@deadbeef.org"),
        ("at 0x7f12ab34cd56", "at 0x…"),
        ("mask 0xff", "mask 0xff"),
        ("writes /tmp/tmp.Xy12/a.txt", "writes /tmp/…"),
        ("asks http://127.0.0.1:40321/x", "asks http://127.0.0.1:…/x"),
        ("adds [worker 3]", "adds"),
        ("two\n  lines", "two lines"),
        ("bell \x07", "bell ?"),
    ],
)
def test_names_lose_the_parts_that_differ_from_run_to_run(name: str, expected: str) -> None:
    assert stabilize_name(name) == expected


def test_of_two_go_files_with_one_function_the_compiled_one_is_used(tmp_path: Path) -> None:
    test = "package a\n\nfunc TestIt(t *testing.T) {}\n"
    tree = {
        "go.mod": "module example.org/a\n",
        "a_old_test.go": f"//go:build !go1.19\n\n{test}",
        "a_1_test.go": f"//go:build go1.19 && (linux || darwin)\n\n{test}",
        "a_0_windows_test.go": test,
    }
    event = '{"Action":"pass","Package":"example.org/a","Test":"TestIt","Elapsed":0}\n'
    assert read("gojson", tmp_path, {"go.json": event}, tree) == {"a_1_test.go::TestIt": "passed"}


def test_what_a_go_package_prints_before_its_first_test_is_no_result(tmp_path: Path) -> None:
    rows = [
        {"Action": "start"},
        {"Action": "output", "Test": "TestIt", "Output": "--- FAIL: TestIt (0.00s)\n"},
        {"Action": "fail", "Test": "TestIt"},
        {"Action": "fail", "Test": "TestNothing"},
        {"Action": "run", "Test": "TestIt"},
        {"Action": "pass", "Test": "TestIt"},
    ]
    events = "".join(json.dumps({"Package": "example.org/a", **row}) + "\n" for row in rows)
    tree = {"go.mod": "module example.org/a\n", "a_test.go": "package a\n\nfunc TestIt(t *testing.T) {}\n"}
    assert read("gojson", tmp_path, {"go.json": events}, tree) == {"a_test.go::TestIt": "passed"}


def test_a_rust_module_with_a_path_attribute_is_found(tmp_path: Path) -> None:
    text = (
        "     Running tests/all.rs (target/debug/deps/all-0123456789abcdef)\n\nrunning 1 test\ntest cp::whole ... ok\n"
    )
    tree = {
        "Cargo.toml": '[package]\nname = "a"\n',
        "tests/by-util/test_cp.rs": "",
        "tests/all.rs": '#[cfg(unix)]\n#[path = "by-util/test_cp.rs"]\n#[rustfmt::skip]\nmod cp;\n',
    }
    assert read("cargo", tmp_path, {"c.txt": text}, tree) == {"tests/by-util/test_cp.rs::cp::whole": "passed"}


def test_log_lines_of_ava_are_not_names_and_a_single_file_is_named_by_its_report(
    tmp_path: Path,
) -> None:
    (tmp_path / "tree/test").mkdir(parents=True)
    (tmp_path / "tree/test/agent.js").touch()
    (tmp_path / "tree/test/abort.js").touch()
    (tmp_path / "out/test").mkdir(parents=True)
    logged = "# abort \u203a afterEach hook for stops"
    text = f"TAP version 13\nok 1 - abort \u203a stops\n{logged}\nok 2 - agent \u203a asks\n1..2\n"
    (tmp_path / "out/out.tap").write_text(text)
    several = list(format_report(convert_report("ava", tmp_path / "out", tmp_path / "tree"), tmp_path / "tree"))
    assert several == ["passed   test/abort.js::stops", "passed   test/agent.js::asks"]
    (tmp_path / "out/out.tap").unlink()
    (tmp_path / "out/test/agent.js.tap").write_text("TAP version 13\n# afterEach hook for asks\nok 1 - asks\n1..1\n")
    alone = list(format_report(convert_report("ava", tmp_path / "out", tmp_path / "tree"), tmp_path / "tree"))
    assert alone == ["passed   test/agent.js::asks"]


def test_a_timestamp_of_the_run_is_removed_from_a_name_and_another_day_is_kept() -> None:
    now = datetime.now(UTC)
    ours = f"{now:%a} {now:%b} {now.day:02} {now:%Y %H:%M:%S} GMT+0000 (Coordinated Universal Time)"
    assert stabilize_name(f"casts {now:%Y-%m-%dT%H:%M:%S}.503Z to a number") == "casts … to a number"
    assert stabilize_name(f"casts {ours}") == "casts …"
    assert stabilize_name("casts 2019-02-30 10:00:00 +0200") == "casts 2019-02-30 10:00:00 +0200"


def test_a_timestamp_of_the_day_that_stands_in_the_source_is_kept(tmp_path: Path) -> None:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
    names = [{"file": file, "name": f"casts {now}", "status": "passed"} for file in ("a_test.js", "b_test.js")]
    out = {"t.jsonl": "".join(json.dumps(row) + "\n" for row in names)}
    statuses = read("lines", tmp_path, out, {"a_test.js": f"casts('{now}')", "b_test.js": "casts(new Date())"})
    assert list(statuses) == [f"a_test.js::casts {now}", "b_test.js::casts …"]


def test_a_program_of_googletest_has_a_ctest_row_only_if_it_fails_although_its_tests_pass(
    tmp_path: Path,
) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    for program in ("good", "bad", "leaky"):
        (tree / "test").mkdir(parents=True, exist_ok=True)
        (tree / f"test/{program}-test.cc").write_text(f"TEST({program}, One) {{}}\n")
    out.mkdir()
    tests = [{"name": f"{p}-test", "command": [f"/opt/build/bin/{p}-test"]} for p in ("good", "bad", "leaky", "torn")]
    (out / "tests.json").write_text(json.dumps({"kind": "ctestInfo", "tests": tests}))
    rows = '<testcase name="good-test" status="run"/>' + "".join(
        f'<testcase name="{p}-test" status="fail"><failure message=""/></testcase>' for p in ("bad", "leaky", "torn")
    )
    (out / "ctest.xml").write_text(f'<testsuite name="Linux">{rows}</testsuite>')
    for program, failure in (("good", ""), ("bad", '<failure message="1 is not 2"/>'), ("leaky", "")):
        case = f'<testcase name="One" status="run" classname="{program}">{failure}</testcase>'
        (out / f"{program}-test.xml").write_text(
            f'<testsuites name="AllTests"><testsuite name="{program}">{case}</testsuite></testsuites>'
        )
    assert [line.split("  | ")[0] for line in format_report(convert_report("ctest", out, tree), tree)] == [
        "failed   test/leaky-test.cc::leaky-test",
        "failed   CMakeLists.txt::torn-test",
        "failed   test/bad-test.cc::bad.One",
        "passed   test/good-test.cc::good.One",
        "passed   test/leaky-test.cc::leaky.One",
    ]
