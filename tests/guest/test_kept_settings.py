"""Which changes of configuration may stay: those that no test runner can read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guest.harness import HARNESS_FOLDER
from tests.helpers import TinyRepo

PACKAGE = {"name": "till", "main": "index.js", "scripts": {"test": "mocha"}, "imports": {"#a": "./a.js"}}
PYPROJECT = """\
[project]
name = "till"

[tool.pytest.ini_options]
addopts = "-q"
"""
SETUP = "[metadata]\nname = till\n\n[tool:pytest]\naddopts = -q\ntestpaths = tests\n"


def package(**fields: object) -> str:
    return json.dumps({**PACKAGE, **fields})


BEFORE = {"package.json": package(), "pyproject.toml": PYPROJECT, "setup.cfg": SETUP, "pom.xml": "<project/>"}
STAYS = {
    "main module": ("package.json", package(main="src/index.js", version="2", type="module")),
    "dependencies": ("package.json", package(dependencies={"x": "1"}, devDependencies={})),
    "more imports": ("package.json", package(imports={"#a": "./a.js", "#b": "./b.js"})),
    "a package of another folder": ("lib/package.json", '{"type": "module"}'),
    "version": (
        "pyproject.toml",
        PYPROJECT.replace("[project]", '[build-system]\nrequires = ["a"]\n[project]\nversion = "2"'),
    ),
    "linter": ("pyproject.toml", PYPROJECT + "[tool.ruff]\nline-length = 99\n"),
    "own table": ("pyproject.toml", PYPROJECT + "[tool.till]\na = 1\n"),
    "form": ("pyproject.toml", PYPROJECT.replace("[tool.pytest.ini_options]\n", "[tool.pytest]\nini_options.")),
    "metadata": ("setup.cfg", SETUP.replace("name = till", "name = till\nversion = 2")),
    "options": ("setup.cfg", SETUP + "[options.package_data]\n* = *.txt\n[mypy-x.*]\na = 1\n"),
    "carriage returns": ("setup.cfg", SETUP.replace("\n", "\r\n")),
}
RESTORED = {
    "test script": ("package.json", package(scripts={"test": "true"})),
    "configuration of the runner": ("package.json", package(mocha={"require": "./evil.js"})),
    "name": ("package.json", package(name="mocha")),
    "another import": ("package.json", package(imports={"#a": "./evil.js"})),
    "browser": ("package.json", package(browser={"assert": "./evil.js"})),
    "twice": ("package.json", package()[:-1] + ', "scripts": {"test": "true"}, "scripts": {"test": "mocha"}}'),
    "no object": ("package.json", "[]"),
    "no JSON": ("package.json", "{"),
    "not UTF-8": ("package.json", b'{"main": "\xff"}'),
    "new name": ("lib/package.json", '{"name": "mocha", "type": "module"}'),
    "options of pytest": ("pyproject.toml", PYPROJECT.replace("-q", "-p evil")),
    "one more option": ("pyproject.toml", PYPROJECT + 'testpaths = "x"\n'),
    "options of pytest by dots": ("pyproject.toml", 'tool.pytest.ini_options.addopts = "-p evil"\n' + PYPROJECT[:24]),
    "a comment that hides options": (
        "pyproject.toml",
        PYPROJECT.replace("[project]\n", '[project]\nx = """\n') + '"""\n',
    ),
    "options removed": ("pyproject.toml", '[project]\nname = "till"\n'),
    "another type": ("pyproject.toml", PYPROJECT.replace('"-q"', "1")),
    "another tool": ("pyproject.toml", PYPROJECT + "[tool.coverage.run]\nplugins = ['evil']\n"),
    "a renamed project": ("pyproject.toml", PYPROJECT.replace('"till"', '"coverage"') + "[tool.coverage]\na = 1\n"),
    "new pyproject.toml": ("lib/pyproject.toml", '[project]\nname = "x"\n'),
    "options of pytest in setup.cfg": ("setup.cfg", SETUP.replace("-q", "-p evil")),
    "an option in another section": ("setup.cfg", SETUP.replace("testpaths", "[metadata]\ntestpaths")),
    "an option more": ("setup.cfg", SETUP.replace("[tool:pytest]", "[tool:pytest]\npython_files = x.py")),
    "an indented section": ("setup.cfg", SETUP + " [metadata]\nplugins = evil\n"),
    "a section after a separator": ("setup.cfg", SETUP.replace("till", "till\x0b[tool:pytest]\x0baddopts = -p evil")),
    "a section that is none": ("setup.cfg", SETUP + "[metadata\nplugins = evil\n"),
    "a prefix of a section": ("setup.cfg", SETUP + "[metadata]]\na = 1\n"),
    "Maven": ("pom.xml", "<project> </project>"),
    "too large": ("package.json", package(description="x" * 1_000_000)),
}


def list_kept(folder: Path, *paths: str) -> list[str]:
    """Return the paths that the program prints."""
    process = subprocess.run(
        [sys.executable, "-I", "-S", HARNESS_FOLDER / "kept_settings.py", "git"],
        cwd=folder,
        input="".join(f"{path}\0" for path in paths).encode(),
        capture_output=True,
        check=True,
    )
    return process.stdout.decode().split("\0")[:-1]


@pytest.fixture
def repo(tmp_path: Path) -> TinyRepo:
    made = TinyRepo(tmp_path / "repo")
    made.commit("Begin", {**BEFORE, "lib/index.js": ""})
    return made


@pytest.mark.parametrize(("path", "content"), STAYS.values(), ids=STAYS)
def test_settings_of_no_runner_stay(path: str, content: str, repo: TinyRepo) -> None:
    repo.write({path: content})
    assert list_kept(repo.path, path) == [path]


@pytest.mark.parametrize(("path", "content"), RESTORED.values(), ids=RESTORED)
def test_settings_that_a_runner_may_read_do_not_stay(path: str, content: str | bytes, repo: TinyRepo) -> None:
    repo.write({path: content})
    assert list_kept(repo.path, path) == []


def test_links_pipes_and_absent_files_do_not_stay(repo: TinyRepo) -> None:
    for name in BEFORE:
        (repo.path / name).unlink()
    (repo.path / "other.json").write_text(package())
    (repo.path / "package.json").symlink_to("other.json")
    os.mkfifo(repo.path / "pyproject.toml")
    (repo.path / "linked").symlink_to("lib")
    (repo.path / "lib/package.json").write_text("{}")
    names = ["package.json", "pyproject.toml", "setup.cfg", "linked/package.json", "", "nowhere/package.json"]
    assert list_kept(repo.path, *names, "lib/package.json") == ["lib/package.json"]
