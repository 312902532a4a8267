from __future__ import annotations

from pathlib import Path

import pytest

from mergemill.errors import InputError
from taskdb.journal import BEGINNING, FILE, Journal, Pull, Span, merge


def at(minute: int) -> str:
    return f"2024-03-01T12:{minute:02d}:00Z"


def pull(number: int, minute: int, **body: object) -> Pull:
    return Pull(number, at(minute), dict(body))


def test_the_first_word_about_a_pull_request_counts(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        assert journal.keep([pull(1, 5, title="first")], None) == 1
        assert journal.keep([pull(1, 5, title="later"), pull(2, 6)], None) == 1
        journal.add_answers({"issue:a/b#1": {"title": "first"}})
        journal.add_answers({"issue:a/b#1": {"title": "later"}})
    with Journal.open(tmp_path) as journal:
        assert [p.body.get("title") for p in journal.newest()] == [None, "first"]
        assert journal.answers(["issue:a/b#1", "issue:a/b#2"]) == {"issue:a/b#1": {"title": "first"}}


def test_pull_requests_come_newest_first_within_bounds(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.keep([pull(n, n // 2) for n in range(1, 11)], None)
        assert [p.number for p in journal.newest()] == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
        assert [p.number for p in journal.newest(frontier=at(2), until=at(5))] == [9, 8, 7, 6]
        assert [p.number for p in journal.newest(since=at(2), below=(at(3), 7), most=2)] == [6, 5]
        assert journal.count(since=at(2), below=(at(3), 7)) == 3


def test_a_hole_stays_until_it_is_read(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.keep([], Span(at(10), at(8), "a"))
        journal.keep([], Span(at(8), BEGINNING, None))
        assert journal.spans() == [Span(at(10), BEGINNING, None)]
        journal.keep([], Span(at(50), at(40), "b"))  # and killed
        journal.keep([], Span(at(59), at(55), "c"))
        assert [span.high for span in journal.spans()] == [at(59), at(50), at(10)]
        journal.keep([], Span(at(55), at(45), "d"))
        assert journal.top() == Span(at(59), at(40), "b")
        journal.keep([], Span(at(40), at(5), "e"))
        assert journal.spans() == [Span(at(59), BEGINNING, None)]


def test_spans_that_only_touch_are_read_on(tmp_path: Path) -> None:
    older = Span(at(10), BEGINNING, None)
    assert merge([older, Span(at(20), at(10), "x")]) == [Span(at(20), BEGINNING, None)]
    assert merge([older, Span(at(20), "2024-03-01T12:09:30Z", "x")])[0].cursor == "x"
    assert merge([older, Span(at(20), at(8), "x")]) == [Span(at(20), BEGINNING, None)]


def test_pages_that_were_updated_in_one_second_are_gone_through(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        for high, low, cursor in ((9, 5, "a"), (5, 5, "b"), (5, 5, "c")):
            journal.keep([], Span(at(high), at(low), cursor))
            assert journal.spans() == [Span(at(9), at(5), cursor)]
        journal.keep([], Span(at(5), at(2), "d"))
        assert journal.spans() == [Span(at(9), at(2), "d")]


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        with pytest.raises(TypeError):
            journal.keep([pull(1, 1)], Span(at(2), at(1), "x"), pace={1, 2})
        assert (journal.count(), journal.spans()) == (0, [])


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all, for sure" * 100)
    with pytest.raises(InputError, match="is damaged"):
        Journal.open(tmp_path)
