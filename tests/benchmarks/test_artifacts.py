"""The benchmark of artifacts runs small, against the server of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.artifacts import Row, draw_contents, render_table
from tests.s3_server import BUCKET, S3Server

ROOT = Path(__file__).parents[2]


@pytest.mark.s3
def test_it_measures_folder_and_store(s3_server: S3Server) -> None:
    options = ["--artifacts", f"s3://{BUCKET}/benchmark", "--count", "20", "--rounds", "1", "--threads", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.artifacts", *options],
        cwd=ROOT,
        env=os.environ | s3_server.make_environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [(row[0], row[1]) for row in rows] == [("| folder", "2"), ("| S3", "2")]
    assert len(list((s3_server.objects / "benchmark").rglob("*.zst"))) == 20


def test_ratios_are_to_the_folder_of_the_same_round() -> None:
    rows = [
        Row("folder", 1, {"put": [1.0, 4.0, 1.0], "get": [1.0, 1.0, 1.0], "get again": [1.0, 1.0, 1.0]}),
        Row("S3", 1, {"put": [3.0, 4.0, 2.0], "get": [5.0, 5.0, 6.0], "get again": [0.5, 1.0, 2.0]}),
    ]
    folder, shared = render_table(rows, 1000).splitlines()[2:]
    assert folder == "| folder | 1 | 1.00 | 1.00 | 1.00 |"
    assert shared == "| S3 | 1 | 3.00 (2.0x) | 5.00 (5.0x) | 1.00 (1.0x) |"


def test_sizes_are_those_of_runs() -> None:
    sizes = sorted(map(len, draw_contents(2000, 1)))
    assert 4_500 < sizes[1000] < 7_500
    assert 35_000 < sizes[1800] < 90_000
    assert len(set(draw_contents(50, 1) + draw_contents(50, 2))) == 100
