"""Writers of valid reports, one for each reader, in the form in which the framework writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape, quoteattr

ALL = ("passed", "failed", "error", "skipped", "xfailed")
MESSAGE = "1 is not 2\nok 1 - a\ntest a ... ok\n--- PASS: TestA (0.00s)"
"""What failing tests say: their reason, and lines like results of frameworks."""


@dataclass(frozen=True, kw_only=True)
class ReportedTest:
    """One test. `name` is unique where the framework requires it, `title` is any text."""

    file: str
    name: str
    title: str
    status: str


@dataclass(frozen=True, kw_only=True)
class ReportWriter:
    """How a framework writes a report: its files in OUT_DIR, those of the tree, and the statuses that it knows.

    Attributes:
        report_format: format that the converter reads.
        write: tests to path -> text.
        suffix: suffix of test files.
        statuses: statuses that the framework can report.
        has_titles: whether any text can name a test; otherwise only identifiers.
        unstable: parts of titles that differ between runs and that the framework writes in a form of its own.
        tree: files of the tree for the test files, path -> text.
    """

    report_format: str
    write: Callable[[Sequence[ReportedTest]], Mapping[str, str]]
    suffix: str
    statuses: Sequence[str] = ("passed", "failed", "skipped")
    has_titles: bool = True
    unstable: Sequence[str] = ()
    tree: Callable[[Sequence[ReportedTest]], Mapping[str, str]] = field(
        default=lambda tests: dict.fromkeys((test.file for test in tests), "")
    )


def group_by_file(tests: Sequence[ReportedTest]) -> dict[str, list[ReportedTest]]:
    groups: dict[str, list[ReportedTest]] = {}
    for test in tests:
        groups.setdefault(test.file, []).append(test)
    return groups


def stem(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0]


# ------------------------------------------------------------------------------------------------------------- XML


def quote(text: str) -> str:
    """Return an attribute as runners write it, which copy control characters as references."""
    quoted = quoteattr(text.encode("utf-8", "replace").decode(), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
    return "".join(f"&#{ord(c)};" if ord(c) < 32 else c for c in quoted)


def case(attributes: Mapping[str, str], status: str) -> str:
    ends = {
        "passed": "/>",
        "failed": f"><failure message={quote(MESSAGE)}/></testcase>",
        "error": f"><error message={quote(MESSAGE)}/></testcase>",
        "skipped": '><skipped message="not here"/></testcase>',
    }
    return "<testcase " + " ".join(f"{key}={quote(value)}" for key, value in attributes.items()) + ends[status]


def write_junit(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = [case({"file": test.file, "classname": "Suite", "name": test.title}, test.status) for test in tests]
    return {"report.xml": f'<testsuites><testsuite name="all">{"".join(rows)}</testsuite></testsuites>'}


def write_surefire(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {
        f"TEST-a.{stem(file)}.xml": f'<testsuite name="a.{stem(file)}">'
        + "".join(case({"classname": f"a.{stem(file)}", "name": test.title}, test.status) for test in group)
        + "</testsuite>"
        for file, group in group_by_file(tests).items()
    }


def write_nextest(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = "".join(case({"classname": f"greet::{stem(test.file)}", "name": test.name}, test.status) for test in tests)
    return {"junit.xml": f'<testsuites name="nextest-run"><testsuite name="greet">{rows}</testsuite></testsuites>'}


def write_luaunit(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {
        f"reports/{file}.xml": '<testsuites><testsuite name="LuaUnit">'
        + "".join(case({"classname": "TestA", "name": f"TestA.{test.title}"}, test.status) for test in group)
        + "</testsuite></testsuites>"
        for file, group in group_by_file(tests).items()
    }


def write_bun(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    suites = ""
    for file, group in group_by_file(tests).items():
        rows = [
            '<testcase name={} classname="" file={}><skipped message="TODO" /></testcase>'.format(
                *map(quote, (test.title, file))
            )
            if test.status == "xfailed"
            else case({"name": test.title, "classname": "", "file": file}, test.status)
            for test in group
        ]
        suites += f"<testsuite name={quote(file)} file={quote(file)}>{''.join(rows)}</testsuite>"
    return {"bun.xml": f'<testsuites name="bun test">{suites}</testsuites>', "bun.txt": "bun test v1.2.20\n"}


def write_swift(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = [
        case({"classname": f"AllTests.{stem(test.file).title()}", "name": test.name}, test.status) for test in tests
    ]
    ends = [
        f"Test Case '{stem(test.file).title()}.{test.name}' passed (0.1 seconds)\n"
        for test in tests
        if test.status == "passed"
    ]
    xml = f'<testsuites><testsuite name="TestResults">{"".join(rows)}</testsuite></testsuites>'
    return {"tests.xml": xml, "tests.txt": "".join(ends)}


def write_trx(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    ends = {"passed": "Passed", "failed": "Failed", "error": "Error", "skipped": "NotExecuted"}
    results = "".join(
        f'<UnitTestResult testId="{number}" testName={quote(test.title)} outcome="{ends[test.status]}">'
        f"<Output><ErrorInfo><Message>{escape(MESSAGE)}</Message></ErrorInfo></Output></UnitTestResult>"
        for number, test in enumerate(tests)
    )
    methods = "".join(
        f'<UnitTest id="{number}" storage="/t/bin/a.dll"><TestMethod className="A.{stem(test.file).title()}" name="A"/>'
        "</UnitTest>"
        for number, test in enumerate(tests)
    )
    text = f"<Results>{results}</Results><TestDefinitions>{methods}</TestDefinitions>"
    return {"a.trx": f'<TestRun xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010">{text}</TestRun>'}


def write_ctest(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    ends = {"passed": "run", "failed": "fail", "skipped": "disabled"}
    rows = "".join(
        case({"name": test.title, "status": ends[test.status]}, test.status.replace("skipped", "passed"))
        for test in tests
    )
    listed = [{"name": test.title, "command": [f"/opt/build/{stem(test.file)}"]} for test in tests]
    return {
        "ctest.xml": f'<testsuite name="Linux">{rows}</testsuite>',
        "tests.json": json.dumps({"kind": "ctestInfo", "tests": listed}),
    }


def write_meson(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = "".join(case({"name": test.title, "classname": "the shop"}, test.status) for test in tests)
    program = "/opt/build/{}".format
    listed = [
        {"name": test.title, "cmd": [program(stem(test.file)), "-q"], "suite": ["the_shop:unit"]} for test in tests
    ]
    targets = [
        {"filename": [program(stem(file))], "target_sources": [{"sources": ["/src/main.c", f"/src/{file}"]}]}
        for file in group_by_file(tests)
    ]
    return {
        "testlog.junit.xml": f'<testsuites><testsuite name="the shop">{rows}</testsuite></testsuites>',
        "intro-tests.json": json.dumps(listed),
        "intro-targets.json": json.dumps(targets),
    }


def write_googletest(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    reports = {}
    for file, group in group_by_file(tests).items():
        rows = "".join(
            case({"name": test.name, "classname": "Shared", "status": "run", "result": "completed"}, test.status)
            for test in group
        )
        reports[f"{stem(file)}.xml"] = (
            f'<testsuites name="AllTests"><testsuite name="S">{rows}</testsuite></testsuites>'
        )
    return reports


def write_catch2(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = "".join(
        f"<TestCase name={quote(f'{test.name} {test.title}')} filename={quote('/src/' + test.file)}>"
        f'<OverallResult success="{str(test.status == "passed").lower()}"/></TestCase>'
        for test in tests
    )
    return {"catch.xml": f'<Catch name="all">{rows}</Catch>'}


def write_cases(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {"0.cases.xml": write_catch2(tests)["catch.xml"]}


# ------------------------------------------------------------------------------------------------------------ JSON


def write_jest(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    entries = [
        {
            "name": f"/{file}",
            "status": "passed",
            "assertionResults": [
                {
                    "ancestorTitles": ["math"],
                    "title": test.title,
                    "status": {"skipped": "pending", "xfailed": "todo"}.get(test.status, test.status),
                    "failureMessages": [MESSAGE] if test.status == "failed" else [],
                }
                for test in group
            ],
        }
        for file, group in group_by_file(tests).items()
    ]
    return {"jest.json": json.dumps({"testResults": entries})}


def write_mocha(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = [
        {
            "file": f"/{test.file}",
            "title": test.title,
            "fullTitle": "math " + test.title,
            "duration": number,
            "err": {"message": MESSAGE} if test.status == "failed" else {},
        }
        for number, test in enumerate(tests)
    ]
    pending = [row for row, test in zip(rows, tests, strict=True) if test.status == "skipped"]
    return {"mocha.json": json.dumps({"stats": {}, "tests": rows, "pending": pending, "failures": []})}


def write_rspec(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = [
        {
            "id": f"./{test.file}[1:{number}]",
            "full_description": test.title,
            "status": {"skipped": "pending"}.get(test.status, test.status),
            "exception": {"message": MESSAGE} if test.status == "failed" else None,
        }
        for number, test in enumerate(tests)
    ]
    return {"rspec.json": json.dumps({"examples": rows})}


def write_rows(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = [
        {"file": f"/{test.file}", "name": test.title, "status": test.status, "message": MESSAGE, "seconds": 0.1}
        for test in tests
    ]
    return {"tests.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def write_dart(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    results = {"passed": "success", "failed": "failure", "error": "error", "skipped": "success"}
    events: list[dict[str, object]] = [{"type": "start", "protocolVersion": "0.1.1", "time": 0}]
    suites = {file: number for number, file in enumerate(group_by_file(tests))}
    events += [{"type": "suite", "suite": {"id": suites[file], "platform": "vm", "path": file}} for file in suites]
    for number, test in enumerate(tests):
        events.append({"type": "testStart", "test": {"id": number, "name": test.title, "suiteID": suites[test.file]}})
        events.append({"type": "print", "testID": number, "message": MESSAGE})
        if test.status in ("failed", "error"):
            events.append({"type": "error", "testID": number, "error": MESSAGE})
        end = {"result": results[test.status], "skipped": test.status == "skipped", "hidden": False}
        events.append({"type": "testDone", "testID": number, **end})
    return {"tests.json": "".join(json.dumps(event) + "\n" for event in events)}


def write_recipes(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    rows = ({"test": test.title, "programs": [test.file], "code": int(test.status == "failed")} for test in tests)
    return {"recipes.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}


def name_subtest(test: ReportedTest, seen: dict[str, int]) -> str:
    """Return the name that `t.Run` gives a subtest: without spaces and control characters, and unique."""
    name = "".join("_" if c.isspace() else c if c.isprintable() else f"\\x{ord(c):02x}" for c in test.title)
    name = f"Test{stem(test.file).title()}/{name}"
    seen[name] = seen.get(name, -1) + 1
    return f"{name}#{seen[name]:02}" if seen[name] else name


def write_go(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    package, seen = "example.org/greet/tests", dict[str, int]()
    events: list[dict[str, object]] = [{"Action": "start", "Package": package}]
    for test in tests:
        name = name_subtest(test, seen)
        end = {"passed": "pass", "failed": "fail", "skipped": "skip"}[test.status]
        events.append({"Action": "run", "Package": package, "Test": name})
        events += [
            {"Action": "output", "Package": package, "Test": name, "Output": f"{m}\n"} for m in MESSAGE.split("\n")
        ]
        events.append({"Action": end, "Package": package, "Test": name, "Elapsed": 0.01})
    events.append({"Action": "fail", "Package": package})
    return {"go.json": "".join(json.dumps(event) + "\n" for event in events)}


def declare_go(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    files = {
        file: f"package greet\n\nfunc Test{stem(file).title()}(t *testing.T) {{}}\n" for file in group_by_file(tests)
    }
    return {"go.mod": "module example.org/greet\n", **files}


# ------------------------------------------------------------------------------------------------------------ text


def write_point(number: int, test: ReportedTest, prefix: str = "") -> str:
    title = re.sub(r"([#\\])", r"\\\1", " ".join(test.title.split()))
    start = "not ok" if test.status in ("failed", "xfailed") else "ok"
    directive = {"skipped": " # SKIP not here", "xfailed": " # TODO later"}.get(test.status, "")
    block = "".join(f"    {line}\n" for line in MESSAGE.split("\n"))
    failure = f"  ---\n  operator: equal\n  stack: |-\n{block}  ...\n" if test.status == "failed" else ""
    return f"{start} {number} - {prefix}{title}{directive}\n{failure}"


def write_tap(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {
        f"{file}.tap": "".join(write_point(number, test) for number, test in enumerate(group, 1)) + f"1..{len(group)}\n"
        for file, group in group_by_file(tests).items()
    }


def write_ava(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    points = [write_point(number, test, f"{stem(test.file)} \u203a ") for number, test in enumerate(tests, 1)]
    return {"out.tap": "TAP version 13\n" + "".join(points) + f"\n1..{len(tests)}\n"}


def write_minitest(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    letters = {"passed": ".", "failed": "F", "error": "E", "skipped": "S"}
    text = "".join(
        f"{stem(test.file).title()}#test_{test.name} = 0.01 s = {letters[test.status]}\n{MESSAGE}\n" for test in tests
    )
    return {"out.txt": text}


def write_exunit(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    text = ""
    for number, (file, group) in enumerate(group_by_file(tests).items(), 1):
        text += f"\nGreet.{stem(file).title()}Test [{file}]\n"
        for test in group:
            text += f"  * test {test.name} (0.1ms) [L#{number}]\n"
            if test.status == "failed":
                text += f"\n  {number}) test {test.name} (Greet.{stem(file).title()}Test)\n     {file}:3\n     no\n\n"
    return {"out.txt": f"{text}\nFinished in 0.1 seconds\n{len(tests)} tests, 1 failure\n"}


CARGO_ENDS = {"passed": "ok", "failed": "FAILED", "skipped": "ignored"}


def write_cargo(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    text = ""
    for number, (file, group) in enumerate(group_by_file(tests).items()):
        text += f"     Running {file} (target/debug/deps/{stem(file)}-{number:016x})\n\nrunning {len(group)} tests\n"
        text += "".join(f"test {test.name} ... {CARGO_ENDS[test.status]}\n" for test in group)
        failed = [test.name for test in group if test.status == "failed"]
        text += "\nfailures:\n\n" + "".join(f"---- {name} stdout ----\n{MESSAGE}\n\n" for name in failed)
        text += "\nfailures:\n" + "".join(f"    {name}\n" for name in failed) + "\ntest result: FAILED. 1 passed\n\n"
    return {"cargo.txt": text}


def write_cargo_logs(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    """Write what libtest logs, and a text in which every test has passed and printed."""
    passed = [replace(test, status="passed") for test in tests]
    text = write_cargo(passed)["cargo.txt"].replace(" ... ok\n", f" ... {MESSAGE}\nok\n")
    reason = ': panic did not contain expected string\n      panic message: "a b"\n expected substring: `"c"`'
    starts = {"passed": "ok", "failed": "failed", "skipped": "ignored: not here"}
    logs = {"cargo.txt": text}
    for number, (file, group) in enumerate(group_by_file(tests).items()):
        rows = [f"{starts[test.status]}{reason if test.status == 'failed' else ''} {test.name}\n" for test in group]
        logs[f"{stem(file)}-{number:016x}.log"] = "".join(rows)
    return logs


def declare_cargo(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {"Cargo.toml": '[package]\nname = "greet"\n', **dict.fromkeys(group_by_file(tests), "")}


def declare_google(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    groups = group_by_file(tests).items()
    return {file: "".join(f"TEST(Shared, {test.name}) {{}}\n" for test in group) for file, group in groups}


def declare_class(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {
        file: f"package a;\nclass {stem(file)} {{}}\n"
        if file.endswith(".java")
        else f"class {stem(file).title()}\nend\n"
        for file in group_by_file(tests)
    }


def declare_types(tests: Sequence[ReportedTest]) -> Mapping[str, str]:
    return {file: f"class {stem(file).title()} {{}}\n" for file in group_by_file(tests)}


WRITERS = {
    "junit": ReportWriter(report_format="junit", write=write_junit, suffix=".bats", statuses=ALL[:4]),
    "surefire": ReportWriter(
        report_format="jvm", write=write_surefire, suffix=".java", statuses=ALL[:4], tree=declare_class
    ),
    "luaunit": ReportWriter(report_format="luaunit", write=write_luaunit, suffix=".lua", statuses=ALL[:4]),
    "swift": ReportWriter(
        report_format="swift",
        write=write_swift,
        suffix=".swift",
        statuses=ALL[:4],
        has_titles=False,
        tree=declare_types,
    ),
    "trx": ReportWriter(report_format="trx", write=write_trx, suffix=".cs", statuses=ALL[:4], tree=declare_types),
    "go": ReportWriter(
        report_format="gojson", write=write_go, suffix="_test.go", unstable=("{ms}", "{port}"), tree=declare_go
    ),
    "cargo": ReportWriter(report_format="cargo", write=write_cargo, suffix=".rs", has_titles=False, tree=declare_cargo),
    "cargo-logged": ReportWriter(
        report_format="cargo", write=write_cargo_logs, suffix=".rs", has_titles=False, tree=declare_cargo
    ),
    "nextest": ReportWriter(
        report_format="nextest", write=write_nextest, suffix=".rs", has_titles=False, tree=declare_cargo
    ),
    "jest": ReportWriter(
        report_format="jest", write=write_jest, suffix=".test.js", statuses=("passed", "failed", "skipped", "xfailed")
    ),
    "bun": ReportWriter(
        report_format="bun", write=write_bun, suffix=".test.js", statuses=("passed", "failed", "skipped", "xfailed")
    ),
    "mocha": ReportWriter(report_format="mocha", write=write_mocha, suffix=".js"),
    "nodetest": ReportWriter(report_format="nodetest", write=write_rows, suffix=".mjs", statuses=ALL),
    "lines": ReportWriter(report_format="lines", write=write_rows, suffix=".js", statuses=ALL),
    "dart": ReportWriter(report_format="dart", write=write_dart, suffix="_test.dart", statuses=ALL[:4]),
    "tap": ReportWriter(
        report_format="tap", write=write_tap, suffix=".t", statuses=("passed", "failed", "skipped", "xfailed")
    ),
    "ava": ReportWriter(report_format="ava", write=write_ava, suffix=".js"),
    "rspec": ReportWriter(report_format="rspec", write=write_rspec, suffix="_spec.rb"),
    "minitest": ReportWriter(report_format="minitest", write=write_rows, suffix="_test.rb", statuses=ALL),
    "minitest-text": ReportWriter(
        report_format="minitest",
        write=write_minitest,
        suffix="_test.rb",
        statuses=ALL[:4],
        has_titles=False,
        tree=declare_class,
    ),
    "exunit": ReportWriter(report_format="exunit", write=write_rows, suffix="_test.exs", statuses=ALL),
    "exunit-text": ReportWriter(
        report_format="exunit", write=write_exunit, suffix="_test.exs", statuses=("passed", "failed"), has_titles=False
    ),
    "ctest": ReportWriter(report_format="ctest", write=write_ctest, suffix=".c"),
    "googletest": ReportWriter(
        report_format="googletest",
        write=write_googletest,
        suffix=".cc",
        statuses=("passed", "failed"),
        has_titles=False,
        tree=declare_google,
    ),
    "catch2": ReportWriter(report_format="catch2", write=write_catch2, suffix=".cpp", statuses=("passed", "failed")),
    "cases": ReportWriter(report_format="cases", write=write_cases, suffix=".cpp", statuses=("passed", "failed")),
    "meson": ReportWriter(report_format="meson", write=write_meson, suffix=".c", statuses=ALL[:4]),
    "make": ReportWriter(report_format="make", write=write_recipes, suffix=".sh", statuses=("passed", "failed")),
}
