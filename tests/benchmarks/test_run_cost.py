"""The benchmark of a run's own cost: its moments, its sums and its verdict."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from benchmarks.page_table import format_mark
from benchmarks.run_cost import (
    BEGIN,
    COMMAND,
    PHASES,
    REMOVED,
    RunClock,
    add_stamp,
    compute_cost,
    find_misses,
    measure_runs,
    render_table,
)
from builders.bases import ensure_base
from evaluation.runner.run import run_tests
from tests.containers import make_services

MOMENTS = {name: 100.0 + number for number, name in enumerate([BEGIN, *PHASES, REMOVED])}
SECOND_EACH = dict.fromkeys([*PHASES, REMOVED], 1.0)
SCRIPT = """#!/bin/bash
echo "$(date +%s%N) $(date +%s%N) 0" > "$MERGEMILL_REPORT_DIR/times"
"""


def test_a_phase_takes_the_time_between_two_moments() -> None:
    assert RunClock(dict(reversed(MOMENTS.items()))).compute_seconds() == SECOND_EACH


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"tests": None}, "no moment tests"), ({"begun": 99.0}, "out of order"), ({REMOVED: None}, "no moment removed")],
)
def test_a_run_that_lacks_a_moment_is_not_measured(changed: Mapping[str, float | None], message: str) -> None:
    moments = {name: moment for name, moment in {**MOMENTS, **changed}.items() if moment is not None}
    with pytest.raises(RuntimeError, match=message):
        RunClock(moments).compute_seconds()


def test_moments_inside_of_the_container_come_from_files() -> None:
    clock = RunClock()
    clock.note_files({"/x/begun": b"7.5", "/x/finished": b"9,25", "/x/report/times": b"8000000000 8500000000 1\n"})
    clock.note_files({"/x/report/junit.xml": b"<testsuites/>"})
    assert clock.moments == {"begun": 7.5, "finished": 9.25, "tests": 8.0, "tested": 8.5}


def test_the_cost_is_without_tests_and_removal_and_where_runs_follow_each_other_without_the_start() -> None:
    seconds = {**SECOND_EACH, "tested": 50.0, REMOVED: 50.0}
    assert compute_cost(seconds) == len(PHASES) - 1
    assert compute_cost(seconds, warm=True) == len(PHASES) - 3


def test_a_goal_is_missed_by_the_median() -> None:
    cheap, dear = dict.fromkeys(SECOND_EACH, 0.05), dict.fromkeys(SECOND_EACH, 0.1)
    results = {"python": [cheap, cheap, dear], "go": [cheap, dear, dear]}
    assert find_misses(results) == ["go"]
    table = render_table(results).splitlines()
    assert table[:2] == ["| median seconds | python | go |", "|---|---:|---:|"]
    assert "| **beyond the test process** (goal: at most 0.6) | 0.450 | 0.900 |" in table
    assert "| the same, of the fastest run | 0.450 | 0.450 |" in table
    assert len(table) == 2 + len(PHASES) + 4


def test_a_stamp_leaves_the_script_and_its_exit_code_as_they_are(tmp_path: Path) -> None:
    files = {f"{tmp_path}/evaluate.sh": b'#!/bin/bash\necho "out $1"\nexit 3\n', f"{tmp_path}/files": b"a\n"}
    folder, stamped = add_stamp(files)
    assert (folder, stamped.pop(f"{tmp_path}/files")) == (str(tmp_path), b"a\n")
    for path, content in stamped.items():
        Path(path).write_bytes(content)
    words = ["bash", "-c", COMMAND, folder, "bash", f"{tmp_path}/evaluate.sh", "x"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "out x\n")
    begun, prepared, finished = (float((tmp_path / name).read_text()) for name in ("begun", "prepared", "finished"))
    assert begun <= prepared <= finished


def test_a_gold_patch_that_does_not_earn_1_ends_the_measurement() -> None:
    with pytest.raises(RuntimeError, match=r"earned 0\.0"):
        measure_runs(lambda: 0.0, lambda: None, runs=1)


def test_the_page_has_a_place_for_the_table() -> None:
    page = Path(__file__).parents[2] / "docs/evidence/measured.md"
    assert format_mark("benchmarks.run_cost") in page.read_text(encoding="utf-8")


@pytest.mark.docker
def test_a_run_in_a_container_notes_all_moments(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    sandbox = services.sandbox
    assert isinstance(sandbox, DockerSandbox)
    image = ensure_base("python", "3.11", services).name

    def run() -> float:
        with services.sandbox.open_pool(image, limits=services.test_limits()) as pool:
            run_tests(pool, SCRIPT, workdir="/", last=True)
        return 1.0

    (seconds,) = measure_runs(run, sandbox.flush, runs=1)
    assert list(seconds) == [*PHASES, REMOVED]
    assert run() == 1.0
