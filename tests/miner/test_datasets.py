"""Task sets of others as rows in SWE-bench's fields."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from core import json_files
from core.errors import InputError, UsageError
from miner.datasets import read_rows
from miner.instances import InstanceRow
from tests.helpers import TinyRepo

PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
TEST_PATCH = PATCH.replace("a.py", "test_a.py")
SWE_BENCH = {
    "instance_id": "acme__widget-1",
    "repo": "acme/widget",
    "base_commit": "a" * 40,
    "patch": PATCH,
    "test_patch": TEST_PATCH,
    "problem_statement": "It is wrong.",
    "FAIL_TO_PASS": ["test_a.py::test_a"],
    "PASS_TO_PASS": [],
}
SWE_REBENCH = SWE_BENCH | {
    "problem_statement": None,
    "pr_description": "It is wrong.",
    "hints_text": None,
    "image_name": "docker.io/swerebench/x",
    "install_config": {"test_cmd": "pytest", "log_parser": "parse_log_pytest"},
    "FAIL_TO_PASS": ["test_a.py::test_a"],
}
MULTI = {
    "org": "acme",
    "repo": "widget",
    "number": 1,
    "instance_id": "acme__widget-1",
    "base": {"label": "acme:main", "ref": "main", "sha": "a" * 40},
    "title": "Fix it",
    "body": "",
    "resolved_issues": [{"number": 2, "title": "It is wrong.", "body": None}],
    "fix_patch": PATCH,
    "test_patch": TEST_PATCH,
    "f2p_tests": {"test_a.py::test_a": {"run": "PASS", "test": "FAIL", "fix": "PASS"}},
    "p2p_tests": {},
}
R2E = {
    "repo_name": "sympy",
    "docker_image": "namanjain12/sympy_final:x",
    "commit_hash": "b" * 40,
    "problem_statement": "[ISSUE]\nIt is wrong.\n[/ISSUE]",
    "expected_output_json": json.dumps({"test_a": "PASSED"}),
    "parsed_commit_content": json.dumps(
        {
            "old_commit_hash": "a" * 40,
            "new_commit_hash": "b" * 40,
            "commit_date": "2024-03-01T10:00:00+00:00",
            "file_diffs": [
                {
                    "header": {"file": {"path": "sympy/a.py"}},
                    "is_binary_file": False,
                    "old_file_content": "x = 1\ny = 1",
                    "new_file_content": "x = 2\ny = 1",
                },
                {
                    "header": {"file": {"path": "sympy/tests/test_a.py"}},
                    "is_binary_file": False,
                    "old_file_content": "",
                    "new_file_content": "def test_a():\n    pass\n",
                },
            ],
        }
    ),
}
SMITH = {
    "instance_id": "acme__widget.aaaaaaaa.lm_rewrite__x1",
    "repo": "swesmith/acme__widget.aaaaaaaa",
    "patch": PATCH,
    "FAIL_TO_PASS": ["test_a.py::test_a"],
    "PASS_TO_PASS": ["test_a.py::test_b"],
    "image_name": "swesmith.x86_64.acme_1776_widget.aaaaaaaa",
    "problem_statement": "It is wrong.",
}
ROWS: dict[str, dict[str, Any]] = {
    "swebench": SWE_BENCH,
    "swe-rebench": SWE_REBENCH,
    "multi-swe-bench": MULTI,
    "r2e-gym": R2E,
    "swe-smith": SMITH,
}


def read(path: Path, format_name: str) -> list[InstanceRow]:
    rows = [row for _, row in read_rows(path, format_name)]
    assert all(isinstance(row, InstanceRow) for row in rows), rows
    return [row for row in rows if isinstance(row, InstanceRow)]


def write(path: Path, *rows: object) -> Path:
    """Write rows as JSON lines, a JSON list or Parquet, by the suffix."""
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
@pytest.mark.parametrize("format_name", ["swebench", "swe-rebench", "swe-smith", "r2e-gym"])
def test_a_row_is_read_from_every_kind_of_file(format_name: str, suffix: str, tmp_path: Path) -> None:
    (row,) = read(write(tmp_path / f"rows{suffix}", ROWS[format_name]), format_name)
    assert row.problem_statement.strip() == "It is wrong."
    assert row.base_commit.startswith("aaaaaaaa")


@pytest.mark.parametrize("format_name", ["swebench", "swe-rebench", "multi-swe-bench"])
def test_rows_of_one_task_in_several_formats_are_equal(format_name: str, tmp_path: Path) -> None:
    (row,) = read(write(tmp_path / "rows.jsonl", ROWS[format_name]), format_name)
    assert (row.instance_id, row.repo, row.base_commit) == ("acme__widget-1", "acme/widget", "a" * 40)
    assert (row.patch, row.test_patch, row.FAIL_TO_PASS) == (PATCH, TEST_PATCH, ("test_a.py::test_a",))


def test_the_change_of_an_r2e_gym_row_applies(tmp_path: Path) -> None:
    (row,) = read(write(tmp_path / "rows.jsonl", R2E), "r2e-gym")
    repo = TinyRepo(tmp_path / "sympy")
    repo.commit("Base", {"sympy/a.py": "x = 1\ny = 1"})
    for name, patch in (("gold", row.patch), ("test", row.test_patch)):
        (tmp_path / name).write_text(patch)
        repo.git("apply", str(tmp_path / name))
    assert (repo.path / "sympy/a.py").read_text() == "x = 2\ny = 1"
    assert (repo.path / "sympy/tests/test_a.py").read_text() == "def test_a():\n    pass\n"
    assert (row.repo, row.instance_id) == ("sympy/sympy", "sympy__sympy-bbbbbbbbbb")


def test_an_r2e_gym_row_is_read_as_its_own_reader_does(tmp_path: Path) -> None:
    def change(path: str, old: str, new: str, misc_line: str | None) -> dict[str, Any]:
        header = {"file": {"path": path}, "misc_line": misc_line}
        return {"header": header, "is_binary_file": False, "old_file_content": old, "new_file_content": new}

    files = [
        change("sympy/a.py", "x = 1\n", "x = '\x0c\u2028'\n", None),
        change("sympy/new/__init__.py", "", "", "new file mode 100644"),
        change("bin/run", "/dev/null", "#!/bin/sh\n", "new file mode 100755"),
        change("sympy/old.py", "y = 1\n", "", "deleted file mode 100644"),
    ]
    commit = {"old_commit_hash": f"{'b' * 40}^", "new_commit_hash": "b" * 40, "file_diffs": files}
    log = "FAILED in the text\n=== short test summary info ===\n"
    log += "\x1b[31mFAILED\x1b[0m r2e_tests/test_1.py::T::test_a - x\n"
    execution = {
        "test_file_names": ["test_1.py", "__init__.py"],
        "test_file_codes": ["def test_a():\n    pass\n", ""],
        "old_commit_res_stdout": f"{log}PASSED r2e_tests/test_1.py::test_b\nERROR r2e_tests/test_1.py\n",
    }
    expected = {"\x1b[1mT.test_a\x1b[0m": "PASSED", "test_b": "PASSED", "test_c": "PASSED", "test_d": "FAILED"}
    row = R2E | {
        "parsed_commit_content": json.dumps(commit),
        "execution_result_content": json.dumps(execution),
        "expected_output_json": json.dumps(expected),
    }
    (read_row,) = read(write(tmp_path / "rows.jsonl", row), "r2e-gym")
    assert read_row.base_commit == f"{'b' * 40}^"
    assert "No newline" not in read_row.patch
    assert (read_row.FAIL_TO_PASS, read_row.PASS_TO_PASS) == (("T.test_a", "test_c"), ("test_b",))
    repo = TinyRepo(tmp_path / "sympy")
    repo.commit("Base", {"sympy/a.py": "x = 1\n", "sympy/old.py": "y = 1\n"})
    for name, patch in (("gold", read_row.patch), ("test", read_row.test_patch)):
        (tmp_path / name).write_text(patch)
        repo.git("apply", "--index", str(tmp_path / name))
    staged = repo.git("diff", "--cached", "--raw", "--abbrev=4").splitlines()
    assert [(line.split()[1], line.split()[-1]) for line in staged] == [
        ("100755", "bin/run"),
        ("100644", "r2e_tests/__init__.py"),
        ("100644", "r2e_tests/test_1.py"),
        ("100644", "sympy/a.py"),
        ("100644", "sympy/new/__init__.py"),
        ("000000", "sympy/old.py"),
    ]
    assert (repo.path / "sympy/a.py").read_text() == "x = '\x0c\u2028'\n"


def test_names_of_swe_rebench_are_read_without_colours_and_durations(tmp_path: Path) -> None:
    names = ["\x1b[32mrenders a page\x1b[0m (12.5 ms)", "renders a page [ 3 s ]", "test_sleep[1s]", "sums in 3 msec"]
    (row,) = read(write(tmp_path / "rows.jsonl", SWE_REBENCH | {"PASS_TO_PASS": json.dumps(names)}), "swe-rebench")
    assert row.PASS_TO_PASS == ("renders a page", "test_sleep[1s]", "sums")


def test_harbor_folders_are_read_by_their_row_or_their_patches(tmp_path: Path) -> None:
    first, two, three = (tmp_path / "set" / name for name in ("one", "two", "three"))
    for folder in (first, two, three):
        for part in ("solution", "tests"):
            (folder / part).mkdir(parents=True)
        (folder / "task.toml").write_text('version = "1.0"\n')
        (folder / "instruction.md").write_text("It is wrong.")
    (first / "tests" / "config.json").write_text(json.dumps(SWE_BENCH | {"instance_id": "one"}))
    metadata = {"repo": "acme/widget", "base_commit": "a" * 40}
    lines = [f'{name} = "{value}"' for name, value in metadata.items()]
    (two / "task.toml").write_text("\n".join(["[metadata]", *lines, 'FAIL_TO_PASS = ["test_a.py::test_a"]', ""]))
    (two / "solution" / "gold.patch").write_text(PATCH)
    (two / "tests" / "test.patch").write_text(TEST_PATCH)
    (tmp_path / "set" / "notes").mkdir()
    harbor_rows = list(read_rows(tmp_path / "set", "harbor"))
    rows = {Path(place).name: row for place, row in harbor_rows}
    assert sorted(rows) == ["one", "three", "two"]
    assert isinstance(rows["three"], InputError)
    assert isinstance(rows["one"], InstanceRow)
    assert isinstance(rows["two"], InstanceRow)
    assert rows["two"].model_copy(update={"instance_id": "one"}) == rows["one"]


def test_a_link_in_a_harbor_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "set" / "one" / "tests").mkdir(parents=True)
    (tmp_path / "set" / "one" / "task.toml").write_text("")
    (tmp_path / "secret.json").write_text(json.dumps(SWE_BENCH))
    (tmp_path / "set" / "one" / "tests" / "config.json").symlink_to(tmp_path / "secret.json")
    ((_, row),) = read_rows(tmp_path / "set", "harbor")
    assert isinstance(row, InputError)
    assert "is a link" in str(row)


@pytest.mark.parametrize("kind", ["pipe", "large"])
def test_a_file_in_a_harbor_folder_that_could_not_be_read_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "set" / "one" / "tests").mkdir(parents=True)
    (tmp_path / "set" / "one" / "task.toml").write_text("")
    row_file = tmp_path / "set" / "one" / "tests" / "config.json"
    if kind == "pipe":
        os.mkfifo(row_file)
    else:
        row_file.touch()
        os.truncate(row_file, 1 << 41)
    ((_, row),) = read_rows(tmp_path / "set", "harbor")
    assert isinstance(row, InputError)
    assert "config.json is not a file that can be read" in str(row)


@pytest.mark.parametrize("key", ["a." * 100_000 + "a = 1", '"a".' * 100_000 + "a = 1", "[" * 100_000])
def test_a_hostile_task_toml_is_refused_within_seconds(key: str, tmp_path: Path) -> None:
    for name in ("good", "hostile"):
        (tmp_path / name / "tests").mkdir(parents=True)
        (tmp_path / name / "task.toml").write_text("")
        (tmp_path / name / "tests" / "config.json").write_text(json.dumps(SWE_BENCH | {"instance_id": name}))
    (tmp_path / "hostile" / "tests" / "config.json").unlink()
    (tmp_path / "hostile" / "task.toml").write_text(f"x = 1\n{key}\n")
    started = time.monotonic()
    rows = {Path(place).name: row for place, row in read_rows(tmp_path, "harbor")}
    assert isinstance(rows["good"], InstanceRow)
    assert isinstance(rows["hostile"], InputError)
    assert len(str(rows["hostile"]).splitlines()) == 1
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("format_name", "change"),
    [
        ("swebench", {"patch": None}),
        ("swebench", {"repo": "widget"}),
        ("swe-rebench", {"FAIL_TO_PASS": 3}),
        ("swe-smith", {"repo": "acme/widget"}),
        ("swe-smith", {"FAIL_TO_PASS": "["}),
        ("multi-swe-bench", {"base": "x"}),
        ("multi-swe-bench", {"fix_patch": None}),
        ("r2e-gym", {"parsed_commit_content": "{}"}),
        ("r2e-gym", {"parsed_commit_content": "[" * 100_000}),
        ("r2e-gym", {"repo_name": "unknown"}),
        (
            "r2e-gym",
            {"execution_result_content": json.dumps({"old_commit_res_stdout": "x"}), "expected_output_json": "[1]"},
        ),
        ("swe-rebench", {"PASS_TO_PASS": [3]}),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_read(format_name: str, change: dict[str, Any], tmp_path: Path) -> None:
    good = ROWS[format_name]
    path = write(tmp_path / "rows.jsonl", good, good | change, good)
    path.write_text(path.read_text() + "not JSON\n" + "[1]\n")
    rows = list(read_rows(path, format_name))
    assert [isinstance(row, InputError) for _, row in rows] == [False, True, False, True, True]
    assert str(rows[1][1]).startswith(f"{path}:2: ")


def test_files_and_formats_that_do_not_exist_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format"):
        list(read_rows(tmp_path, "csv"))
    for format_name, name in (("swebench", "none.jsonl"), ("swebench", "none.parquet"), ("harbor", "none")):
        with pytest.raises(InputError):
            list(read_rows(tmp_path / name, format_name))


@pytest.mark.parametrize(
    "change",
    [
        {"instance_id": "a\0b"},
        {"instance_id": "a\nb"},
        {"instance_id": "a\x1b[2Jb"},
        {"instance_id": "a\u202eb"},
        {"instance_id": "../../etc/x"},
        {"instance_id": "a\\b"},
        {"instance_id": ".."},
        {"instance_id": "a" * 251},
        {"instance_id": "\ud800"},
        {"repo": "../etc"},
        {"repo": "etc/.."},
        {"repo": "--upload-pack=x/y"},
        {"repo": "ext::sh -c x/y"},
        {"repo": "/"},
        {"repo": "a\u202eb/c"},
        {"repo": "a/b\n"},
    ],
    ids=ascii,
)
def test_a_row_whose_name_or_repository_is_none_is_refused(change: dict[str, str], tmp_path: Path) -> None:
    ((_, row),) = read_rows(write(tmp_path / "rows.jsonl", SWE_BENCH | change), "swebench")
    assert isinstance(row, InputError)
    assert str(row).isprintable()
    assert next(iter(change)) in str(row)


def test_a_date_that_is_no_time_stays_as_it_is(tmp_path: Path) -> None:
    (row,) = read(write(tmp_path / "rows.jsonl", SWE_BENCH | {"created_at": 10**20}), "swebench")
    assert row.created_date == str(10**20)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_a_line_of_any_length_is_not_read_into_memory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "MAX_LINE", 1 << 20)
    good, bomb = json.dumps(SWE_BENCH).encode() + b"\n", b"x" * (8 << 20)
    (tmp_path / name).write_bytes(gzip.compress(good + bomb) if name.endswith(".gz") else good + bomb)
    rows = read_rows(tmp_path / name, "swebench")
    assert isinstance(next(rows)[1], InstanceRow)
    with pytest.raises(InputError, match=r"rows.jsonl.*:2 has more than 1048576 bytes"):
        next(rows)


def test_a_mirror_with_an_endless_name_is_refused_in_one_line(tmp_path: Path) -> None:
    row = SMITH | {"repo": "swesmith/" + "a__" * 20_000 + "b.aaaaaaa!"}
    ((_, error),) = read_rows(write(tmp_path / "rows.jsonl", row), "swe-smith")
    assert isinstance(error, InputError)
    assert len(str(error)) < 1000
