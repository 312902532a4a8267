"""Facts in shell lines: what CI, tox, nox and Makefiles install and how they run the tests. Nothing is executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from languages.facts import Fact, Kind, requirement

TEST_RUNNERS = re.compile(
    r"\b(pytest|py\.test|tox|nox|unittest|nosetests?|trial|coverage run|setup\.py test|make (test|check))\b"
)
"""A line that speaks of one of these belongs to the tests."""

NOT_FOR_TESTS = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "pip setuptools wheel virtualenv tox tox-gh-actions tox-travis tox-uv nox uv codecov coveralls codacy-coverage "
        "python-coveralls twine build pre-commit flake8 black mypy isort pylint ruff pyright check-manifest invoke "
        "conda mamba pipenv poetry pdm hatch zest-releaser bumpversion coverage cibuildwheel pytest-cov "
        "pytest-codspeed pytest-mypy-plugins asv doctr restview pyodide-build slotscheck sphinx-lint readme-renderer "
        "flit pep8 pep8-naming bindep pycodestyle"
    ).split()
)
"""Tools beside the tests: installing them only adds ways to fail. What the tests import stays."""

_WITH_VALUE = frozenset(
    (  # noqa: SIM905
        "-c --constraint -i --index-url --extra-index-url -f --find-links -t --target --prefix --src --python "
        "--resolution --upgrade-strategy --only-binary --no-binary --cache-dir --timeout --retries --root --platform"
    ).split()
)
_PIP = re.compile(r"(?:\bpip[0-9.]*|\$\{?PIP\}?)\s+install\s+(.*)")
_APT = re.compile(r"\bapt(?:-get)?\b.*?\binstall\b(.*)")
# A second `pip install` on a line is a command of its own: YAML folds lines that a `|` is missing for.
_SPLIT = re.compile(r"&&|\|\|?|;|\n|(?<=\s)(?=pip[0-9.]*\s+install\b)")
_VARIABLE = re.compile(r"\$\{\{.*?\}\}|\$\{[^}]*\}|\$\w+|\{posargs[^}]*\}|\{\w+[^}]*\}|\[\]")


def read_line(line: str, path: str, number: int) -> Iterator[Fact]:
    """The facts of one shell line (continuations joined by the caller)."""
    for part in _SPLIT.split(line):
        if match := _PIP.search(part):
            yield from read_pip(_tokens(match.group(1)), path, number)
        elif match := _APT.search(part):
            for token in _tokens(match.group(1)):
                if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", token):
                    yield Fact(kind=Kind.SYSTEM, value=token, path=path, line=number)
        elif re.search(r"\b(pytest|py\.test|unittest|nosetests?|setup\.py test|runtests?\.py)\b", part):
            yield Fact(kind=Kind.TEST_LINE, value=part.strip(), path=path, line=number)
        else:
            yield from _other_installers(part, path, number)


def read_pip(tokens: list[str], path: str, number: int) -> Iterator[Fact]:
    """The facts in the arguments of `pip install`."""
    waiting = ""
    for token in tokens:
        if waiting:
            if waiting in ("-r", "--requirement"):
                yield Fact(kind=Kind.REQUIREMENTS_FILE, value=token, path=path, line=number)
            elif waiting in ("-e", "--editable"):
                yield from _project(token, path, number)
            elif waiting == "--group":
                yield Fact(kind=Kind.GROUP, value=token, path=path, line=number)
            waiting = ""
        elif token in ("-r", "--requirement", "-e", "--editable", "--group") or token in _WITH_VALUE:
            waiting = token
        elif token.startswith("-r") and not token.startswith("--"):
            yield Fact(kind=Kind.REQUIREMENTS_FILE, value=token[2:], path=path, line=number)
        elif token.startswith("."):
            yield from _project(token, path, number)
        elif not token.startswith("-") and not re.search(r"/|\.whl$", token) and (text := requirement(token)):
            yield Fact(kind=Kind.REQUIREMENT, value=text, path=path, line=number)


def _project(token: str, path: str, number: int) -> Iterator[Fact]:
    match = re.search(r"\[([^\]]*)\]", token)
    for extra in match.group(1).split(",") if match else ():
        if extra.strip():
            yield Fact(kind=Kind.EXTRA, value=extra.strip(), path=path, line=number)


def _other_installers(part: str, path: str, number: int) -> Iterator[Fact]:
    tokens = _tokens(part)
    if not ({"uv", "poetry", "pdm"} & set(tokens) and {"sync", "install", "run"} & set(tokens)):
        return
    kinds = {"--extra": Kind.EXTRA, "-E": Kind.EXTRA, "--extras": Kind.EXTRA,
             "--group": Kind.GROUP, "-G": Kind.GROUP, "--with": Kind.GROUP}  # fmt: skip
    for flag, value in pairwise(tokens):
        if flag in kinds:
            for name in re.split(r"[,\s]+", value):
                yield Fact(kind=kinds[flag], value=name, path=path, line=number)


def _tokens(text: str) -> list[str]:
    """Words of a shell line without variables; an unbalanced quote leaves plain splitting."""
    text = _VARIABLE.sub("", text)
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, line) of a script, lines that end in a backslash joined."""
    start, held = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        start = start if held else number
        if line.rstrip().endswith("\\"):
            held += line.rstrip()[:-1] + " "
            continue
        yield start, held + line
        held = ""
    if held:
        yield start, held
