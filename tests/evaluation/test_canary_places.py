"""Canaries are among the arguments of a suite that is a list of files, and of runs of some files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evaluation.script.render import render_script
from taskdb.records import TestCommand


def list_arguments(
    folder: Path, framework: str, paths: tuple[str, ...], test: str, files: tuple[str, ...]
) -> list[str]:
    """Return the arguments of a test command: paths of the suite, a file with canaries next to it, files."""
    command = TestCommand(framework=framework, argv=(framework,), paths=paths)
    script = render_script(command, workdir="/testbed", test_patch=b"", files=files, canaries_beside=[test])
    start = script.index("files=()\n")
    choice = script[start : script.index("base64 -d" if "base64 -d" in script[start:] else "command=(", start)]
    (folder / "report").mkdir()
    (folder / "report" / "canaries").write_text("pass a_canary\n")
    for path in (*paths, *files):
        (folder / path).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["bash", "-c", f'report={folder}/report\n{choice}\nprintf "%s\\n" "${{arguments[@]}}"'],
        env={"PATH": os.environ["PATH"]},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("paths", "test", "files", "expected"),
    [
        (("test_a.py",), "test_a.py", (), ["test_a.py", "a_canary"]),
        (("test_a.py", "shop"), "shop/test_b.py", (), []),
        (("test_a.py", "shop/"), "shop/more/test_b.py", (), []),
        (("shop",), "shopping/test_b.py", (), ["shop", "a_canary"]),
        ((".",), "tests/test_a.py", (), []),
        ((), "test_a.py", (), []),
        (("test_a.py",), "test_a.py", ("test_b.py",), ["test_b.py", "a_canary"]),
    ],
)
def test_pytest_is_given_canaries_that_its_paths_do_not_have(
    tmp_path: Path, paths: tuple[str, ...], test: str, files: tuple[str, ...], expected: list[str]
) -> None:
    assert list_arguments(tmp_path, "pytest", paths, test, files) == expected


@pytest.mark.parametrize("framework", ["prove", "rspec", "busted", "minitest"])
def test_so_is_every_runner_that_is_given_paths(tmp_path: Path, framework: str) -> None:
    assert list_arguments(tmp_path, framework, ("one.t",), "one.t", ())[:2] == ["one.t", "a_canary"]
