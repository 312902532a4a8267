"""Rows of R2E-Gym: commits of Python projects, with the contents of all changed files before and after.

Field names and forms are those of the set's own reader (`ParsedCommit`, `FileDiff` and `ExecutionResult` in
r2egym): the commit before the change is often written as `COMMIT^`, a new file has no old content or `/dev/null`, and
its mode stands in `misc_line`. Kept are the statement, the commit before the change, and the commit's own change, split
into sources and tests by path; where the commit has no tests, the set's own (`r2e_tests/`) are the test patch. The
lists are those of the set's two logs: tests that pass after the change, and failed, or were not there, before it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import InputError
from languages.paths import is_test_path
from miner.datasets.rows import Row, strip_decoration
from miner.test_lists import parse_value

REPOSITORIES = {
    "aiohttp": "aio-libs/aiohttp",
    "bokeh": "bokeh/bokeh",
    "coveragepy": "nedbat/coveragepy",
    "datalad": "datalad/datalad",
    "numpy": "numpy/numpy",
    "orange3": "biolab/orange3",
    "pandas": "pandas-dev/pandas",
    "pillow": "python-pillow/Pillow",
    "pyramid": "Pylons/pyramid",
    "scrapy": "scrapy/scrapy",
    "statsmodels": "statsmodels/statsmodels",
    "sympy": "sympy/sympy",
    "tornado": "tornadoweb/tornado",
}
"""`repo_name` in the set -> `owner/name` on GitHub."""
TEST_FOLDER = "r2e_tests"
"""Folder from which the set's own reader runs the tests."""
_MODE = re.compile(r"file mode (100644|100755|120000)")
_TEST_FILE = re.compile(r"[\w.-]+")


def convert_row(row: Row) -> Row:
    """Return the row in SWE-bench's fields; its base commit may be an expression such as `COMMIT^`.

    Raises:
        InputError: the repository is not known, or a changed file has no content.
    """
    repo = REPOSITORIES.get(row["repo_name"], str(row["repo_name"]))
    if "/" not in repo:
        raise InputError(f"{repo!r} is not a repository of R2E-Gym")
    commit = parse_value(row["parsed_commit_content"], "parsed_commit_content")
    execution = parse_value(row.get("execution_result_content"), "execution_result_content") or {}
    patches: dict[bool, list[str]] = {False: [], True: []}
    for change in commit["file_diffs"]:
        path = change["header"]["file"]["path"]
        patches[is_test_path(path)].append("".join(_diff_file(path, change)))
    expected = parse_value(row.get("expected_output_json"), "expected_output_json") or {}
    fail_to_pass, pass_to_pass = _list_tests(expected, execution)
    return {
        "instance_id": f"{repo.replace('/', '__')}-{row['commit_hash'][:10]}",
        "repo": repo,
        "base_commit": commit["old_commit_hash"],
        "patch": "".join(patches[False]),
        "test_patch": "".join(patches[True]) or "".join(_add_own_tests(execution)),
        "problem_statement": _clean_statement(row["problem_statement"]),
        "FAIL_TO_PASS": fail_to_pass,
        "PASS_TO_PASS": pass_to_pass,
        "created_at": commit.get("commit_date"),
    }


def _clean_statement(statement: str) -> str:
    """Return the statement without the marks of the set's prompt."""
    return statement.replace("[ISSUE]", "").replace("[/ISSUE]", "").strip()


def _diff_file(path: str, change: Row) -> Iterator[str]:
    """Yield the lines of the patch of a file."""
    if change.get("is_binary_file"):
        raise InputError(f"{path} is binary, and the set does not have its content")
    old, new = ("" if text == "/dev/null" else text or "" for text in map(change.get, _CONTENTS))
    note = change["header"].get("misc_line") or ""
    mode = match[1] if (match := _MODE.search(note)) else "100644"
    is_new, is_deleted = note.startswith("new file"), note.startswith("deleted file")
    if old == new and not is_new and not is_deleted:
        return
    is_new, is_deleted = is_new or not (old or note), is_deleted or not (new or note)
    yield f"diff --git a/{path} b/{path}\n"
    if is_new:
        yield f"new file mode {mode}\n"
    if is_deleted:
        yield f"deleted file mode {mode}\n"
    names = ("/dev/null" if is_new else f"a/{path}", "/dev/null" if is_deleted else f"b/{path}")
    for line in difflib.unified_diff(_split_lines(old), _split_lines(new), *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


_CONTENTS = ("old_file_content", "new_file_content")


def _split_lines(text: str) -> list[str]:
    """Split a file as git does, at line feeds alone."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _add_own_tests(execution: Row) -> Iterator[str]:
    """Yield the patch that adds the set's own tests."""
    for name, code in zip(execution.get("test_file_names") or (), execution.get("test_file_codes") or (), strict=False):
        if _TEST_FILE.fullmatch(name) is None:
            raise InputError(f"{name[:100]!r} is not the name of a test file")
        header = {"header": {"misc_line": "new file mode 100644"}, "new_file_content": code}
        yield from _diff_file(f"{TEST_FOLDER}/{name}", header)


def _list_tests(expected: Mapping[str, Any], execution: Row) -> tuple[list[str], list[str]]:
    """Return the tests that the change repairs, and those that pass before and after it.

    Args:
        expected: test -> status after the change.
        execution: execution that has the log of the run before the change; without a log no list is claimed.
    """
    log = execution.get("old_commit_res_stdout")
    if not isinstance(log, str):
        return [], []
    before = _parse_log(log)
    passing = [_clean_name(name) for name, status in expected.items() if status == "PASSED"]
    kept = {name for name in passing if before.get(name) == "PASSED"}
    return sorted({name for name in passing if name} - kept), sorted(kept)


def _parse_log(log: str) -> dict[str, str]:
    """Return name -> status from the short summary of pytest's log."""
    statuses = {}
    for line in log.partition("short test summary info")[2].splitlines():
        status, _, test = strip_decoration(line).partition(" ")
        if status in ("PASSED", "FAILED", "ERROR") and "::" in test:
            statuses[_clean_name(".".join(test.split("::")[1:]))] = status
    return statuses


def _clean_name(name: str) -> str:
    """Return a test's name without colours and message."""
    return strip_decoration(name).partition(" - ")[0]
