"""Files of the examples: a small project, and what each example adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PYPROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "greet"
version = "1.0"
requires-python = ">=3.9"
license = {text = "MIT"}
dependencies = [DEPENDENCIES]
classifiers = [CLASSIFIERS]

[tool.setuptools]
packages = ["greet"]
"""
GREET = 'def greet(name):\n    return "Hello " + name\n'
TEST_GREET = 'import pytest\nfrom greet import greet\n\n\ndef test_greet():\n    assert greet("Ada") == "Hello Ada"\n'


@dataclass(frozen=True, kw_only=True)
class Example:
    """One repository with one change."""

    name: str
    item: int
    """1: the day of the packages; 2: requirements that contradict each other; 4: what the tests need around them."""
    cause: str
    base: Mapping[str, str]
    change: Mapping[str, str]
    expected: str = "verified"
    is_published: bool = False
    """Whether the change is a published row, which is dated by the opening of its pull request."""
    statement: str = field(
        default="The greeting lacks a part\n\nCalling the new function of the package gives an AttributeError, "
        "it should give the part of the greeting that its name says, as the documentation promises."
    )


def make_project(
    files: Mapping[str, str] | None = None, *, dependencies: str = "", classifiers: str = ""
) -> dict[str, str]:
    """Return the project before the change."""
    pyproject = PYPROJECT.replace("DEPENDENCIES", dependencies).replace("CLASSIFIERS", classifiers)
    mit = (
        "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
    )
    return {
        "pyproject.toml": pyproject,
        "LICENSE": mit,
        "README.md": "# greet\n",
        "greet/__init__.py": GREET,
        "tests/test_greet.py": TEST_GREET,
        **(files or {}),
    }


def make_change(source: str, test: str) -> dict[str, str]:
    """Return the change: a function `part` in a module of its own, and a test of it."""
    return {
        "greet/__init__.py": GREET + "\n\n" + source,
        "tests/test_change.py": "from greet import part\n\n\n" + test,
    }


