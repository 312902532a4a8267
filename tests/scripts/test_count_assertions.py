"""The count of assertions, and the comparison of two trees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "count-assertions"
TEXT = """
import pytest

def check(text):
    \"\"\"assert nothing\"\"\"
    assert text, "assert"

def test(case, mock):
    with pytest.raises(ValueError), pytest.warns(UserWarning):
        check("assert 1")
    pytest.skip("no")
    if case:
        pytest.fail("never")
    mock.assert_called_once()
    case.assertEqual(1, 1)
    assert_close(1, 1)
"""


def count(root: Path, *options: str | Path, code: int = 0) -> dict[str, list[str]]:
    """Return folder -> the numbers that are printed for it."""
    command = [sys.executable, SCRIPT, "--root", root, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return {line.split()[-1]: line.split()[:-1] for line in done.stdout.splitlines()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "before", web=TEXT)


def make_tree(root: Path, **files: str) -> Path:
    for folder, text in files.items():
        (root / "tests" / folder).mkdir(parents=True)
        (root / "tests" / folder / "test_it.py").write_text(text)
    (root / "tests" / "cli.py").write_text("assert True\n")
    return root


def test_assertions_are_counted_by_folder(tree: Path) -> None:
    assert count(tree) == {"tests": ["1"], "tests/web": ["7"], "total": ["8"]}


def test_assertions_may_be_moved_but_not_lost(tree: Path, tmp_path: Path) -> None:
    moved = make_tree(tmp_path / "moved", web="", api=TEXT)
    assert count(moved, "--before", tree) == {
        "tests": ["1", "1", "+0"],
        "tests/api": ["0", "7", "+7"],
        "tests/web": ["7", "0", "-7"],
        "total": ["8", "8", "+0"],
    }
    fewer = make_tree(tmp_path / "fewer", web=TEXT.replace('pytest.fail("never")', "pass"))
    assert count(fewer, "--before", tree, code=1)["total"] == ["8", "7", "-1"]
    assert count(tree, "--before", fewer)["total"] == ["7", "8", "+1"]


def test_a_tree_without_tests_is_an_error(tree: Path, tmp_path: Path) -> None:
    assert count(tree, "--before", tmp_path / "nowhere", code=2) == {}
