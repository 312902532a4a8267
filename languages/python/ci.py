"""Facts in what the project's continuous integration runs: GitHub Actions, Travis, GitLab, CircleCI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from languages.facts import Fact, Kind, line_of
from languages.python.commands import TEST_RUNNERS, joined_lines, read_line
from languages.tree import Tree

NOT_TESTS = re.compile(
    r"lint|docs?\b|doc[-_]?build|mypy|typ(e|ing)|bench|release|publish|deploy|wheel|emscripten|wasm|nightly|upstream|minimal"
    r"|min[-_]|downstream|codeql|cifuzz"
)
"""Jobs and workflows beside the tests that gate a change."""

_VERSION = re.compile(r"(?<![\d.])(3\.\d{1,2})(?![\d])")
_TOX_NAME = re.compile(r"\bpy3(\d{1,2})\b")


def github(tree: Tree) -> Iterator[Fact]:
    """Workflows: matrices and steps of the jobs that run tests."""
    for path in tree.glob(".github/workflows/*.y*ml"):
        text = tree.read(path)
        jobs = _mapping(_mapping(_load(text)).get("jobs"))
        scripts = {name: _scripts(job) for name, job in jobs.items()}
        called = {name: list(_called(tree, script)) for name, script in scripts.items()}
        running = {
            name: job for name, job in jobs.items()
            if TEST_RUNNERS.search("\n".join([scripts[name], *(tree.read(one) for one in called[name])]))
        }  # fmt: skip
        beside = [name for name in running if NOT_TESTS.search(name) or NOT_TESTS.search(path.rpartition("/")[2])]
        for name, job in running.items():
            if name in beside:
                continue
            yield from _versions(job, path, text)
            yield from _commands(scripts[name], path, text)
            for script in called[name]:
                yield from _commands(with_values(tree.read(script)), script, tree.read(script))


def gitlab(tree: Tree) -> Iterator[Fact]:
    """`.gitlab-ci.yml`: images and scripts of the jobs that run tests."""
    path = ".gitlab-ci.yml"
    text = tree.read(path)
    for job in _mapping(_load(text)).values():
        if isinstance(job, dict) and TEST_RUNNERS.search(_scripts(job)):
            yield from _versions(job, path, text)
            yield from _commands(_scripts(job), path, text)


def travis(tree: Tree) -> Iterator[Fact]:
    """`.travis.yml`: the `python` list, the included jobs, packages of apt and the scripts."""
    path = ".travis.yml"
    text = tree.read(path)
    data = _mapping(_load(text))
    yield from _versions(data, path, text)
    yield from _commands(_scripts(data), path, text)
    for package in _find(data, "packages"):
        if isinstance(package, str) and re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", package):
            yield Fact(kind=Kind.SYSTEM, value=package, path=path, line=line_of(text, package))


def circle(tree: Tree) -> Iterator[Fact]:
    """`.circleci/config.yml`: images and commands."""
    path = ".circleci/config.yml"
    text = tree.read(path)
    data = _mapping(_load(text))
    if TEST_RUNNERS.search(_scripts(data)):
        yield from _versions(data, path, text)
        yield from _commands(_scripts(data), path, text)


def _load(text: str) -> Any:
    try:
        # BaseLoader keeps 3.10 the text it is, and makes nothing but strings, lists and mappings.
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - the one loader that constructs nothing
    except yaml.YAMLError:
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def _find(value: Any, wanted: str) -> Iterator[Any]:
    """Everything below a key that contains `wanted`, lists flattened."""
    if isinstance(value, dict):
        for name, item in value.items():
            if wanted in str(name).lower():
                yield from item if isinstance(item, list) else [item]
            else:
                yield from _find(item, wanted)
    elif isinstance(value, list):
        for item in value:
            yield from _find(item, wanted)


def _versions(data: Any, path: str, text: str) -> Iterator[Fact]:
    seen: set[str] = set()
    for wanted in ("python", "image", "tox", "env"):
        for item in _find(data, wanted):
            for string in _strings(item):
                if "-dev" in string or "pypy" in string.lower() or "alpha" in string:
                    continue
                found = _VERSION.findall(string) + [f"3.{minor}" for minor in _TOX_NAME.findall(string)]
                for version in found if wanted == "python" or "py" in string else ():
                    if version not in seen:
                        seen.add(version)
                        yield Fact(kind=Kind.PYTHON, value=version, path=path, line=line_of(text, version))


def _scripts(data: Any) -> str:
    """All shell text of a job."""
    found: list[str] = []
    for wanted in ("run", "script", "install", "command"):
        for item in _find(data, wanted):
            found += [s for s in _strings(item) if s not in found]
    return "\n".join(found)


_CALL = re.compile(
    r"^\s*(?:(?:ba|z)?sh\s+(?:-\w+\s+)*|source\s+|\.\s+)?(?:\./)?((?:[\w.-]+/)*[\w.-]+)(?=\s|;|$)", re.MULTILINE
)
_ASSIGNED = re.compile(r"""^\s*(?:export\s+)?([A-Za-z_]\w*)=["']?([\w./,-]+)["']?\s*$""", re.MULTILINE)


def _called(tree: Tree, script: str) -> Iterator[str]:
    """Shell scripts of the repository that the lines call, such as `scripts/install`."""
    for word in dict.fromkeys(_CALL.findall(script)):
        if tree.is_file(word) and (word.endswith(".sh") or re.match(r"#!.*\b(ba|z|k)?sh\b", tree.read(word))):
            yield word


def with_values(script: str) -> str:
    """A script with the variables that it sets to a plain word put in."""
    for name, value in dict(reversed(_ASSIGNED.findall(script))).items():
        script = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", value, script)
    return script


def _commands(script: str, path: str, text: str) -> Iterator[Fact]:
    for _, line in joined_lines(script):
        if line.strip():
            yield from read_line(line, path, line_of(text, line.strip()[:60]))
