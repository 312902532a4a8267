"""The examples of the documentation are run, page by page, in the order they stand there.

In a ```console block each line that begins with `$ ` is a command; one that ends with `# exit N` must exit with N, the
others with 0. A page's commands share a folder `ada` with a sample repository `greet`, whose changes therefore have
names such as `ada__greet-3`. Pages whose commands need an engine carry `<!-- needs: docker -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sample import make_sample

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
NEEDS_DOCKER = "<!-- needs: docker -->"


def commands(page: Path) -> list[tuple[str, int]]:
    """The page's commands with the exit code each must have."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            command, _, comment = line.partition("  # exit ")
            found.append((command, int(comment or 0)))
    return found


def run_page(page: Path, folder: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    for command, code in commands(page):
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{page.name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("page", [p for p in PAGES if NEEDS_DOCKER not in p.read_text()], ids=lambda p: p.name)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada" / "greet")
    run_page(page, tmp_path / "ada")


@pytest.mark.docker
@pytest.mark.parametrize("page", [p for p in PAGES if NEEDS_DOCKER in p.read_text()], ids=lambda p: p.name)
def test_the_examples_of_a_page_that_needs_docker_run(page: Path, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada" / "greet")
    run_page(page, tmp_path / "ada")
