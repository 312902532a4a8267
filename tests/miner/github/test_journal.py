from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError
from miner.github.journal import BEFORE_ALL_DATES, JOURNAL_FILE, CrawlJournal, CrawlSpan, MergedPull, merge_spans


def at(minute: int) -> str:
    return f"2024-03-01T12:{minute:02d}:00Z"


def pull(number: int, minute: int, **body: object) -> MergedPull:
    return MergedPull(number, at(minute), dict(body))


def test_the_first_answer_about_a_pull_request_is_kept(tmp_path: Path) -> None:
    with CrawlJournal.open(tmp_path) as journal:
        assert journal.add_page([pull(1, 5, title="first")], None) == 1
        assert journal.add_page([pull(1, 5, title="later"), pull(2, 6)], None) == 1
        journal.add_answers({"issue:a/b#1": {"title": "first"}})
        journal.add_answers({"issue:a/b#1": {"title": "later"}})
    with CrawlJournal.open(tmp_path) as journal:
        assert [p.body.get("title") for p in journal.iter_newest()] == [None, "first"]
        assert journal.get_answers(["issue:a/b#1", "issue:a/b#2"]) == {"issue:a/b#1": {"title": "first"}}


def test_pull_requests_come_newest_first_within_bounds(tmp_path: Path) -> None:
    with CrawlJournal.open(tmp_path) as journal:
        journal.add_page([pull(n, n // 2) for n in range(1, 11)], None)
        assert [p.number for p in journal.iter_newest()] == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
        assert [p.number for p in journal.iter_newest(frontier=at(2), until=at(5))] == [9, 8, 7, 6]
        assert [p.number for p in journal.iter_newest(since=at(2), below=(at(3), 7), most=2)] == [6, 5]
        assert journal.count_pulls(since=at(2), below=(at(3), 7)) == 3


def test_a_hole_stays_until_it_is_read(tmp_path: Path) -> None:
    with CrawlJournal.open(tmp_path) as journal:
        journal.add_page([], CrawlSpan(at(10), at(8), "a"))
        journal.add_page([], CrawlSpan(at(8), BEFORE_ALL_DATES, None))
        assert journal.list_spans() == [CrawlSpan(at(10), BEFORE_ALL_DATES, None)]
        journal.add_page([], CrawlSpan(at(50), at(40), "b"))  # and killed
        journal.add_page([], CrawlSpan(at(59), at(55), "c"))
        assert [span.high for span in journal.list_spans()] == [at(59), at(50), at(10)]
        journal.add_page([], CrawlSpan(at(55), at(45), "d"))
        assert journal.newest_span() == CrawlSpan(at(59), at(40), "b")
        journal.add_page([], CrawlSpan(at(40), at(5), "e"))
        assert journal.list_spans() == [CrawlSpan(at(59), BEFORE_ALL_DATES, None)]


def test_adjacent_spans_are_continued(tmp_path: Path) -> None:
    older = CrawlSpan(at(10), BEFORE_ALL_DATES, None)
    assert merge_spans([older, CrawlSpan(at(20), at(10), "x")]) == [CrawlSpan(at(20), BEFORE_ALL_DATES, None)]
    assert merge_spans([older, CrawlSpan(at(20), "2024-03-01T12:09:30Z", "x")])[0].cursor == "x"
    assert merge_spans([older, CrawlSpan(at(20), at(8), "x")]) == [CrawlSpan(at(20), BEFORE_ALL_DATES, None)]


def test_pages_updated_in_one_second_are_read(tmp_path: Path) -> None:
    with CrawlJournal.open(tmp_path) as journal:
        for high, low, cursor in ((9, 5, "a"), (5, 5, "b"), (5, 5, "c")):
            journal.add_page([], CrawlSpan(at(high), at(low), cursor))
            assert journal.list_spans() == [CrawlSpan(at(9), at(5), cursor)]
        journal.add_page([], CrawlSpan(at(5), at(2), "d"))
        assert journal.list_spans() == [CrawlSpan(at(9), at(2), "d")]


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with CrawlJournal.open(tmp_path) as journal:
        with pytest.raises(TypeError):
            journal.add_page([pull(1, 1)], CrawlSpan(at(2), at(1), "x"), pace={1, 2})
        assert (journal.count_pulls(), journal.list_spans()) == (0, [])


def test_a_damaged_journal_is_reported(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_FILE).write_bytes(b"no database at all, for sure" * 100)
    with pytest.raises(InputError, match="is damaged"):
        CrawlJournal.open(tmp_path)
