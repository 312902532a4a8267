"""Parsing by several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from worlds.examples.loading import list_example_worlds, load_example_world
from worlds.program.tree import ProgramError, parse_expression, parse_module


def test_threads_may_parse_at_once() -> None:
    programs = [load_example_world(name).program for name in list_example_worlds()] * 20
    with ThreadPoolExecutor(8) as threads:
        assert all(len(module.body) > 5 for module in threads.map(parse_module, programs))


@pytest.mark.parametrize("source", ["(", "\x00", "(" * 500])
def test_what_is_no_python_is_an_error(source: str) -> None:
    for parse in (parse_module, parse_expression):
        with pytest.raises(ProgramError):
            parse(source)
