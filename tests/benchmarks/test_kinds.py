"""Wrong submissions of the benchmark of kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.git import run_git
from benchmarks.kinds import generate_wrong_submissions, remove_added_lines, summarise_values
from tests.helpers import TinyRepo

TEXT = "def count(words):\n    found = words.split(' ')\n    return len(found)\n"


def test_the_gold_patch_without_its_added_lines_applies(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "words")
    repo.commit("base", {"words.py": TEXT, "more.py": "x = 1\n"})
    (repo.path / "words.py").write_text(TEXT.replace("split(' ')", "split()"))
    (repo.path / "more.py").write_text("x = 1\ny = 2\n")
    patch = run_git("diff", "--no-ext-diff", cwd=repo.path)
    run_git("checkout", "-q", ".", cwd=repo.path)
    run_git("apply", "--unidiff-zero", cwd=repo.path, data=remove_added_lines(patch.decode()).encode())
    assert (repo.path / "words.py").read_text() == "def count(words):\n    return len(found)\n"
    assert (repo.path / "more.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("kind", ["bugfix", "injected", "review", "test-writing"])
def test_every_kind_has_three_wrong_submissions(kind: str) -> None:
    patch = "diff --git a/w.py b/w.py\n--- a/w.py\n+++ b/w.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    tests = patch.replace("w.py", "tests/test_w.py")
    oracle = {"defects": [{"path": "w.py", "first_line": 1, "last_line": 1}]}
    task = {"kind": kind, "patch": patch, "test_patch": tests, "language": "python", "oracle": oracle, "repo": "ada/w"}
    made = list(generate_wrong_submissions(task))
    assert len({content for _, _, content in made}) == 3
    for _, option, content in made:
        assert (option == "--review") == (kind == "review")
        if option == "--review":
            assert json.loads(content)["findings"]
        else:
            assert content.startswith("diff --git")


def test_values_are_summarised_by_kind_and_submission() -> None:
    assert summarise_values([("bugfix", "gold", 1.0), ("bugfix", "gold", None), ("bugfix", "gold", 0.5)]) == [
        ("bugfix", "gold", 3, 0.5, 1.0)
    ]