_SIMPLE = make_change('def part():\n    return "Hello"\n', 'def test_change():\n    assert part() == "Hello"\n')
_TYPING = make_change(
    "def part():\n    from typing_extensions import TypeIs, deprecated\n\n    return [TypeIs, deprecated]\n",
    "def test_change():\n    assert len(part()) == 2\n",
)
_ATTRS = make_change(
    "def part():\n    import attrs\n    from typing_extensions import TypeIs\n\n    return [attrs.define, TypeIs]\n",
    "def test_change():\n    assert len(part()) == 2\n",
)
WORKFLOW = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
{settings}    steps:
      - uses: actions/checkout@v4
{lines}"""


def make_workflow(*lines: str, settings: str = "") -> dict[str, str]:
    """Return a workflow whose job runs these lines."""
    steps = "".join(f"      - run: {line}\n" for line in lines)
    return {".github/workflows/test.yml": WORKFLOW.format(settings=settings, lines=steps)}


_ZONE = make_change(
    "import time\n\n\ndef part(seconds):\n    return time.strftime('%H:%M', time.localtime(seconds))\n",
    "def test_change():\n    assert part(1700000000) == 'HOUR'\n",
)


def _at_hour(hour: str) -> dict[str, str]:
    return {path: text.replace("HOUR", hour) for path, text in _ZONE.items()}


EXAMPLES: tuple[Example, ...] = (
    Example(
        name="row-dated-by-its-opening",
        item=1,
        cause="the base commit requires a package that was uploaded after the row's date",
        base=make_project(dependencies='"typing-extensions>=4.10"'),
        change=_TYPING,
        is_published=True,
    ),
    Example(
        name="requirements-of-the-oldest-versions",
        item=2,
        cause="a file of requirements pins the oldest supported versions",
        base=make_project(
            {
                "requirements-test.txt": "pytest\n",
                "requirements-test-min.txt": "pytest\ntyping-extensions==4.5.0\n",
            },
            dependencies='"typing-extensions>=4.10"',
        ),
        change=_TYPING,
    ),
    Example(
        name="tox-factor-of-the-oldest-versions",
        item=2,
        cause="a factor of tox pins the oldest supported versions",
        base=make_project(
            {
                "tox.ini": "[tox]\nenvlist = py311{,-lowest}\n\n[testenv]\ndeps =\n    pytest\n"
                "    lowest: typing-extensions==4.5.0\ncommands = pytest\n"
            },
            dependencies='"typing-extensions>=4.10"',
        ),
        change=_TYPING,
    ),
    Example(
        name="outdated-pins-of-the-tests",
        item=2,
        cause="two pins of CI's requirements, each of which excludes what the project requires",
        base=make_project(
            {
                "requirements-test.txt": "pytest\ntyping-extensions==4.5.0\nattrs==20.3.0\n",
                **make_workflow("pip install -r requirements-test.txt", "pytest"),
            },
            dependencies='"typing-extensions>=4.10", "attrs>=22.2"',
        ),
        change=_ATTRS,
    ),
    Example(
        name="time-zone-of-ci",
        item=4,
        cause="CI sets the time zone in which the tests pass",
        base=make_project(
            make_workflow("pip install pytest", "pytest", settings="    env:\n      TZ: America/New_York\n")
        ),
        change=_at_hour("17:13"),
    ),
    Example(
        name="time-zone-of-the-tests",
        item=4,
        cause="the tests pass in a time zone that only they name",
        base=make_project(),
        change={
            path: text
            + (
                "\n\ndef test_zone():\n    # as in Asia/Tokyo\n    assert part(0) == '09:00'\n"
                if "tests" in path
                else ""
            )
            for path, text in _at_hour("07:13").items()
        },
    ),
    Example(
        name="time-zone-that-nothing-names",
        item=4,
        cause="the tests pass in a time zone that no file names",
        base=make_project(),
        change=_at_hour("17:13"),
    ),
    Example(
        name="width-of-the-terminal",
        item=4,
        cause="tox sets the width for which the tests were written",
        base=make_project({"tox.ini": "[testenv]\ndeps = pytest\nsetenv =\n    COLUMNS = 132\ncommands = pytest\n"}),
        change=make_change(
            "import shutil\n\n\ndef part():\n    return '=' * shutil.get_terminal_size().columns\n",
            "def test_change():\n    assert len(part()) == 132\n",
        ),
    ),
    Example(
        name="terminal",
        item=4,
        cause="the tests open the terminal",
        base=make_project(),
        change=make_change(
            "import os\n\n\ndef part():\n    with open('/dev/tty', 'rb') as tty:\n"
            "        return os.get_terminal_size(tty.fileno()).columns\n",
            "def test_change():\n    assert part() >= 40\n",
        ),
    ),
    Example(
        name="locale",
        item=4,
        cause="the tests need a locale that few projects use",
        base=make_project(),
        change=make_change(
            "import locale\n\n\ndef part(number):\n    locale.setlocale(locale.LC_ALL, 'nl_NL.UTF-8')\n"
            "    return locale.format_string('%.1f', number)\n",
            "def test_change():\n    assert part(1.5) == '1,5'\n",
        ),
    ),
    Example(
        name="root",
        item=4,
        cause="the tests change a file's owner, as root may",
        base=make_project(),
        change=make_change(
            "import os\n\n\ndef part(path):\n    os.chown(path, 3, 4)\n    return os.stat(path)\n",
            "def test_change(tmp_path):\n    (tmp_path / 'a').write_text('')\n"
            "    assert part(tmp_path / 'a').st_uid == 3\n",
        ),
    ),
    Example(
        name="home",
        item=4,
        cause="the tests need folders that a user's home has",
        base=make_project(),
        change=make_change(
            "from pathlib import Path\n\n\ndef part():\n    path = Path.home() / '.config' / 'greet'\n"
            "    path.write_text('Hello')\n    return path.read_text()\n",
            "def test_change():\n    assert part() == 'Hello'\n",
        ),
    ),
    Example(
        name="newer-python",
        item=4,
        cause="the tests need a newer Python than the one that was half a year old",
        base=make_project(),
        change=make_change(
            "import itertools\n\n\ndef part(letters):\n    return list(itertools.batched(letters, 2))\n",
            "def test_change():\n    assert part('abcd') == [('a', 'b'), ('c', 'd')]\n",
        ),
    ),
    Example(
        name="older-python",
        item=4,
        cause="the tests pass with an older Python that the project supports; the message says nothing",
        base=make_project(
            classifiers='"Programming Language :: Python :: 3.9", "Programming Language :: Python :: 3.10", '
            '"Programming Language :: Python :: 3.11"'
        ),
        change=make_change(
            "import enum\n\n\nclass Word(str, enum.Enum):\n    HELLO = 'Hello'\n\n\ndef part():\n"
            "    return f'{Word.HELLO}'\n",
            "def test_change():\n    assert part() == 'Hello'\n",
        ),
    ),
    Example(
        name="network",
        item=4,
        cause="the tests send requests to a public server",
        base=make_project(),
        change=make_change(
            "from urllib.request import urlopen\n\n\ndef part():\n    return urlopen('http://example.org/').status\n",
            "def test_change():\n    assert part() == 200\n",
        ),
        expected="needs-network",
    ),
)
