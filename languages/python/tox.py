"""Facts in local task runners: tox.ini, noxfile.py by AST, Makefile, .python-version."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator, Mapping

from languages.facts import Fact, Kind, line_of
from languages.python.commands import TEST_RUNNERS, joined_lines, read_line, read_pip
from languages.tree import Tree

_ENV = re.compile(r"py3(\d{1,2})\b|py3\.(\d{1,2})\b")
_FACTOR = re.compile(r"^!?[\w.,{}-]+:\s+(?=\S)")
_NOT_TESTS = re.compile(r"lint|docs?\b|flake|mypy|typ(e|ing)|format|style|release|build|bench|coverage|report|package")


def tox(tree: Tree) -> Iterator[Fact]:
    """The env list, and what [testenv] and those other environments that test install and run."""
    for path in ("tox.ini", "setup.cfg"):
        text = tree.read(path)
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        head = "tox" if path == "tox.ini" else "tox:tox"
        names = parser.get(head, "envlist", fallback=None) or parser.get(head, "env_list", fallback="") or ""
        yield from _env_list(names, path, text)
        for section in parser.sections():
            if section.startswith("testenv") and not _NOT_TESTS.search(section):
                items = dict(parser.items(section))
                if section == "testenv" or TEST_RUNNERS.search(items.get("commands") or ""):
                    yield from _test_env(items, path, text)


def _env_list(names: str, path: str, text: str) -> Iterator[Fact]:
    # py{36,37} and py3{6,7} unfold to py36, py37.
    unfolded = re.sub(
        r"py(3?\.?)\{([\d.,\s-]+)\}",
        lambda m: " ".join(f"py{m.group(1)}{part.strip()}" for part in re.split(r"[,\s]+", m.group(2))),
        names,
    )
    for match in _ENV.finditer(unfolded):
        yield Fact(
            kind=Kind.PYTHON, value=f"3.{match.group(1) or match.group(2)}", path=path, line=line_of(text, "envlist")
        )


def _test_env(items: Mapping[str, str | None], path: str, text: str) -> Iterator[Fact]:
    for line in (items.get("deps") or "").splitlines():
        bare = _FACTOR.sub("", line.strip())
        if bare and "{[" not in bare:
            tokens = ["-r", bare[2:].strip()] if bare.startswith("-r") else [bare.split(" #")[0].strip()]
            tokens = [token.replace("{toxinidir}/", "") for token in tokens]
            yield from read_pip(tokens, path, line_of(text, line.strip()))
    for kind, name in ((Kind.EXTRA, "extras"), (Kind.GROUP, "dependency_groups")):
        for value in re.split(r"[,\s]+", items.get(name) or ""):
            if value and "{" not in value:
                yield Fact(kind=kind, value=value.split(":")[-1], path=path, line=line_of(text, name))
    for _, line in joined_lines(items.get("commands") or ""):
        yield from read_line(_FACTOR.sub("", line.strip()), path, line_of(text, line.strip()[:40]))


def nox(tree: Tree) -> Iterator[Fact]:
    """Sessions that run the tests: their Pythons, `session.install` and `session.run`."""
    path = "noxfile.py"
    try:
        module = ast.parse(tree.read(path))
    except SyntaxError:
        return
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and not _NOT_TESTS.search(node.name):
            body = ast.dump(node)
            if "pytest" in body or "unittest" in body:
                yield from _session(node, path)


def _session(node: ast.FunctionDef, path: str) -> Iterator[Fact]:
    for decorator in node.decorator_list:
        for constant in ast.walk(decorator):
            if isinstance(constant, ast.Constant) and re.fullmatch(r"3\.\d+", str(constant.value)):
                yield Fact(kind=Kind.PYTHON, value=str(constant.value), path=path, line=constant.lineno)
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            words = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if call.func.attr == "install":
                yield from read_pip(words, path, call.lineno)
            elif call.func.attr in ("run", "run_always") and words:
                yield from read_line(" ".join(words), path, call.lineno)


def makefile(tree: Tree) -> Iterator[Fact]:
    """Recipes of the targets that test, and of those that install for development."""
    for path in ("Makefile", "justfile", "Justfile"):
        wanted = False
        for number, line in joined_lines(tree.read(path)):
            if match := re.match(r"^([\w.-]+)[^:=]*:(?!=)", line):
                name = match.group(1)
                wanted = bool(re.search(r"test|check|dev|requirements|coverage|install", name)) and "doc" not in name
            elif wanted and line[:1] in "\t ":
                yield from read_line(line.strip().lstrip("@-"), path, number)


def python_version(tree: Tree) -> Iterator[Fact]:
    """`.python-version`."""
    path = ".python-version"
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        if match := re.match(r"\s*(3\.\d+)", line):
            yield Fact(kind=Kind.PYTHON, value=match.group(1), path=path, line=number)
