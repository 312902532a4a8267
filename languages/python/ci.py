"""Facts from continuous integration: GitHub Actions, Travis, GitLab, CircleCI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from languages.facts import Fact, FactKind, find_line
from languages.python.commands import TEST_RUNNERS, join_lines, parse_line
from languages.source_tree import SourceTree

NOT_TESTS = re.compile(
    r"lint|docs?\b|doc[-_]?build|mypy|typ(e|ing)|bench|release|publish|deploy|wheel|emscripten|wasm|nightly|upstream|minimal"
    r"|min[-_]|downstream|codeql|cifuzz"
)
"""Matches names of jobs and workflows that do not run the tests of a change."""

_VERSION = re.compile(r"(?<![\d.])(3\.\d{1,2})(?![\d])")
_TOX_NAME = re.compile(r"\bpy3(\d{1,2})\b")


def read_github(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from workflows: matrices and steps of the jobs that run tests."""
    for path in tree.glob(".github/workflows/*.y*ml"):
        text = tree.read(path)
        jobs = _as_mapping(_as_mapping(_load_yaml(text)).get("jobs"))
        scripts = {name: _find_scripts(job) for name, job in jobs.items()}
        called_scripts = {name: list(_read_called_scripts(tree, script)) for name, script in scripts.items()}
        test_jobs = {
            name: job
            for name, job in jobs.items()
            if TEST_RUNNERS.search(
                "\n".join([scripts[name], *(tree.read(called_script) for called_script in called_scripts[name])])
            )
        }
        auxiliary = [name for name in test_jobs if NOT_TESTS.search(name) or NOT_TESTS.search(path.rpartition("/")[2])]
        for name, job in test_jobs.items():
            if name in auxiliary:
                continue
            yield from _find_versions(job, path, text)
            yield from _parse_commands(scripts[name], path, text)
            for script in called_scripts[name]:
                yield from _parse_commands(substitute_variables(tree.read(script)), script, tree.read(script))


def read_gitlab(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from `.gitlab-ci.yml`: images and scripts of the jobs that run tests."""
    path = ".gitlab-ci.yml"
    text = tree.read(path)
    for job in _as_mapping(_load_yaml(text)).values():
        if isinstance(job, dict) and TEST_RUNNERS.search(_find_scripts(job)):
            yield from _find_versions(job, path, text)
            yield from _parse_commands(_find_scripts(job), path, text)


def read_travis(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from `.travis.yml`: the `python` list, the included jobs, apt packages and scripts."""
    path = ".travis.yml"
    text = tree.read(path)
    data = _as_mapping(_load_yaml(text))
    yield from _find_versions(data, path, text)
    yield from _parse_commands(_find_scripts(data), path, text)
    for package in _find_values(data, "packages"):
        if isinstance(package, str) and re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", package):
            yield Fact(kind=FactKind.SYSTEM, value=package, path=path, line=find_line(text, package))


def read_circle(tree: SourceTree) -> Iterator[Fact]:
    """Yield facts from `.circleci/config.yml`: images and commands."""
    path = ".circleci/config.yml"
    text = tree.read(path)
    data = _as_mapping(_load_yaml(text))
    if TEST_RUNNERS.search(_find_scripts(data)):
        yield from _find_versions(data, path, text)
        yield from _parse_commands(_find_scripts(data), path, text)


def _load_yaml(text: str) -> Any:
    try:
        # BaseLoader keeps 3.10 a string, and creates only strings, lists and mappings.
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - BaseLoader constructs no objects
    except yaml.YAMLError:
        return None


def _as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _as_strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _as_strings(item)


def _find_values(value: Any, key: str) -> Iterator[Any]:
    """Yield everything below a key that contains `key`, lists flattened."""
    if isinstance(value, dict):
        for name, item in value.items():
            if key in str(name).lower():
                yield from item if isinstance(item, list) else [item]
            else:
                yield from _find_values(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _find_values(item, key)


def _find_versions(data: Any, path: str, text: str) -> Iterator[Fact]:
    seen: set[str] = set()
    for key in ("python", "image", "tox", "env"):
        for item in _find_values(data, key):
            for item_text in _as_strings(item):
                if "-dev" in item_text or "pypy" in item_text.lower() or "alpha" in item_text:
                    continue
                versions = _VERSION.findall(item_text) + [f"3.{minor}" for minor in _TOX_NAME.findall(item_text)]
                for version in versions if key == "python" or "py" in item_text else ():
                    if version not in seen:
                        seen.add(version)
                        yield Fact(kind=FactKind.PYTHON, value=version, path=path, line=find_line(text, version))


def _find_scripts(data: Any) -> str:
    """Return all shell text of a job."""
    lines: list[str] = []
    for key in ("run", "script", "install", "command"):
        for item in _find_values(data, key):
            lines += [s for s in _as_strings(item) if s not in lines]
    return "\n".join(lines)


_CALL = re.compile(
    r"^\s*(?:(?:ba|z)?sh\s+(?:-\w+\s+)*|source\s+|\.\s+)?(?:\./)?((?:[\w.-]+/)*[\w.-]+)(?=\s|;|$)", re.MULTILINE
)
_ASSIGNMENT = re.compile(r"""^\s*(?:export\s+)?([A-Za-z_]\w*)=["']?([\w./,-]+)["']?\s*$""", re.MULTILINE)


def _read_called_scripts(tree: SourceTree, script: str) -> Iterator[str]:
    """Yield the shell scripts of the repository that the lines call, such as `scripts/install`."""
    for word in dict.fromkeys(_CALL.findall(script)):
        if tree.is_file(word) and (word.endswith(".sh") or re.match(r"#!.*\b(ba|z|k)?sh\b", tree.read(word))):
            yield word


def substitute_variables(script: str) -> str:
    """Return a script with the variables substituted that it assigns a literal."""
    for name, value in dict(reversed(_ASSIGNMENT.findall(script))).items():
        script = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", value, script)
    return script


def _parse_commands(script: str, path: str, text: str) -> Iterator[Fact]:
    for _, line in join_lines(script):
        if line.strip():
            yield from parse_line(line, path, find_line(text, line.strip()[:60]))
