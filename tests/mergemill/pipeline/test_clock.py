"""A machine's clock that jumps during a run, as after a suspension or a correction from the network."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from tests.certified import certified
from tests.cli import make_command_environment
from tests.taskdb.content import read_records
from tests.taskdb.lineages import make_url

__all__ = ["certified"]
ADVICE = "libfaketime is not installed: apt-get install -y libfaketime"
JUMPS = ("+3d", "-2d", "+0", "-1h", "+1h")
CHANGE = "ada__greet-3"
READ_SECONDS = 1
"""Seconds for which the library keeps the content of its file; reading it for each time takes a minute of CPU."""


def find_library() -> Path:
    path = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(ADVICE)
    assert path is not None
    return path


@pytest.mark.docker
@pytest.mark.timeout(300)
def test_a_clock_that_jumps_changes_no_record(certified: Path, tmp_path: Path) -> None:
    library = find_library()
    calm, jumping = f"sqlite:///{certified}/mergemill.db", make_url(tmp_path)

    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    variables = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": str(READ_SECONDS),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # a monotonic clock never jumps
    }
    jumps = itertools.cycle(JUMPS)
    with subprocess.Popen(
        ["mergemill", "run", f"git:{certified}/ada__greet", "--only", CHANGE, "--db", jumping],
        cwd=tmp_path,
        env=make_command_environment(**variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        n_jumps = 0
        while driver.poll() is None:
            clock.write_text(f"{next(jumps)}\n")
            n_jumps += 1
            try:
                driver.wait(READ_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        assert driver.stderr is not None
        assert driver.returncode == 0, driver.stderr.read()
    assert n_jumps > len(JUMPS)
    jumped, expected = read_records(jumping), read_records(calm)
    assert len(jumped["tasks"]) == 1
    # The status of a change says how far it was processed.
    jumped["changes"] = [row for row in jumped["changes"] if repr(CHANGE) in row]
    assert {table: sorted(set(rows).difference(expected[table])) for table, rows in jumped.items()} == {
        table: [] for table in expected
    }
    assert all(jumped[table] for table, rows in expected.items() if rows)
