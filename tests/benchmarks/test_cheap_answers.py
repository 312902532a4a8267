"""Cheap answers to the tasks of a set: their content, and that they are the same on each run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import cheap_answers
from mergemill.bench.sets import write_set
from tests.mergemill.bench.test_export import make_set
from verifiers.probes import make_patch


def test_every_ten_lines_of_a_review_are_listed_once() -> None:
    findings = cheap_answers.list_everything({"b.py": "x\n" * 21, "a.py": "x", "empty.py": ""})
    places = [(finding["file"], finding["first_line"], finding["last_line"]) for finding in findings]
    assert places == [("a.py", 1, 1), ("b.py", 1, 10), ("b.py", 11, 20), ("b.py", 21, 21)]


def test_a_cheap_patch_deletes_tests_and_adds_a_file() -> None:
    base = {"tests/test_a.py": b"def test_a(): ...\n"}
    changes = cheap_answers.make_cheap_changes("patch", {**base, "tests/test_new.py": None})
    assert changes == {"notes.txt": b"Fixed.\n", "tests/test_a.py": None}
    patch = make_patch(changes, base).decode()
    assert "deleted file mode" in patch
    assert "+Fixed." in patch
    assert make_patch(changes, base).decode() == patch


@pytest.mark.parametrize(
    ("path", "copy"),
    [
        ("tests/test_a.py", "tests/test_more_a.py"),
        ("a_test.go", "more_a_test.go"),
        ("src/test/TestA.java", "src/test/Test_moreA.java"),
        ("test/a.test.ts", "test/more_a.test.ts"),
    ],
)
def test_cheap_tests_are_the_tests_once_more(path: str, copy: str) -> None:
    assert cheap_answers.make_cheap_changes("tests", {path: b"x\n", "test/new.ts": None}) == {copy: b"x\n"}
    assert cheap_answers.make_cheap_changes("tests", {path: None}) == {copy: b""}


def test_each_subject_of_a_set_has_two_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, bench_set, subjects = make_set(tmp_path)
    write_set(bench_set, tmp_path / "set.json")
    database = settings.storage.db.removeprefix("sqlite:///")
    texts = []
    for name in ("first", "second"):
        out = tmp_path / f"{name}.jsonl"
        words = [str(tmp_path / "set.json"), "--database", database, "--out", str(out)]
        monkeypatch.setattr(sys, "argv", ["cheap_answers", *words])
        assert cheap_answers.main() == 0
        texts.append(out.read_text())
    assert texts[0] == texts[1]
    assert f"{2 * len(subjects)} rows of {len(subjects)} tasks" in capsys.readouterr().out
    rows = [json.loads(line) for line in texts[0].splitlines()]
    assert [row["instance_id"] for row in rows[::2]] == sorted(subject.name for subject in subjects)
    assert [row["model_name_or_path"] for row in rows] == ["empty", "cheap"] * len(subjects)
    assert all(row["review"]["findings"] == [] for row in rows[::2])
    assert all(row["review"]["findings"] for row in rows[1::2])
