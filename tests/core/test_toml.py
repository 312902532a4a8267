"""Hostile TOML is refused within seconds; usual documents are parsed as Python does."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable

import pytest

from core.toml import MAX_KEY_PARTS, MAX_LENGTH, parse_toml

LONG: dict[str, Callable[[], str]] = {
    "a key of 100,000 parts": lambda: "a." * 100_000 + "a = 1",
    "a header of 100,000 parts": lambda: "[" + "a." * 100_000 + "a]",
    "quoted parts": lambda: "'a' . \"b\" . " * 100_000 + "a = 1",
    "an inline key": lambda: "x = {" + "a." * 100_000 + "a = 1}",
    "many long keys": lambda: "".join(f"{'a.' * 90}k{number} = 1\n" for number in range(20_000)),
    "many dotted tables": lambda: "".join(f"[a.k{number}.b]\nc.d = 1\n" for number in range(400_000)),
    "nested lists": lambda: "x = " + "[" * 100_000,
    "nested tables": lambda: "x = " + "{a = " * 100_000,
    "an open text of escapes": lambda: "x = " + '"\\' * 2_000_000,
    "open texts": lambda: "x = " + "'\"" * 2_000_000,
    "too many characters": lambda: "#" * (MAX_LENGTH + 1),
}


@pytest.mark.parametrize("case", LONG)
def test_hostile_documents_are_refused_within_seconds(case: str) -> None:
    text = LONG[case]()
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"parts|characters|nested|escape|statement"):
        parse_toml(text)
    assert time.monotonic() - started < 10


def test_usual_documents_are_parsed_as_python_does() -> None:
    tests = "".join(f'  "tests/test_a.py::test_{number}[1.2.3-a.b.c]",\n' for number in range(20_000))
    text = f"""
title = "1.2.3.4 and 'a.b' and \\" ... "
[tool.poetry.dependencies]
a.b."c.d".'e' = 1.5
at = 2024-01-01T10:00:00.123Z
[target.'cfg(target_os = "linux")'.dependencies]
text = '''{"a.b " * 200}'''
{".".join("k" * MAX_KEY_PARTS)} = true
PASS_TO_PASS = [
{tests}]
"""
    assert parse_toml(text) == tomllib.loads(text)
    assert parse_toml("") == {}
