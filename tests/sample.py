"""A small real project with a history, for examples, builders' and end-to-end tests.

`python -m tests.sample FOLDER` makes it, for readers who run the examples of the documentation.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.helpers import PackedRepo, TinyRepo

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "greet"
version = "1.0"
requires-python = ">=3.9"
license = {text = "MIT"}

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools]
packages = ["greet"]
"""
LICENSE = """\
MIT License

Copyright (c) 2024 Ada

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT.
"""
ALIKE = {"MERGEMILL_MAX_PATCH_SIMILARITY": "1", "MERGEMILL_MAX_STATEMENT_SIMILARITY": "1"}
"""Settings with which samples in several repositories do not count as copies of each other."""
GREET = 'def greet(name):\n    """A greeting for `name`."""\n    return "Hello " + name\n'
GREET_POLITE = GREET.replace('return "Hello " + name', 'return "Hello, " + name.strip()')
COUNT = "def count(words):\n    return len(words.split(' '))\n"
COUNT_RIGHT = COUNT.replace("split(' ')", "split()")
TEST_GREET = 'from greet import greet\n\n\ndef test_it_says_hello():\n    assert greet("Ada").startswith("Hello")\n'
TEST_POLITE = TEST_GREET + '\n\ndef test_it_is_polite():\n    assert greet(" Ada ") == "Hello, Ada"\n'
TEST_COUNT = 'from greet.words import count\n\n\ndef test_two_words():\n    assert count("a b") == 2\n'
TEST_COUNT_RIGHT = TEST_COUNT + '\n\ndef test_wide_gaps():\n    assert count(" a   b ") == 2\n'
BASE: dict[str, str | bytes | None] = {
    "pyproject.toml": PYPROJECT,
    "LICENSE": LICENSE,
    "README.md": "# greet\n",
    "greet/__init__.py": GREET,
    "greet/words.py": COUNT,
    "tests/test_greet.py": TEST_GREET,
    "tests/test_words.py": TEST_COUNT,
}
"""The project before its first change: two tests that pass."""


def describe_project(package: str) -> str:
    """Return the settings of a project with another package.

    Its own name is that of the sample, on which the layer with the dependencies depends: both have the same.
    """
    return PYPROJECT.replace('packages = ["greet"]', f'packages = ["{package}"]')


_PACKED: list[PackedRepo] = []
"""The sample, once a process has made it."""


def _merge_pull_request(repo: TinyRepo, number: int, title: str, files: dict[str, str]) -> None:
    repo.git("checkout", "-q", "-b", f"change-{number}")
    repo.commit(title, files)
    repo.git("checkout", "-q", "main")
    repo.minute += 1
    repo.git("merge", "-q", "--no-ff", "-m", f"Merge pull request #{number} from ada/change-{number}\n\n{title}", "-")


def make_sample(path: Path, more: dict[str, str | bytes | None] | None = None) -> TinyRepo:
    """Create a repository `greet` at `path` with three merged pull requests, two of which are bug fixes with tests.

    `more`: further initial files, which give the sample its own images.
    """
    if not more and _PACKED:
        return _PACKED[0].unpack(path)
    repo = TinyRepo(path)
    repo.commit("Begin", BASE | (more or {}))
    polite = "Greetings keep stray blanks\n\ngreet(' Ada ') gives 'Hello  Ada ', it should be 'Hello, Ada'."
    _merge_pull_request(repo, 1, polite, {"greet/__init__.py": GREET_POLITE, "tests/test_greet.py": TEST_POLITE})
    _merge_pull_request(repo, 2, "Explain the package", {"README.md": "# greet\n\nSays hello.\n"})
    gaps = "Words are miscounted\n\ncount(' a   b ') gives 6, it should be 2: a run of blanks is one gap."
    _merge_pull_request(repo, 3, gaps, {"greet/words.py": COUNT_RIGHT, "tests/test_words.py": TEST_COUNT_RIGHT})
    if not more:
        _PACKED.append(repo.pack())
    return repo


def main() -> None:
    """Make the sample in the folder that the command line names, unless it is there already."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.sample FOLDER")
    folder = Path(sys.argv[1])
    if (folder / ".git").exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            sys.exit(f"{folder} has files already: name another folder")
        make_sample(folder)
    except OSError as error:
        sys.exit(f"cannot make {folder}: {error.strerror}")


if __name__ == "__main__":
    main()
