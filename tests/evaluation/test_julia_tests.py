"""The program that runs test/runtests.jl of a Julia package, on the oldest supported Julia."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.bases import ensure_base
from evaluation.reports.converter import read_asset
from tests.containers import make_services

HERE = Path(__file__).parent
PACKAGE = HERE / "trees/julia"
RECORDING = HERE / "recordings/julia/tests.jsonl"
COMMAND = """
cd /tree
export MERGEMILL_OUT=/tests.jsonl JULIA_LOAD_PATH=@stdlib:/tree JULIA_DEPOT_PATH=/depot
exec julia --startup-file=no --color=no /julia_tests.jl "$@"
"""
Row = dict[str, object]


def read_rows(text: str) -> list[Row]:
    """Return the rows of a report without durations, with paths from the root of the tree."""
    rows: list[Row] = [json.loads(line) for line in text.replace("@TREE@/", "").replace("/tree/", "").splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def run_package(folder: Path, *files: str, main: str = "") -> list[Row]:
    """Run the package's tests, or those of some files, and return the rows of the report.

    `main`: what takes the place of runtests.jl.
    """
    services = make_services(folder, test_timeout=300, memory_mb=2000, disk_mb=500)
    paths = [path for path in PACKAGE.rglob("*") if path.is_file()]
    given = {f"/tree/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes() for path in paths}
    if main:
        given["/tree/test/runtests.jl"] = f"using Greet, Test\n{main}".encode()
    result = services.sandbox.run(
        ensure_base("julia", "1.5", services).name,
        ["/bin/bash", "-c", COMMAND, "run", *files],
        limits=services.test_limits(),
        files={**given, "/julia_tests.jl": read_asset("julia_tests.jl").encode()},
        collect=["/tests.jsonl"],
    )
    assert "/tests.jsonl" in result.files, result.output
    return read_rows(result.files["/tests.jsonl"].decode())


@pytest.mark.slow
def test_each_test_set_is_a_row_of_the_file_that_is_included(tmp_path: Path) -> None:
    assert run_package(tmp_path) == read_rows(RECORDING.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_rows_of_given_files_alone_are_written(tmp_path: Path) -> None:
    assert run_package(tmp_path, "test/a.jl", "test/extra.jl", "test/syntax.jl", "test/helpers.jl") == [
        {"file": "test/syntax.jl", "uncollected": "syntax: incomplete: premature end of input"},
        {"file": "test/a.jl", "name": "All > in a", "status": "passed", "message": ""},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "reason"),
    [
        ('include("helpers.jl")\n@test true\n', "runtests.jl runs no test of this file"),
        ('error("it cannot run")\ninclude("extra.jl")\n', "it cannot run"),
        ('include("extra.jl")\nexit()\ninclude("a.jl")\n', "runtests.jl ended Julia"),
    ],
)
def test_given_files_that_did_not_run_are_reported(main: str, reason: str, tmp_path: Path) -> None:
    assert run_package(tmp_path, "test/a.jl", main=main) == [{"file": "test/a.jl", "uncollected": reason}]
