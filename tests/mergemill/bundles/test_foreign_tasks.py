"""Rows of task sets of others, imported from files, then built and verified for real."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli import WITHOUT_CONTROLS, WITHOUT_REPAIR, CommandResult, run_mergemill
from tests.helpers import TinyRepo
from tests.sample import BASE

WORDS = ("one", "two", "three", "four", "five", "six", "seven")
"""A module `greet/WORD.py` each, whose function is wrong until its change."""
OLD_TEST = "from greet.{0} import value\n\n\ndef test_{0}_is_a_number():\n    assert value() is not None\n"
NEW_TEST = OLD_TEST + "\n\nclass TestValue:\n    def test_{0}(self):\n        assert value() == {1}\n"
STATEMENT = "value() of greet.{0} is wrong\n\nvalue() gives 0, it should be {1}, as the name of the module says."


class PublishedChanges:
    """A clone of ada/greet in the folder `clones`, and rows of its changes in the formats of several sets."""

    def __init__(self, folder: Path) -> None:
        self.repo = TinyRepo(folder / "clones" / "ada__greet")
        modules = {f"greet/{word}.py": "def value():\n    return 0\n" for word in WORDS}
        tests = {f"tests/test_{word}.py": OLD_TEST.format(word) for word in WORDS}
        self.repo.commit("Begin", BASE | modules | tests)
        self.commits = {word: self._fix(word, number) for number, word in enumerate(WORDS, 1)}

    def _fix(self, word: str, number: int) -> str:
        module = {f"greet/{word}.py": f"def value():\n    return {number}\n"}
        return self.repo.commit(f"Fix {word}", module | {f"tests/test_{word}.py": NEW_TEST.format(word, number)})

    def diff(self, word: str, path: str, *options: str) -> str:
        """Return the change of one folder."""
        return self.repo.git("diff", *options, f"{self.commits[word]}^", self.commits[word], "--", path) + "\n"

    def make_row(self, word: str, **fields: object) -> dict[str, Any]:
        """Return a row in SWE-bench's fields with true lists."""
        return {
            "instance_id": f"ada__greet-{word}",
            "repo": "ada/greet",
            "base_commit": self.repo.git("rev-parse", f"{self.commits[word]}^"),
            "patch": self.diff(word, "greet"),
            "test_patch": self.diff(word, "tests"),
            "problem_statement": STATEMENT.format(word, WORDS.index(word) + 1),
            "FAIL_TO_PASS": json.dumps([f"tests/test_{word}.py::TestValue::test_{word}"]),
            "PASS_TO_PASS": [f"tests/test_{word}.py::test_{word}_is_a_number"],
            "created_at": "2024-03-01T10:00:00Z",
            **fields,
        }

    def make_rebench_row(self, word: str) -> dict[str, Any]:
        """Return a row of SWE-rebench V2; names are those of a log, with colours."""
        tests = [f"\x1b[32mtests/test_{word}.py::TestValue::test_{word}\x1b[0m (12.5 ms)"]
        statement = {"problem_statement": "", "pr_description": STATEMENT.format(word, WORDS.index(word) + 1)}
        config = json.dumps({"test_cmd": "pytest -rA", "log_parser": "parse_log_pytest"})
        return self.make_row(word, FAIL_TO_PASS=tests, install_config=config, image_name="docker.io/x", **statement)

    def make_multi_row(self, word: str) -> dict[str, Any]:
        """Return a row of Multi-SWE-bench."""
        row = self.make_row(word)
        issue = {"number": 7, "title": row["problem_statement"].partition("\n")[0], "body": row["problem_statement"]}
        return {
            "org": "ada",
            "repo": "greet",
            "number": 7,
            "instance_id": row["instance_id"],
            "base": {"label": "ada:main", "ref": "main", "sha": row["base_commit"]},
            "title": "Fix it",
            "body": "",
            "resolved_issues": [issue],
            "fix_patch": row["patch"],
            "test_patch": row["test_patch"],
            "f2p_tests": {f"tests/test_{word}.py::TestValue::test_{word}": {"run": "NONE", "fix": "PASS"}},
            "p2p_tests": {f"tests/test_{word}.py::test_{word}_is_a_number": {"run": "PASS", "fix": "PASS"}},
        }

    def make_smith_row(self, word: str) -> dict[str, Any]:
        """Return a row of SWE-smith: the fix, reversed, is the bug."""
        row = self.make_row(word)
        return {
            "instance_id": f"ada__greet.{self.commits[word][:8]}.lm_rewrite__{word}",
            "repo": f"swesmith/ada__greet.{self.commits[word][:8]}",
            "patch": self.diff(word, "greet", "-R"),
            "FAIL_TO_PASS": json.loads(row["FAIL_TO_PASS"]),
            "PASS_TO_PASS": row["PASS_TO_PASS"],
            "image_name": "swebench/swesmith.x86_64.ada_1776_greet",
            "problem_statement": row["problem_statement"],
        }

    def make_gym_row(self, word: str) -> dict[str, Any]:
        """Return a row of R2E-Gym for the sources of a change alone, with a test of the set's own."""
        number, commit = WORDS.index(word) + 1, self.commits[word]
        module = {
            "header": {"file": {"path": f"greet/{word}.py"}, "misc_line": None},
            "is_binary_file": False,
            "old_file_content": "def value():\n    return 0\n",
            "new_file_content": f"def value():\n    return {number}\n",
        }
        before = f"FAILED r2e_tests/test_1.py::TestValue::test_{word} - assert 0 == {number}\n"
        before += f"PASSED r2e_tests/test_1.py::test_{word}_is_a_number\n"
        execution = {
            "test_file_names": ["test_1.py"],
            "test_file_codes": [NEW_TEST.format(word, number)],
            "old_commit_res_stdout": f"=== short test summary info ===\n{before}",
        }
        commit_content = {
            "file_diffs": [module],
            "old_commit_hash": f"{commit}^",
            "new_commit_hash": commit,
            "commit_message": "Fix it",
            "commit_date": "2024-03-01T10:00:00+00:00",
        }
        return {
            "repo_name": "ada/greet",
            "docker_image": f"namanjain12/greet_final:{commit}",
            "commit_hash": commit,
            "parsed_commit_content": json.dumps(commit_content),
            "execution_result_content": json.dumps(execution),
            "expected_output_json": json.dumps(
                {f"TestValue.test_{word}": "PASSED", f"test_{word}_is_a_number": "PASSED"}
            ),
            "problem_statement": f"[ISSUE]\n{STATEMENT.format(word, number)}\n[/ISSUE]",
        }

    def write_harbor_task(self, word: str, folder: Path) -> None:
        """Write a folder of Harbor's adapter for SWE-bench."""
        for part in ("solution", "tests", "environment"):
            (folder / part).mkdir(parents=True)
        row = self.make_row(word)
        (folder / "task.toml").write_text('version = "1.0"\n')
        (folder / "instruction.md").write_text(row["problem_statement"])
        (folder / "tests" / "config.json").write_text(json.dumps(row))


