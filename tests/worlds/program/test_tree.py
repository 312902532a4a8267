"""Parsing by several threads at once."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from worlds.examples.loading import load_example_world
from worlds.program.tree import ProgramError, parse_expression, parse_module


class Cycle:
    """An object whose collection, which may come within a parse, lets another thread run."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        time.sleep(0.002)


def test_threads_may_parse_at_once() -> None:
    program = load_example_world("clinic_rota").program

    def parse(_: int) -> int:
        for _ in range(5):
            Cycle()
        return len(parse_module(program).body)

    before = gc.get_threshold()
    gc.set_threshold(20)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert set(threads.map(parse, range(40))) == {len(parse_module(program).body)}
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("source", ["(", "\x00", "(" * 500])
def test_what_is_no_python_is_an_error(source: str) -> None:
    for parse in (parse_module, parse_expression):
        with pytest.raises(ProgramError):
            parse(source)
