"""A tiny project whose changes have no tests, and a scripted model that writes tests of every sort for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.backends.llm.server import ScriptedAnswer
from tests.helpers import TinyRepo
from tests.sample import BASE

MODULES = {
    name: f'"""Functions on {name}."""\n\n\ndef {name}(value):\n    return value\n'
    for name in ("double", "square", "limit", "shout", "clean", "halve", "swap", "order", "label", "count_up")
}
FIXES = {
    "double": "    return value * 2\n",
    "square": "    return value * value\n",
    "limit": "    return 10 if value > 10 else value\n",
    "shout": '    return value.upper() + "!"\n',
    "clean": "    return value.strip().lower()\n",
    "halve": "    return value // 2\n",
    "swap": "    return (value[1], value[0])\n",
    "order": "    return sorted(value, reverse=True)\n",
    "label": '    return f"<{value}>"\n',
    "count_up": "    return list(range(1, value + 1))\n",
}
"""Function -> its new body; each is a change of its own."""


def fix(name: str) -> str:
    return MODULES[name].replace("    return value\n", FIXES[name])


def make_words(path: Path, names: tuple[str, ...] = tuple(FIXES)) -> TinyRepo:
    """Create a repository in which each of some functions is fixed by a commit without tests."""
    repo = TinyRepo(path)
    files = {f"greet/{name}.py": text for name, text in MODULES.items()}
    repo.commit("Begin", BASE | files)
    for name in names:
        wanted = FIXES[name].strip().removeprefix("return ")
        text = f"Fix {name}, which returns its argument\n\ngreet.{name}.{name}(value) must return {wanted}."
        repo.commit(text, {f"greet/{name}.py": fix(name)})
    return repo


def write(name: str, body: str, head: str = "", path: str = "") -> dict[str, Any]:
    text = f"{head}from greet.{name} import {name}\n\n\n{body}"
    return {"files": [{"path": path or f"tests/test_{name}_written.py", "content": text}]}


ANSWERS: Mapping[str, dict[str, Any]] = {
    "double": write("double", "def test_it():\n    assert double(3) == 6\n    assert double('ab') == 'abab'\n"),
    "square": write("square", "def test_it():\n    assert [square(n) for n in (3, -3, 0)] == [9, 9, 0]\n"),
    "limit": write("limit", "def test_it():\n    assert [limit(n) for n in (9, 10, 11, 99)] == [9, 10, 10, 10]\n"),
    "shout": write("shout", "def test_it():\n    assert True\n"),
    "clean": write("clean", "def test_it():\n    assert callable(clean)\n"),
    "halve": write("halve", 'def test_it():\n    halve(1)\n    assert "//" in open("greet/halve.py").read()\n'),
    "swap": write(
        "swap",
        "def test_it():\n    assert swap((1, 2)) == (2, 1)\n    assert random.random() < 0.05\n",
        head="import random\n",
    ),
    "order": write("order", "def test_it():\n    assert order([1, 2]) == [1, 2, 3]\n"),
    "label": write(
        "label",
        "def test_it():\n    assert label(1)\n"
        '    log = subprocess.run(["git", "log"], capture_output=True)\n    assert b"label" in log.stdout\n',
        head="import subprocess\n",
    ),
    "count_up": write("count_up", "def count_up(value):\n    return [1, 2, 3]\n", path="greet/count_up.py"),
}
"""Function -> what the model writes for it: good tests for the first three, then tests that must be refused."""
TRIVIAL = write("square", "def test_it():\n    assert True\n")
REASONS = {
    "shout": "tests-assert-nothing",
    "clean": "tests-call-nothing",
    "halve": "tests-read-source",
    "order": "gold-fails",
    "label": "tests-read-git",
    "count_up": "tests-outside-tests",
}
"""Function -> the reason of its rejection; that of `swap`, a matter of chance, is one of RANDOM_REASONS."""
RANDOM_REASONS = ("flaky", "gold-fails", "tests-unreliable", "no-fail-to-pass")


def is_about_tests(request: Mapping[str, Any]) -> bool:
    """Return whether tests are requested, not an opinion on the statement."""
    return bool(request["response_format"]["json_schema"]["name"] == "writtentestsanswer")


def find_name(request: Mapping[str, Any]) -> str:
    """Return the function that a request is about."""
    (question,) = [message["content"] for message in request["messages"][:2] if message["role"] == "user"]
    return next(name for name in FIXES if f"Fix {name}," in question)


def answer_request(request: Mapping[str, Any]) -> ScriptedAnswer:
    """Answer as scripted; a rejected answer is repeated."""
    return ScriptedAnswer(text=json.dumps(ANSWERS[find_name(request)]))
