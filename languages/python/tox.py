"""Facts from local task runners: tox.ini, noxfile.py (parsed), Makefile, .python-version."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator, Mapping

from languages.facts import Fact, FactKind, find_line
from languages.python.commands import TEST_RUNNERS, join_lines, parse_line, parse_pip
from languages.python.patterns import OLDEST, UNRELEASED
from languages.source_tree import SourceTree

_ENV = re.compile(r"py3(\d{1,2})\b|py3\.(\d{1,2})\b")
_FACTOR = re.compile(r"^(!?[\w.,{}!-]+):\s+(?=\S)")
_NOT_TESTS = re.compile(r"lint|docs?\b|flake|mypy|typ(e|ing)|format|style|release|build|bench|coverage|report|package")

_OTHER_VERSIONS = (OLDEST, UNRELEASED)
_BRANCHES = ("main", "master")


def read_tox(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from the env list, [testenv] and other environments that run tests."""
    for path in ("tox.ini", "setup.cfg"):
        text = tree.read(path)
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        head = "tox" if path == "tox.ini" else "tox:tox"
        names = parser.get(head, "envlist", fallback=None) or parser.get(head, "env_list", fallback="") or ""
        yield from _parse_env_list(names, path, text)
        has_suite = bool(TEST_RUNNERS.search(parser.get("testenv", "commands", fallback=None) or ""))
        for section in parser.sections():
            if section.startswith("testenv") and not _is_for_something_else(section.removeprefix("testenv:")):
                items = dict(parser.items(section))
                if section != "testenv" and has_suite and _is_for_another_folder(items):
                    continue
                if section == "testenv" or TEST_RUNNERS.search(items.get("commands") or ""):
                    yield from _parse_test_env(items, path, text)


def _is_for_something_else(name: str) -> bool:
    return any(pattern.search(name) for pattern in (_NOT_TESTS, *_OTHER_VERSIONS))


def _is_for_another_folder(items: Mapping[str, str | None]) -> bool:
    """Return whether an environment runs in a folder of its own, as a second suite does."""
    folder = items.get("changedir") or items.get("change_dir") or ""
    return folder.strip().removeprefix("{toxinidir}").strip("/.") != ""


def _is_for_other_versions(line: str) -> bool:
    """Return whether each of a line's factors is that of environments with the oldest or with unreleased versions."""
    match = _FACTOR.match(line)
    factors = match.group(1).split(",") if match else []
    is_archive = "://" in line
    return bool(factors) and all(
        "!" not in factor
        and (any(pattern.search(factor) for pattern in _OTHER_VERSIONS) or (is_archive and factor in _BRANCHES))
        for factor in factors
    )


def _parse_env_list(names: str, path: str, text: str) -> Iterator[Fact]:
    # py{36,37} and py3{6,7} expand to py36, py37.
    expanded = re.sub(
        r"py(3?\.?)\{([\d.,\s-]+)\}",
        lambda m: " ".join(f"py{m.group(1)}{part.strip()}" for part in re.split(r"[,\s]+", m.group(2))),
        names,
    )
    for match in _ENV.finditer(expanded):
        yield Fact(
            kind=FactKind.PYTHON,
            value=f"3.{match.group(1) or match.group(2)}",
            path=path,
            line=find_line(text, "envlist"),
        )


def _parse_test_env(items: Mapping[str, str | None], path: str, text: str) -> Iterator[Fact]:
    for line in (items.get("deps") or "").splitlines():
        bare = _FACTOR.sub("", line.strip())
        if _is_for_other_versions(line.strip()):
            continue
        if bare and "{[" not in bare:
            tokens = ["-r", bare[2:].strip()] if bare.startswith("-r") else [bare.split(" #")[0].strip()]
            tokens = [token.replace("{toxinidir}/", "") for token in tokens]
            yield from parse_pip(tokens, path, find_line(text, line.strip()))
    for kind, name in ((FactKind.EXTRA, "extras"), (FactKind.GROUP, "dependency_groups")):
        for value in re.split(r"[,\s]+", items.get(name) or ""):
            if value and "{" not in value:
                yield Fact(kind=kind, value=value.split(":")[-1], path=path, line=find_line(text, name))
    for _, line in join_lines(items.get("commands") or ""):
        if _is_for_other_versions(line.strip()):
            continue
        yield from parse_line(_FACTOR.sub("", line.strip()), path, find_line(text, line.strip()[:40]))


def read_nox(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from the sessions that run tests: Pythons, `session.install` and `session.run`."""
    path = "noxfile.py"
    try:
        module = ast.parse(tree.read(path))
    except SyntaxError:
        return
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and not _is_for_something_else(node.name):
            body = ast.dump(node)
            if "pytest" in body or "unittest" in body:
                yield from _parse_session(node, path)


def _parse_session(node: ast.FunctionDef, path: str) -> Iterator[Fact]:
    for decorator in node.decorator_list:
        for constant in ast.walk(decorator):
            if isinstance(constant, ast.Constant) and re.fullmatch(r"3\.\d+", str(constant.value)):
                yield Fact(kind=FactKind.PYTHON, value=str(constant.value), path=path, line=constant.lineno)
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            words = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if call.func.attr == "install":
                yield from parse_pip(words, path, call.lineno)
            elif call.func.attr in ("run", "run_always") and words:
                yield from parse_line(" ".join(words), path, call.lineno)


def read_makefile(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from the recipes of test targets and of targets that install for development."""
    for path in ("Makefile", "justfile", "Justfile"):
        is_relevant = False
        for number, line in join_lines(tree.read(path)):
            if match := re.match(r"^([\w.-]+)[^:=]*:(?!=)", line):
                name = match.group(1)
                is_relevant = (
                    bool(re.search(r"test|check|dev|requirements|coverage|install", name)) and "doc" not in name
                )
            elif is_relevant and line[:1] in "\t ":
                yield from parse_line(line.strip().lstrip("@-"), path, number)


def read_python_version(tree: SourceTree) -> Iterator[Fact]:
    """Yield the version in `.python-version`."""
    path = ".python-version"
    for number, line in enumerate(tree.read(path).splitlines(), 1):
        if match := re.match(r"\s*(3\.\d+)", line):
            yield Fact(kind=FactKind.PYTHON, value=match.group(1), path=path, line=number)
