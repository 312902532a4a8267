"""Facts from shell lines of CI, tox, nox and Makefiles: installed packages and test commands. Nothing is executed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from languages.facts import Fact, FactKind, parse_requirement

TEST_RUNNERS = re.compile(
    r"\b(pytest|py\.test|tox|nox|unittest|nosetests?|trial|coverage run|setup\.py test|make (test|check))\b"
)
"""Matches lines that belong to the tests."""

NOT_FOR_TESTS = frozenset(
    (  # noqa: SIM905 - one word per line would take sixty lines
        "pip setuptools wheel virtualenv tox tox-gh-actions tox-travis tox-uv nox uv codecov coveralls codacy-coverage "
        "python-coveralls twine build pre-commit flake8 black mypy isort pylint ruff pyright check-manifest invoke "
        "conda mamba pipenv poetry pdm hatch zest-releaser bumpversion coverage cibuildwheel pytest-cov "
        "pytest-codspeed pytest-mypy-plugins asv doctr restview pyodide-build slotscheck sphinx-lint readme-renderer "
        "flit pep8 pep8-naming bindep pycodestyle"
    ).split()
)
"""Development tools unrelated to tests: installing them may fail. Those that the tests import are kept."""

_WITH_VALUE = frozenset(
    (  # noqa: SIM905
        "-c --constraint -i --index-url --extra-index-url -f --find-links -t --target --prefix --src --python "
        "--resolution --upgrade-strategy --only-binary --no-binary --cache-dir --timeout --retries --root --platform"
    ).split()
)
_PIP = re.compile(r"(?:\bpip[0-9.]*|\$\{?PIP\}?)\s+install\s+(.*)")
_APT = re.compile(r"\bapt(?:-get)?\b.*?\binstall\b(.*)")
# YAML folds lines if a `|` is missing, so a second `pip install` in a line starts a new command.
_SPLIT = re.compile(r"&&|\|\|?|;|\n|(?<=\s)(?=pip[0-9.]*\s+install\b)")
_VARIABLE = re.compile(r"\$\{\{.*?\}\}|\$\{[^}]*\}|\$\w+|\{posargs[^}]*\}|\{\w+[^}]*\}|\[\]")


def parse_line(line: str, path: str, number: int) -> Iterator[Fact]:
    """Yield the facts of a shell line (continuations joined by the caller)."""
    for part in _SPLIT.split(line):
        if match := _PIP.search(part):
            yield from parse_pip(_split_tokens(match.group(1)), path, number)
        elif match := _APT.search(part):
            for token in _split_tokens(match.group(1)):
                if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", token):
                    yield Fact(kind=FactKind.SYSTEM, value=token, path=path, line=number)
        elif re.search(r"\b(pytest|py\.test|unittest|nosetests?|setup\.py test|runtests?\.py)\b", part):
            yield Fact(kind=FactKind.TEST_LINE, value=part.strip(), path=path, line=number)
        else:
            yield from _parse_other_installers(part, path, number)


def parse_pip(tokens: list[str], path: str, number: int) -> Iterator[Fact]:
    """Yield the facts in the arguments of `pip install`."""
    option = ""
    for token in tokens:
        if option:
            if option in ("-r", "--requirement"):
                yield Fact(kind=FactKind.REQUIREMENTS_FILE, value=token, path=path, line=number)
            elif option in ("-e", "--editable"):
                yield from _parse_project(token, path, number)
            elif option == "--group":
                yield Fact(kind=FactKind.GROUP, value=token, path=path, line=number)
            option = ""
        elif token in ("-r", "--requirement", "-e", "--editable", "--group") or token in _WITH_VALUE:
            option = token
        elif token.startswith("-r") and not token.startswith("--"):
            yield Fact(kind=FactKind.REQUIREMENTS_FILE, value=token[2:], path=path, line=number)
        elif token.startswith("."):
            yield from _parse_project(token, path, number)
        elif not token.startswith("-") and not re.search(r"/|\.whl$", token) and (text := parse_requirement(token)):
            yield Fact(kind=FactKind.REQUIREMENT, value=text, path=path, line=number)


def _parse_project(token: str, path: str, number: int) -> Iterator[Fact]:
    match = re.search(r"\[([^\]]*)\]", token)
    for extra in match.group(1).split(",") if match else ():
        if extra.strip():
            yield Fact(kind=FactKind.EXTRA, value=extra.strip(), path=path, line=number)


def _parse_other_installers(part: str, path: str, number: int) -> Iterator[Fact]:
    tokens = _split_tokens(part)
    if not ({"uv", "poetry", "pdm"} & set(tokens) and {"sync", "install", "run"} & set(tokens)):
        return
    kinds = {
        "--extra": FactKind.EXTRA,
        "-E": FactKind.EXTRA,
        "--extras": FactKind.EXTRA,
        "--group": FactKind.GROUP,
        "-G": FactKind.GROUP,
        "--with": FactKind.GROUP,
    }
    for flag, value in pairwise(tokens):
        if flag in kinds:
            for name in re.split(r"[,\s]+", value):
                yield Fact(kind=kinds[flag], value=name, path=path, line=number)


def _split_tokens(text: str) -> list[str]:
    """Return the words of a shell line without variables; a line with invalid quoting is split at whitespace."""
    text = _VARIABLE.sub("", text)
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def join_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a script, lines that end in a backslash joined."""
    start, pending = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        start = start if pending else number
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1] + " "
            continue
        yield start, pending + line
        pending = ""
    if pending:
        yield start, pending
