"""Programs of Catch2 and doctest that ctest runs as one test each report their cases."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluation.reports import converter, junit
from guest.harness.reports.main import convert_report

DOCTEST = """#!/bin/sh
# [doctest] doctest version is
case "$1" in
    --help) echo '[doctest] doctest version is "2.4.11"' ;;
    -r=xml) printf '%s' "$REPORT" > "${2#-o=}"; pwd > where; exit "${CODE:-0}" ;;
    *) exit 9 ;;
esac
"""
CATCH = DOCTEST.replace("[doctest] doctest version is", "Catch v").replace("-r=xml)", "-r)").replace("${2#-o=}", "$6")
REPORT = '<doctest><TestCase name="one" filename="a.cpp"><OverallResultsAsserts failures="{}"/></TestCase></doctest>'


class CtestRun:
    """A build folder with programs that ctest lists."""

    def __init__(self, folder: Path) -> None:
        self.out, self.tree, self.build = folder / "out", folder / "tree", folder / "build"
        for path in (self.out, self.tree, self.build):
            path.mkdir()
        (self.tree / "a.cpp").write_text("")
        (self.out / "case_runner.py").write_text(converter.read_asset("case_runner.py"))
        self.tests: list[dict[str, Any]] = []

    def add(self, name: str, text: str, *arguments: str, **properties: Any) -> None:
        """Add a test and its program."""
        program = self.build / name
        program.write_text(text)
        program.chmod(0o755)
        listed = [{"name": key, "value": value} for key, value in properties.items()]
        self.tests.append({"name": name, "command": [str(program), *arguments], "properties": listed})

    def run(self) -> tuple[int, str]:
        """Return the exit status of the runner and the tests that ctest must leave out."""
        path = self.out / "tests.json"
        path.write_text(json.dumps({"tests": self.tests}))
        command = [sys.executable, "-I", "-S", "-B", self.out / "case_runner.py", path, self.out]
        run = subprocess.run(command, cwd=self.build, capture_output=True, check=False, text=True)
        return run.returncode, run.stdout.strip()

    def results(self) -> dict[str, str]:
        """Return id -> status."""
        report = junit.parse_junit(convert_report("cases", str(self.out), str(self.tree)), [])
        return {test: outcome.status.value for test, outcome in report.outcomes.items()}


@pytest.mark.parametrize("program", [DOCTEST, CATCH])
@pytest.mark.parametrize(("failures", "code", "status"), [(0, 0, "passed"), (1, 1, "failed")])
def test_a_program_reports_its_cases_with_the_properties_of_its_test(
    program: str, failures: int, code: int, status: str, tmp_path: Path
) -> None:
    run = CtestRun(tmp_path)
    settings = [f"REPORT={REPORT.format(failures)}", f"CODE={code}"]
    (tmp_path / "here").mkdir()
    run.add("a.b", program, ENVIRONMENT=settings, WORKING_DIRECTORY=str(tmp_path / "here"))
    assert run.run() == (code, "^(a[.]b)$")
    assert run.results() == {"a.cpp::one": status}
    assert (tmp_path / "here/where").read_text().strip() == str(tmp_path / "here")


@pytest.mark.parametrize("report", ["", REPORT.format(0)])
def test_a_program_that_fails_without_a_failed_case_is_a_failed_test(report: str, tmp_path: Path) -> None:
    run = CtestRun(tmp_path)
    run.add("a", DOCTEST, ENVIRONMENT=[f"REPORT={report}", "CODE=3"])
    assert run.run()[0] == 1
    assert run.results()["a.cpp::a"] == "failed"


def test_programs_with_arguments_or_other_properties_or_frameworks_are_left_to_ctest(tmp_path: Path) -> None:
    run = CtestRun(tmp_path)
    run.add("plain", "#!/bin/sh\ntouch started\n")
    run.add("filtered", DOCTEST, "-tc=one")
    run.add("fails", DOCTEST, WILL_FAIL=True)
    run.tests.append({"name": "unbuilt"})
    assert run.run() == (0, "")
    assert not (run.build / "started").exists()  # `--help` may start the tests of another framework


def test_the_pattern_for_ctest_matches_the_names_alone(tmp_path: Path) -> None:
    run = CtestRun(tmp_path)
    for name in ("a.b", "c++"):
        run.add(name, DOCTEST, ENVIRONMENT=["REPORT="])
    pattern = re.compile(run.run()[1])
    assert [name for name in ("a.b", "c++", "axb", "a.bc", "c") if pattern.search(name)] == ["a.b", "c++"]
