"""The work of tests as the workload's plug-in counts it, without containers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from guest.harness import HARNESS_FOLDER
from tests.plain_pytest import WITHOUT_PLUGINS

PROGRAM = "LIMIT = {}\n\n\ndef unique(rows):\n    return list(dict.fromkeys(rows))\n"
TESTS = """import time

import pytest
import rows


@pytest.fixture(autouse=True)
def set_up_slowly():
    time.sleep(0.02)


def test_deep():
    assert len(rows.unique(list(range(rows.LIMIT)))) == rows.LIMIT


def test_steps():
    for number in range(rows.LIMIT):
        assert rows.unique([number])


def test_fixed():
    assert rows.unique([1] * 300) == [1]
"""


def run_plugin(folder: Path, limit: int, clock: str, work: dict[str, int]) -> tuple[dict[str, float], str]:
    """Return test -> reported seconds of the tests that pass, and the output of pytest."""
    (folder / "rows.py").write_text(PROGRAM.format(limit))
    (folder / "test_rows.py").write_text(TESTS)
    plugin = folder / "plugin"
    plugin.mkdir(exist_ok=True)
    (plugin / "mergemill_workload.py").write_bytes((HARNESS_FOLDER / "workload" / "mergemill_workload.py").read_bytes())
    rows = [f"1 {work.get(name, 0)} test_rows.py::{name}" for name in ("test_deep", "test_steps", "test_fixed")]
    (plugin / "workload.txt").write_text("\n".join(["1", clock, str(folder), *rows]))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "mergemill_workload",
        "-p",
        "no:cacheprovider",
        "--junitxml=out.xml",
    ]
    env = {**os.environ, **WITHOUT_PLUGINS, "PYTHONPATH": f"{plugin}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([*command, "test_rows.py"], cwd=folder, env=env, capture_output=True, text=True, check=False)
    report = (folder / "out.xml").read_text()
    passed = re.findall(r'<testcase[^>]* name="(\w+)" time="([\d.]+)"\s*/>', report)
    return {name: float(seconds) for name, seconds in passed}, ran.stdout


def test_work_counts_lines_of_tests_and_sizes_of_arguments(tmp_path: Path) -> None:
    large, output = run_plugin(tmp_path, 200, "work", {})
    small, _ = run_plugin(tmp_path, 20, "work", {})
    assert set(large) == {"test_deep", "test_steps", "test_fixed"}, output
    assert all(count.is_integer() for count in large.values()), "the time of set-up is added"
    assert large["test_fixed"] == small["test_fixed"] > 300
    assert large["test_deep"] - small["test_deep"] == 180
    assert large["test_steps"] > 5 * small["test_steps"]


def test_a_test_that_does_less_than_it_must_fails(tmp_path: Path) -> None:
    large, _ = run_plugin(tmp_path, 200, "work", {})
    work = {name: int(count) for name, count in large.items()}
    kept, output = run_plugin(tmp_path, 200, "cpu", work)
    assert set(kept) == set(large), output
    shrunk, output = run_plugin(tmp_path, 20, "cpu", work)
    assert set(shrunk) == {"test_fixed"}
    assert "the test does less work than before: " in output
