"""`scripts/cli-reference` writes the page of the commands, and notices one that is old."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core import errors
from mergemill.cli.exit_codes import EXIT_CODES

ROOT = Path(__file__).parents[2]
PAGE = "docs/reference/cli.md"


def run_script(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "cli-reference"), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree whose packages and guide are those of this one, with a page of its own."""
    for name in ("core", "mergemill", "taskdb", "languages", "backends", "guest", "docs/guide", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("scripts/cli-reference", PAGE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def test_the_page_of_this_tree_is_what_the_script_writes() -> None:
    done = run_script(ROOT, "--check")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_an_old_page_is_named_and_written(copy: Path) -> None:
    page = copy / PAGE
    page.write_text(page.read_text().replace("--workers", "--labourers"))
    done = run_script(copy, "--check")
    assert (done.returncode, done.stdout) == (1, f"{PAGE} is old: run scripts/cli-reference\n"), done.stderr
    assert "--labourers" in page.read_text()
    assert run_script(copy).stdout == f"wrote {PAGE}\n"
    assert page.read_text() == (ROOT / PAGE).read_text()


def test_every_exit_code_of_an_error_has_a_meaning() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.MergemillError)
    ]
    assert {kind.exit_code for kind in kinds} <= EXIT_CODES.keys()
