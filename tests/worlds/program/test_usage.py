"""Usage graphs: aliases, helpers, copies."""

from __future__ import annotations

import pytest

from worlds.program.tree import parse_program
from worlds.program.usage import MethodUsage, derive_usage


def read(body: str, helpers: str = "") -> MethodUsage:
    source = f"""
class World:
    def __init__(self):
        self.books = {{}}
        self.loans = {{}}
        self.count = 0
    def tool(self, key):
        {body}
{helpers}
"""
    return derive_usage(parse_program(source)).methods["tool"]


@pytest.mark.parametrize(
    ("body", "reads", "writes"),
    [
        ("return self.books.get(key)", ["books"], []),
        ("self.books[key] = 1", ["books"], ["books"]),
        ("self.count = 5", [], ["count"]),
        ("self.count += 1", ["count"], ["count"]),
        ("del self.books[key]", ["books"], ["books"]),
        ("self.books[key]['tags'].append(1)", ["books"], ["books"]),
        ("book = self.books[key]; book['a'] = 1", ["books"], ["books"]),
        ("book = self.books.get(key) or {}; book.update(a=1)", ["books"], ["books"]),
        ("book = dict(self.books[key]); book['a'] = 1", ["books"], []),
        ("book = {**self.books[key]}; book['a'] = 1", ["books"], []),
        ("for one in self.loans.values(): one['a'] = 1", ["loans"], ["loans"]),
        ("for _, one in sorted(self.loans.items()): one['a'] = 1", ["loans"], ["loans"]),
        ("found = [one for one in self.loans.values()]; found[0]['a'] = self.count", ["count", "loans"], ["loans"]),
        ("if (book := self.books.get(key)): book.clear()", ["books"], ["books"]),
        ("a, b = self.books[key], self.loans[key]; a['x'] = 1", ["books", "loans"], ["books", "loans"]),
        ("self.count, x = 1, 2", [], ["count"]),
        ("key['a'] = 1; self.unknown = 2", [], []),
    ],
)
def test_what_a_body_reads_and_writes(body: str, reads: list[str], writes: list[str]) -> None:
    assert read(body) == MethodUsage(calls=(), reads=tuple(reads), writes=tuple(writes))


def test_entries_that_helpers_return_are_followed() -> None:
    helpers = """
    def _find(self, key):
        return self._search(key)
    def _search(self, key):
        return self.loans.get(key)
"""
    assert read("loan = self._find(key); loan['a'] = 1", helpers) == MethodUsage(
        calls=("_find",), reads=(), writes=("loans",)
    )


def test_writes_are_collected_through_calls() -> None:
    source = """
class World:
    def __init__(self):
        self.books = {}
    def first(self): return self._second()
    def _second(self): return sorted([1], key=self._third)
    def _third(self): self.books["x"] = 1
"""
    graph = derive_usage(parse_program(source))
    assert graph.collect_writes("first") == {"books"}
    assert graph.methods["_second"].calls == ("_third",)
