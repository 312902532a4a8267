"""The check of names and prose finds what it forbids, names the replacement, and lets listed exceptions through."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "vocabulary"


def run_check(root: Path, exceptions: str = "", *options: str) -> subprocess.CompletedProcess[str]:
    listed = root / "exceptions.toml"
    listed.write_text(exceptions)
    command = [sys.executable, SCRIPT, "--root", root, "--exceptions", listed, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("box_count = 1\n", 1, "'box' is not a word of the glossary: write environment or container"),
        ('x = 1\ny = "the twin failed"\n', 2, "write sabotaged test, negative control"),
        ('class MendedBuild:\n    """A build."""\n', 1, "write repair"),
        ('def run():\n    """Say whether it holds."""\n', 2, "code is not a person"),
        ("x = 1  # what the engine told us\n", 1, "code is not a person"),
        ("def taken(x):\n    return x\n", 1, "taken: a function's name is a verb phrase"),
        ("def _settled_runs(x):\n    return x\n", 1, "_settled_runs: a function's name is a verb phrase"),
        ("from mergemill import cli\n", 1, "imports mergemill, above it"),
    ],
)
def test_each_rule_names_the_place_and_what_to_write(tmp_path: Path, text: str, line: int, message: str) -> None:
    write(tmp_path, taskdb__store=text)
    done = run_check(tmp_path)
    assert done.returncode == 1
    assert f"taskdb/store.py:{line}: " in done.stdout
    assert message in done.stdout


def test_a_class_name_stands_once_in_the_project(tmp_path: Path) -> None:
    write(tmp_path, miner__a="class Page:\n    pass\n", languages__b="class Page:\n    pass\n")
    done = run_check(tmp_path)
    assert done.returncode == 1
    assert "miner/a.py:1: class Page also stands in languages/b.py" in done.stdout
    write(tmp_path, miner__a="class Reason:\n    pass\n", languages__b="class Reason:\n    pass\n")
    assert run_check(tmp_path).returncode == 0


def test_plain_english_passes(tmp_path: Path) -> None:
    text = (
        '"""Select tests."""\n\n\ndef select_tests(found):\n    """Return the tests that pass."""\n    return found\n'
    )
    write(tmp_path, verifiers__lists=text)
    done = run_check(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_an_exception_needs_a_reason_and_a_use(tmp_path: Path) -> None:
    write(tmp_path, taskdb__store="box = 1\n")
    assert (
        run_check(tmp_path, '[banned-word]\n"taskdb/store.py:box" = "the name of a column of SQLite"\n').returncode == 0
    )
    assert "gives no reason" in run_check(tmp_path, '[banned-word]\n"taskdb/store.py:box" = ""\n').stdout
    unused = run_check(tmp_path, '[banned-word]\n"taskdb/store.py:box" = "x"\n"taskdb/old.py:box" = "gone"\n')
    assert unused.returncode == 1
    assert "nothing needs the exception taskdb/old.py:box" in unused.stdout


def test_measures_are_rates_of_the_tree(tmp_path: Path) -> None:
    write(tmp_path, taskdb__store='"""It says one word in ten thousand."""\n' + "x = 1\n" * 4)
    done = run_check(tmp_path, "", "--measure")
    assert done.returncode == 0
    rates = {line[:45].strip(): line[45:].strip() for line in done.stdout.splitlines()}
    assert rates["words"] == "11"
    assert rates["say, said per 10,000 words"] == "909.1"
    assert rates["docstrings with say, tell, hear, ask or mean"] == "1 of 1"


RATES = """
\"\"\"Read reports.\"\"\"


def read(path, model):
    \"\"\"Read the report that the model wrote, and return its tests, of which a report of a run has several.

    Args:
        path: path of the report.
        model: name of the model that wrote it.
    \"\"\"
    for line in path.open():
        yield line
"""


@pytest.mark.parametrize(
    ("rate", "limit", "old", "new"),
    [
        ("variables one, found per 1,000 names", 3, "line", "one"),
        ("variables one, found per 1,000 names", 3, "model):", "found):"),
        ("one(s) per 10,000 words of docstrings", 30, "a report of a run", "the newer ones"),
        ("is no N per 10,000 words of docstrings", 3, "of which", "is no test; of which"),
        ("what per 10,000 words of docstrings", 5, "the report that", "what"),
        ("percent of arguments that are fragments", 0, "name of the model that", "that"),
        ("percent of arguments that are fragments", 0, "path of the", "returns the"),
    ],
)
def test_a_rate_beyond_its_limit_is_a_finding(tmp_path: Path, rate: str, limit: float, old: str, new: str) -> None:
    limits = f'[limits]\n"{rate}" = {limit}\n'
    write(tmp_path, taskdb__reports=RATES)
    done = run_check(tmp_path, limits)
    assert (done.returncode, done.stdout) == (0, "")
    write(tmp_path, taskdb__reports=RATES.replace(old, new))
    done = run_check(tmp_path, limits)
    assert done.returncode == 1
    assert f"exceptions.toml: {rate}: " in done.stdout
    assert f"at most {limit} [limits]" in done.stdout


def test_variables_of_tests_count_and_those_of_embedded_files_do_not(tmp_path: Path) -> None:
    limits = '[limits]\n"variables one, found per 1,000 names" = 3\n'
    write(tmp_path, guest__harness__reports="one = 1\n", worlds__examples__depot="found = 1\n")
    assert run_check(tmp_path, limits).returncode == 0
    write(tmp_path, tests__test_reports="one = 1\n")
    assert run_check(tmp_path, limits).returncode == 1


def test_long_files_need_comments_that_are_no_notes_to_tools(tmp_path: Path) -> None:
    limits = '[limits]\n"comments per 100 lines of long files" = 1\n'
    write(tmp_path, taskdb__short="x = 1\n" * 200)
    assert run_check(tmp_path, limits).returncode == 0
    write(tmp_path, taskdb__long="x = 1\n" * 199 + "# noqa: E501\n# ------ rules\nx = 2  # of a line\n")
    assert "0.0, at least 1" in run_check(tmp_path, limits).stdout
    write(tmp_path, taskdb__long="x = 1\n" * 199 + "# Servers reject more.\n# They answer 413,\n# not 400.\n")
    assert run_check(tmp_path, limits).returncode == 0


def test_a_limit_of_no_rate_is_a_finding(tmp_path: Path) -> None:
    assert "there is no rate 'ones'" in run_check(tmp_path, '[limits]\n"ones" = 3\n').stdout
