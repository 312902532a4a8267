"""The measures of tests and fixtures, and the ledger made of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.durations import read_cpu_seconds, read_rows, render_ledger, sum_files
from tests.plain_pytest import WITHOUT_PLUGINS

ROOT = Path(__file__).parents[2]
TESTS = """
import subprocess, sys, time
import pytest

@pytest.fixture(scope="module")
def below():
    time.sleep(0.5)

@pytest.fixture
def above(below):
    time.sleep(0.1)
    yield
    time.sleep(0.05)

@pytest.mark.parametrize("number", [1, 2])
def test_sleep(above, number):
    time.sleep(0.1)

def test_compute():
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
"""


def run_module(*words: str | Path, cwd: Path) -> str:
    command = [sys.executable, "-m", *map(str, words)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**environment, **WITHOUT_PLUGINS, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=["0", "2"])
def measures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of a run of two test files, in one process or by two workers."""
    folder = tmp_path_factory.mktemp("measured")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_first.py").write_text(TESTS)
    (folder / "test_second.py").write_text("def test_nothing(): pass\n")
    options = ("-q", "-p", "xdist", "-n", request.param, "--dist", "loadfile", "-p", "no:cacheprovider")
    run_module("pytest", "-p", "tests.durations", "--durations-to=out/rows.jsonl", *options, cwd=folder)
    return folder / "out" / "rows.jsonl"


def test_each_test_and_fixture_has_its_seconds(measures: Path) -> None:
    rows, setups = read_rows(measures)
    tests = {row["test"]: row for row in rows}
    fixtures = {row["fixture"]: row for row in setups}
    assert sorted(tests) == [
        "test_first.py::test_compute",
        "test_first.py::test_sleep[1]",
        "test_first.py::test_sleep[2]",
        "test_second.py::test_nothing",
    ]
    first = tests["test_first.py::test_sleep[1]"]
    assert first["setup"] >= 0.6
    assert first["call"] >= 0.1
    assert first["teardown"] >= 0.05
    assert tests["test_first.py::test_sleep[2]"]["setup"] < first["setup"] - 0.3
    assert tests["test_first.py::test_compute"]["cpu"] > first["cpu"]
    above, below = fixtures["test_first.py::above"], fixtures["test_first.py::below"]
    assert (above["count"], above["scope"], below["count"], below["scope"]) == (2, "function", 1, "module")
    assert below["seconds"] >= 0.5
    assert 0.2 <= above["seconds"] < above["longest"] * 2
    assert above["longest"] < first["setup"] - 0.4  # the fixture below is not counted twice


def test_a_ledger_has_a_row_for_each_file(measures: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.tsv"
    output = run_module("tests.durations", measures, "--ledger", ledger, "--count", "1", cwd=tmp_path)
    header, *rows = ledger.read_text().splitlines()
    assert header.split("\t") == ["file", "tests", "wall_seconds", "cpu_seconds"]
    assert [row.split("\t")[:2] for row in rows] == [["test_first.py", "3"], ["test_second.py", "1"]]
    assert float(rows[0].split("\t")[2]) >= 0.9
    assert output.startswith("4 tests: ")
    assert [line.split()[-1] for line in output.splitlines() if line.startswith(" ")] == [
        "test_first.py",
        output.partition("tests (wall):\n")[2].split()[1],
        "test_first.py::below",
    ]


def test_the_kept_ledger_has_the_columns_of_a_new_one() -> None:
    kept = (ROOT / "tests" / "durations.tsv").read_text().splitlines()
    assert [kept[0]] == render_ledger(sum_files([])).splitlines()
    assert all(len(line.split("\t")) == 4 for line in kept)


def test_the_processes_of_commands_count(tmp_path: Path) -> None:
    run_mergemill("--help", cwd=tmp_path)  # starts the server
    before, spent_here = read_cpu_seconds(), os.times()
    for _ in range(3):
        assert run_mergemill("--help", cwd=tmp_path).exit_code == 0
    now = os.times()
    elsewhere = read_cpu_seconds() - before - (now.user - spent_here.user) - (now.system - spent_here.system)
    assert elsewhere > 0.05
