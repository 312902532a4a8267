"""Tests start with the default actions of all signals, and only the process that began a session writes its report."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.reports import junit
from evaluation.script.render import read_service_script, render_script
from guest.harness import HARNESS_FOLDER
from languages.registry import frameworks_by_name
from taskdb.records import TestCommand
from tests.plain_pytest import WITHOUT_PLUGINS

PRINT_SIGNALS = ("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
FORKING = """
import os, time, unittest

class Test(unittest.TestCase):
    def test_child(self):
        if not os.fork():
            return
        os.wait()

    def test_last(self):
        assert {wait}
"""


def render(framework: str, **options: object) -> str:
    command = TestCommand(framework=framework, argv=("run",), paths=("tests",))
    return render_script(command, workdir="/testbed", test_patch=b"", files=(), canaries_beside=(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("begin", ["", "trap '' INT QUIT PIPE;", "set -m;"], ids=["usual", "ignored", "jobs"])
@pytest.mark.parametrize("end", ["", "& wait $!"], ids=["in the foreground", "in the background"])
def test_no_signal_is_ignored_or_blocked_whatever_the_shell_ignores(begin: str, end: str) -> None:
    (starter,) = re.findall(r"(?ms)^starter=\(.*?^' \"\$\{tester\[@\]\}\"\)$", render("pytest"))
    script = f'{begin} tester=(env -i)\n{starter}\n"${{starter[@]}}" "$@" < /dev/null {end}'
    command = ["bash", "-c", script, "bash", *PRINT_SIGNALS]
    blocked = {signal.SIGINT, signal.SIGUSR1}
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, blocked),
    )
    assert run.stdout == f"SigBlk:\t{0:016x}\nSigIgn:\t{0:016x}\n"


@pytest.mark.parametrize("begin", ["", "trap '' INT QUIT HUP; "], ids=["usual", "ignored"])
def test_a_test_in_a_terminal_has_the_default_actions(begin: str, tmp_path: Path) -> None:
    script = (
        f'{begin}report="$1"; shift; command=("$@"); start_terminal() {{\n{read_service_script("terminal")}}}\n'
        'start_terminal\n"${command[@]}" < /dev/null'
    )
    command = ["bash", "-c", script, "bash", str(tmp_path), *PRINT_SIGNALS]
    run = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    assert re.findall(r"SigIgn:\t0+\n", run.stdout)


@pytest.mark.parametrize("framework", sorted(frameworks_by_name()))
def test_every_framework_is_started_so(framework: str) -> None:
    for options in ({}, {"metered": True}, {"metered": True, "timed_rounds": "{}"}):
        script = render(framework, **options)
        starts = [line for line in script.splitlines() if '"${environment[@]}" "${command[@]}"' in line]
        assert len(starts) == 1 + ("timed_rounds" in options)
        assert all(line.startswith('"${starter[@]}" env -i') for line in starts)


def read_report(path: Path) -> dict[str, str]:
    report = junit.parse_junit(path.read_bytes(), ["test_it.py"])
    return {test: outcome.status.value for test, outcome in report.outcomes.items()}


def run_harness(folder: Path, waits: str, *, with_pytest: bool) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run tests, one of which forks, and return the report and the process."""
    (folder / "test_it.py").write_text(FORKING.replace("{wait}", waits))
    (folder / "plugin").mkdir()
    plugin = (HARNESS_FOLDER / "report_owner.py").read_text(encoding="utf-8")
    (folder / "plugin/report_abc.py").write_text(plugin)
    report = folder / "junit.xml"
    options = ["-p", "report_abc", "-p", "no:cacheprovider", "-q", f"--junitxml={report}", "test_it.py"]
    command = [sys.executable, "-m", "pytest", *options]
    if not with_pytest:
        harness = str(HARNESS_FOLDER / "unittest_junit.py")
        command = [sys.executable, harness, "--report", str(report), "--", "-m", "unittest", "test_it"]
    paths = f"{folder / 'plugin'}:{folder / 'own'}"
    environment = {**os.environ, **WITHOUT_PLUGINS, "PYTHONPATH": paths, "REPORT": str(report)}
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    return report, run


@pytest.mark.parametrize("with_pytest", [True, False], ids=["pytest", "unittest"])
def test_the_child_of_a_test_writes_no_report(with_pytest: bool, tmp_path: Path) -> None:
    # When the parent reaches its last test, its child has ended the session: there must be no report yet.
    waits = "not os.path.exists(os.environ['REPORT'])"
    report, run = run_harness(tmp_path, waits, with_pytest=with_pytest)
    assert run.returncode == 0, run.stdout + run.stderr
    assert read_report(report) == dict.fromkeys(
        ["test_it.py::Test::test_child", "test_it.py::Test::test_last"], "passed"
    )


def test_tests_see_nothing_of_the_plugin_in_their_paths(tmp_path: Path) -> None:
    waits = "os.environ['PYTHONPATH'].endswith('/own') and not [p for p in __import__('sys').path if 'plugin' in p]"
    report, run = run_harness(tmp_path, waits, with_pytest=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert set(read_report(report).values()) == {"passed"}


SUBTESTS = """
import unittest


class Test(unittest.TestCase):
    def test_a(self):
        for number in range(9):
            with self.subTest(number=number):
                self.assertEqual(number, 9)

    def test_b(self):
        self.assertEqual(1, 2)

    @classmethod
    def tearDownClass(cls):
        raise ValueError("at the end")
"""
WATCHER = """
import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    (writer,) = [p for p in session.config.pluginmanager.get_plugins() if type(p).__name__ == "LogXML"]
    with open("open.txt", "w") as file:
        file.write(str(len(writer.open_reports)))
"""


def test_the_report_forgets_failed_subtests_and_loses_none(tmp_path: Path) -> None:
    reports = []
    for name in ("without", "with"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "test_it.py").write_text(SUBTESTS)
        (folder / "conftest.py").write_text(WATCHER)
        (folder / "report_abc.py").write_text((HARNESS_FOLDER / "report_owner.py").read_text(encoding="utf-8"))
        options = ["-p", "no:cacheprovider", "-q", "--junitxml=junit.xml", "-o", "junit_duration_report=call"]
        options += ["-p", "report_abc"] if name == "with" else []
        command = [sys.executable, "-m", "pytest", *options, "test_it.py"]
        environment = {**os.environ, **WITHOUT_PLUGINS, "PYTHONPATH": str(folder)}
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
        assert run.returncode == 1, run.stdout + run.stderr
        outcomes = junit.parse_junit((folder / "junit.xml").read_bytes(), ["test_it.py"]).outcomes
        reports.append({test: (outcome.status, outcome.message) for test, outcome in outcomes.items()})
    assert reports[0] == reports[1]
    counts = [(tmp_path / name / "open.txt").read_text() for name in ("without", "with")]
    assert counts == ["8", "0"]