def import_set(folder: Path, format_name: str, *rows: Mapping[str, Any]) -> CommandResult:
    """Import rows, written as JSON lines; none: the folder `tasks`."""
    path = folder / (f"{format_name}.jsonl" if rows else "tasks")
    if rows:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run_mergemill("bundle", "import", str(path), "--format", format_name, "--clones", "clones", cwd=folder)


def run_imports(folder: Path) -> CommandResult:
    imports = f"instances:{folder}/mergemill-store/imports/tasks.jsonl"
    words = ("run", imports, "--clones", "clones", "--workers", "2", "--repeats", "1", "--json")
    return run_mergemill(*words, cwd=folder, **WITHOUT_CONTROLS, **WITHOUT_REPAIR)


def explain(folder: Path, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = run_mergemill("why", name, "--json", cwd=folder).json
    return shown


def check_task(folder: Path, name: str, test: str) -> None:
    """Check that an imported row became a certified task whose FAIL_TO_PASS is the row's."""
    shown = run_mergemill("tasks", "show", f"{name}.bugfix", "--json", cwd=folder).json
    assert (shown["FAIL_TO_PASS"], shown["certified"]) == ([test], True)
    assert shown["published"]["verdict"] == "exact", shown["published"]
    assert shown["published"]["pass_to_pass"] == {"missing": [], "extra": []}


@pytest.mark.docker
def test_foreign_rows_become_verified_tasks_and_wrong_claims_are_shown(tmp_path: Path) -> None:
    published = PublishedChanges(tmp_path)
    useless = "diff --git a/greet/two.py b/greet/two.py\n--- a/greet/two.py\n+++ b/greet/two.py\n"
    useless += "@@ -1,2 +1,2 @@\n def value():\n-    return 0\n+    return 0  # two\n"
    claim = json.dumps(["tests/test_three.py::test_three_is_a_number"])
    rows = [
        published.make_row("one"),
        published.make_row("two", patch=useless),
        published.make_row("three", FAIL_TO_PASS=claim, PASS_TO_PASS=[]),
    ]
    assert import_set(tmp_path, "swebench", *rows).exit_code == 0
    imported = import_set(tmp_path, "r2e-gym", published.make_gym_row("four"))
    assert imported.exit_code == 0, imported.stderr
    assert "--clones clones" in imported.stdout
    done = run_imports(tmp_path)
    assert done.exit_code == 0, done.stderr
    check_task(tmp_path, "ada__greet-one", "tests/test_one.py::TestValue::test_one")
    gym = f"ada__greet-{published.commits['four'][:10]}"
    check_task(tmp_path, gym, "r2e_tests/test_1.py::TestValue::test_four")
    wrong = explain(tmp_path, "ada__greet-two")
    assert [(event["stage"], event["reason"]) for event in wrong["events"] if not event["ok"]] == [
        ("verify", "gold-fails")
    ]
    assert wrong["published"]["verdict"] == "subset"
    claimed = explain(tmp_path, "ada__greet-three")["published"]
    assert claimed["verdict"] == "different"
    assert claimed["fail_to_pass"] == {
        "missing": ["tests/test_three.py::test_three_is_a_number"],
        "extra": ["tests/test_three.py::TestValue::test_three"],
    }


@pytest.mark.docker
@pytest.mark.slow
def test_rows_of_the_other_sets_become_verified_tasks(tmp_path: Path) -> None:
    published = PublishedChanges(tmp_path)
    assert import_set(tmp_path, "multi-swe-bench", published.make_multi_row("one")).exit_code == 0
    assert import_set(tmp_path, "swe-rebench", published.make_rebench_row("two")).exit_code == 0
    smith = published.make_smith_row("three")
    assert import_set(tmp_path, "swe-smith", smith).exit_code == 0
    published.write_harbor_task("four", tmp_path / "tasks" / "four")
    assert import_set(tmp_path, "harbor").exit_code == 0
    done = run_imports(tmp_path)
    assert done.exit_code == 0, done.stderr
    for word, name in (("one", "ada__greet-one"), ("two", "ada__greet-two"), ("four", "ada__greet-four")):
        check_task(tmp_path, name, f"tests/test_{word}.py::TestValue::test_{word}")
    shown = run_mergemill("tasks", "show", f"{smith['instance_id']}.bugfix", "--json", cwd=tmp_path).json
    assert shown["certified"]
    assert "tests/test_three.py::TestValue::test_three" in shown["FAIL_TO_PASS"]
    assert shown["published"]["fail_to_pass"]["missing"] == []
