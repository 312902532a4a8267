"""`mergemill judge instances:FILE`: published tasks without clone, engine or database."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import mergemill
from tests.verifiers.judge.test_rules import LOOKS, RAISES


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    fields = {
        "instance_id": f"ada__greet-{number}", "repo": "ada/greet", "base_commit": "b" * 40, "patch": RAISES,
        "test_patch": LOOKS, "problem_statement": "It greets nobody when it should refuse.", "hints_text": "",
        "FAIL_TO_PASS": '["tests/test_greet.py::test_new"]', "PASS_TO_PASS": [],
    }  # fmt: skip
    return fields | changes


MULTI = {
    "org": "ada", "repo": "greet", "number": 5, "instance_id": "ada__greet-5", "title": "Refuse", "body": "x",
    "base": {"sha": "b" * 40}, "resolved_issues": [{"number": 4, "title": "Nobody", "body": "is greeted"}],
    "fix_patch": RAISES, "test_patch": LOOKS, "f2p_tests": {"test_new": {}}, "p2p_tests": {},
}  # fmt: skip


def written(folder: Path, *rows: Any, name: str = "tasks.jsonl") -> Path:
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows)
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.jsonl.gz"])
def test_each_task_is_told_with_probabilities_and_findings(tmp_path: Path, name: str) -> None:
    done = mergemill("judge", f"instances:{written(tmp_path, row(), MULTI, name=name)}", "--json", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    one, multi = done.lines
    assert list(one) == ["instance_id", "underspecified", "unfair_tests", "findings"]
    assert one["instance_id"] == "ada__greet-1"
    assert all(0 < one[label] < 1 for label in ("underspecified", "unfair_tests"))
    finding = one["findings"][0]
    assert list(finding) == ["rule", "quote", "detail"]
    assert (finding["rule"], finding["quote"]) == ("message-not-stated", "nobody of the name .* is here")
    assert (multi["instance_id"], multi["findings"][1]["rule"]) == ("ada__greet-5", "message-not-stated")
    assert not (tmp_path / "mergemill.db").exists()


def test_a_bad_line_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    rows = [row(), "{", row(2, patch=7), row(3, patch="no patch", test_patch=""), row(), row(4)]
    done = mergemill("judge", f"instances:{written(tmp_path, *rows)}", "--json", cwd=tmp_path)
    assert done.code == 3
    assert [line["instance_id"] for line in done.lines] == ["ada__greet-1", "ada__greet-3", "ada__greet-4"]
    said = done.err.strip().splitlines()
    assert [line.split("tasks.jsonl:")[1].split(":")[0] for line in said] == ["2", "3", "5"]
    assert "Traceback" not in done.err


def test_tasks_are_chosen_and_shown_to_people(tmp_path: Path) -> None:
    source = f"instances:{written(tmp_path, *(row(number) for number in range(1, 6)))}"
    some = mergemill("judge", source, "--only", "ada__greet-2,ada__greet-3,ada__greet-4", "--limit", "2", cwd=tmp_path)
    assert some.code == 0
    assert [line.split()[0] for line in some.out.splitlines()] == ["instance_id", "ada__greet-2", "ada__greet-3"]
    assert "message-not-stated" in some.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["instances:none.jsonl"], 3, "cannot read none.jsonl"),
        (["instances:none.jsonl", "git:greet"], 2, "is judged from the file"),
        (["git:greet"], 3, "there is no database"),
    ],
)
def test_what_cannot_be_judged_is_told_in_a_line(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    done = mergemill("judge", *words, cwd=tmp_path)
    assert done.code == code
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_a_damaged_archive_is_told_in_a_line(tmp_path: Path) -> None:
    path = written(tmp_path, row(), name="tasks.jsonl.gz")
    path.write_bytes(path.read_bytes()[:60])
    done = mergemill("judge", f"instances:{path}", "--json", cwd=tmp_path)
    assert (done.code, len(done.err.splitlines())) == (3, 1)
