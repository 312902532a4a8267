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
