"""Declared foreign keys on states."""

from __future__ import annotations

import pytest

from worlds.definitions import State
from worlds.program.foreign_keys import ForeignKey, find_dangling_key, read_foreign_keys
from worlds.program.tree import ProgramError, parse_program
from worlds.reasons import Reason

STATE: State = {
    "books": {"B1": {}, "B2": {}},
    "loans": {"L1": {"book_id": "B1"}, "L2": {"book_id": None}, "L3": {}},
    "members": {"M1": {"favourites": ["B1", "B2"]}},
    "notes": {"S1": [{"book_id": "B2"}]},
    "settings": {"book_of_the_week": "B1"},
    "queue": ["B1"],
}
PATHS = ("loans.book_id", "members.favourites[]", "notes.book_id", "settings.book_of_the_week", "queue[]")


def test_existing_keys_and_null_are_no_error() -> None:
    keys = tuple(ForeignKey(path=path, target="books") for path in PATHS)
    assert find_dangling_key(STATE, keys) is None


@pytest.mark.parametrize("path", PATHS)
def test_a_value_that_refers_to_nothing_is_found(path: str) -> None:
    key = ForeignKey(path=path, target="books")
    assert find_dangling_key({**STATE, "books": {}}, (key,)) is not None
    assert str(find_dangling_key({**STATE, "books": {}}, (key,))).startswith(f"{path} is 'B")


@pytest.mark.parametrize(
    "value", ["make()", "['a']", "{'loans.book_id': 1}", "{'loans.book_id': 'shelves'}", "{'x.y': 'books'}"]
)
def test_a_wrong_declaration_is_refused(value: str) -> None:
    source = f"""
class World:
    FOREIGN_KEYS = {value}
    def __init__(self, state):
        self.books = state["books"]
        self.loans = state["loans"]
    def tool(self): return {{}}
"""
    with pytest.raises(ProgramError) as raised:
        read_foreign_keys(parse_program(source))
    assert raised.value.reason is Reason.WRONG_FOREIGN_KEY
