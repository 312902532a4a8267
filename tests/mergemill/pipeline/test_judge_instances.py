"""`mergemill judge instances:FILE`: published tasks without clone, engine or database."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mergemill.pipeline.instances import COMPLETION_FIELDS
from tests.cli import run_mergemill
from tests.verifiers.judge.test_rules import LOOKS, RAISES


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    fields = {
        "instance_id": f"ada__greet-{number}",
        "repo": "ada/greet",
        "base_commit": "b" * 40,
        "patch": RAISES,
        "test_patch": LOOKS,
        "problem_statement": "It greets nobody when it should refuse.",
        "hints_text": "",
        "FAIL_TO_PASS": '["tests/test_greet.py::test_new"]',
        "PASS_TO_PASS": [],
    }
    return fields | changes


MULTI = {
    "org": "ada",
    "repo": "greet",
    "number": 5,
    "instance_id": "ada__greet-5",
    "title": "Refuse",
    "body": "x",
    "base": {"sha": "b" * 40},
    "resolved_issues": [{"number": 4, "title": "Nobody", "body": "is greeted"}],
    "fix_patch": RAISES,
    "test_patch": LOOKS,
    "f2p_tests": {"test_new": {}},
    "p2p_tests": {},
}


def write_rows(folder: Path, *rows: Any, name: str = "tasks.jsonl") -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in rows)
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.jsonl.gz"])
def test_each_task_is_printed_with_probabilities_and_findings(tmp_path: Path, name: str) -> None:
    done = run_mergemill("judge", f"instances:{write_rows(tmp_path, row(), MULTI, name=name)}", "--json", cwd=tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    single, multi = done.lines
    assert list(single) == ["instance_id", "underspecified", "unfair_tests", "findings", *COMPLETION_FIELDS]
    assert single["instance_id"] == "ada__greet-1"
    assert all(0 < single[label] < 1 for label in ("underspecified", "unfair_tests"))
    assert single["made_by"] == "rules"
    assert "must match the regular expression `nobody of the name .* is here`" in single["addition"]
    assert single["before"] == {label: single[label] for label in ("underspecified", "unfair_tests")}
    assert single["after"]["unfair_tests"] < single["before"]["unfair_tests"]
    finding = single["findings"][0]
    assert list(finding) == ["rule", "quote", "detail"]
    assert (finding["rule"], finding["quote"]) == ("message-not-stated", "nobody of the name .* is here")
    assert (multi["instance_id"], multi["findings"][1]["rule"]) == ("ada__greet-5", "message-not-stated")
    assert not (tmp_path / "mergemill.db").exists()


def test_a_statement_that_lacks_no_message_has_no_addition(tmp_path: Path) -> None:
    stated = row(problem_statement="It should raise `nobody of the name X is here`.")
    (verdict,) = run_mergemill("judge", f"instances:{write_rows(tmp_path, stated)}", "--json", cwd=tmp_path).lines
    assert {name: verdict[name] for name in COMPLETION_FIELDS} == {
        "addition": "",
        "made_by": None,
        "rejected": [],
        "before": None,
        "after": None,
    }


def test_a_malformed_line_is_reported_and_the_others_are_judged(tmp_path: Path) -> None:
    rows = [row(), "{", row(2, patch=7), row(3, patch="no patch", test_patch=""), row(), row(4)]
    done = run_mergemill("judge", f"instances:{write_rows(tmp_path, *rows)}", "--json", cwd=tmp_path)
    assert done.exit_code == 3
    assert [line["instance_id"] for line in done.lines] == ["ada__greet-1", "ada__greet-3", "ada__greet-4"]
    message = done.stderr.strip().splitlines()
    assert [line.split("tasks.jsonl:")[1].split(":")[0] for line in message] == ["2", "3", "5"]
    assert "Traceback" not in done.stderr


def test_tasks_are_selected_and_printed_as_a_table(tmp_path: Path) -> None:
    source = f"instances:{write_rows(tmp_path, *(row(number) for number in range(1, 6)))}"
    some = run_mergemill(
        "judge", source, "--only", "ada__greet-2,ada__greet-3,ada__greet-4", "--limit", "2", cwd=tmp_path
    )
    assert some.exit_code == 0
    assert [line.split()[0] for line in some.stdout.splitlines()] == ["instance_id", "ada__greet-2", "ada__greet-3"]
    assert "message-not-stated" in some.stdout


def test_the_table_has_no_probability_without_a_finding(tmp_path: Path) -> None:
    plain_test = (
        "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1,2 @@\n import greet\n+    assert greet.greet()\n"
    )
    stated = row(problem_statement="`greet` greets nobody when it should refuse.", test_patch=plain_test)
    source = f"instances:{write_rows(tmp_path, stated, row(2))}"
    header, plain, quoted = run_mergemill("judge", source, cwd=tmp_path).stdout.splitlines()
    assert header.split() == ["instance_id", "findings", "underspecified", "unfair_tests"]
    assert plain.split() == ["ada__greet-1", "-", "-", "-"]
    assert all(float(number) > 0 for number in quoted.split()[-2:])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["instances:none.jsonl"], 3, "cannot read none.jsonl"),
        (["instances:none.jsonl", "git:greet"], 2, "is judged from the file"),
        (["git:greet"], 3, "there is no database"),
    ],
)
def test_an_unusable_file_is_reported_in_one_line(tmp_path: Path, words: list[str], code: int, message: str) -> None:
    done = run_mergemill("judge", *words, cwd=tmp_path)
    assert done.exit_code == code
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_archive_is_reported_in_one_line(tmp_path: Path) -> None:
    path = write_rows(tmp_path, row(), name="tasks.jsonl.gz")
    path.write_bytes(path.read_bytes()[:60])
    done = run_mergemill("judge", f"instances:{path}", "--json", cwd=tmp_path)
    assert (done.exit_code, len(done.stderr.splitlines())) == (3, 1)
