"""Lines of makefile recipes that run programs of the tree are tests, each with the exit status of another process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluation.reports import converter, junit
from guest.harness.reports.main import convert_report


class RecipeRun:
    """A tree and the folder of its report; `run` does what make does with a line of a recipe."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.out, self.tree = folder / "out", folder / "tree"
        self.out.mkdir()
        self.shell = self.out / "recipe_shell.py"
        self.shell.write_text(converter.read_asset("recipe_shell.py"), encoding="utf-8")
        for name, text in files.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)

    def run(self, line: str, target: str = "test", folder: str = ".") -> int:
        """Return the exit status for make."""
        words = [f"--root={self.tree}", f"--target={target}", "-c", line]
        command = [sys.executable, "-I", "-S", "-B", str(self.shell), *words]
        return subprocess.run(command, cwd=self.tree / folder, check=False, capture_output=True).returncode

    def rows(self) -> list[dict[str, Any]]:
        """Return what was recorded."""
        path = self.out / "recipes.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def results(self) -> dict[str, str]:
        """Return id -> status of the converted report; `--` is a file that was not collected."""
        report = junit.parse_junit(convert_report("make", str(self.out), str(self.tree)), [])
        tests = {test: outcome.status.value for test, outcome in report.outcomes.items()}
        return tests | dict.fromkeys(report.uncollected, "--")


PASSES, FAILS = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 3\n"


def test_the_exit_status_of_a_line_that_runs_a_program_is_a_test_and_a_failure_does_not_end_the_recipe(
    tmp_path: Path,
) -> None:
    recipe = RecipeRun(tmp_path, {"bin/good": PASSES, "bin/bad": FAILS, "tests/good.c": "", "src/bad.c": "int a;"})
    assert recipe.run("X=1 ./bin/good > log.txt 2>&1") == 0
    assert recipe.run("cd bin && ./bad") == 0
    assert recipe.results() == {
        "tests/good.c::X=1 ./bin/good > log.txt 2>&1": "passed",
        "src/bad.c::cd bin && ./bad": "failed",
    }


def test_a_loop_over_programs_is_a_test_for_each_word_and_runs_all_of_them(tmp_path: Path) -> None:
    files = {"t/one": PASSES, "t/two": FAILS, "t/three": PASSES, "t/one.c": "", "t/two.c": "", "t/three.c": ""}
    recipe = RecipeRun(tmp_path, files)
    line = "fail=0; for t in t/one t/two t/three; do ./$t || fail=1; done; exit $fail"
    assert recipe.run(line) == 0
    assert recipe.results() == {"t/one.c::t/one": "passed", "t/two.c::t/two": "failed", "t/three.c::t/three": "passed"}


def test_a_loop_that_stops_at_the_first_failure_still_runs_the_later_programs(tmp_path: Path) -> None:
    recipe = RecipeRun(tmp_path, {"a.sh": FAILS, "b.sh": PASSES})
    recipe.run("for t in *.sh; do echo $t; sh ${t} || exit 1; done")
    assert recipe.results() == {"a.sh::a.sh": "failed", "b.sh::b.sh": "passed"}


def test_a_test_belongs_to_the_test_source_its_program_is_linked_from(tmp_path: Path) -> None:
    recipe = RecipeRun(tmp_path, {"run": PASSES, "lib.c": "", "check/all_tests.c": "", "Makefile": ""})
    recipe.run("true gcc -c -o check/all_tests.o check/all_tests.c", target="check/all_tests.o")
    recipe.run("true gcc -o run lib.o check/all_tests.o", target="run")
    recipe.run("./run")
    assert recipe.results() == {"check/all_tests.c::./run": "passed"}


def test_test_sources_that_cannot_be_compiled_or_linked_are_not_collected(tmp_path: Path) -> None:
    recipe = RecipeRun(tmp_path, {"tests/test_a.c": "", "lib.c": "", "ok.sh": PASSES})
    assert recipe.run("false cc -o a tests/test_a.c lib.c", target="a") == 1
    recipe.run("sh ok.sh")
    assert recipe.results() == {"ok.sh::sh ok.sh": "passed", "tests/test_a.c": "--"}


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("./generate > table.h", "table.h"),  # makes a source
        ("make -C tests", "test"),
        ("cp generate copy", "test"),
        ("./configure --quiet", "test"),
        ("./missing", "test"),
        ("/bin/true", "test"),
    ],
)
def test_a_line_that_runs_no_test_is_not_recorded(line: str, target: str, tmp_path: Path) -> None:
    recipe = RecipeRun(tmp_path, {"generate": PASSES, "configure": PASSES, "tests/Makefile": "all:\n"})
    recipe.run(line, target)
    assert [row for row in recipe.rows() if "test" in row] == []


def test_a_shell_function_of_the_makefile_and_a_script_run_by_its_shell_are_not_tests(tmp_path: Path) -> None:
    recipe = RecipeRun(tmp_path, {"version.sh": "echo 1.2\n"})
    command = [sys.executable, "-I", "-S", "-B", str(recipe.shell)]
    for words in ([f"--root={recipe.tree}", "--target=", "-c", "sh version.sh"], ["version.sh"]):
        run = subprocess.run([*command, *words], cwd=recipe.tree, check=True, capture_output=True)
        assert run.stdout == b"1.2\n"
    assert recipe.rows() == []


def test_a_compared_output_is_a_test_of_its_makefile(tmp_path: Path) -> None:
    recipe = RecipeRun(tmp_path, {"a.out": "1\n", "a.expected": "2\n", "Makefile": ""})
    assert recipe.run("diff a.out a.expected") == 0
    assert recipe.results() == {"Makefile::diff a.out a.expected": "failed"}
