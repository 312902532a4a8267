"""Answers by value and form; names in texts; blurs that a program decides on."""

from __future__ import annotations

import pytest

from explorers.answering.checks import is_same_answer
from explorers.answering.matching import is_mentioned, is_verbatim
from explorers.answering.values import DateValue, find_dates, find_numbers, parse_date, parse_number
from explorers.evolution.blurs import check_blur
from explorers.search.tokens import Tokenizer

PLACES = {"alder": "elmshire", "elmshire": "england", "jarrow": "durham"}


@pytest.mark.parametrize(
    ("answer", "other", "expected"),
    [
        ("The  Heron-Prize!", "heron prize", True),
        ("國家隊", "国家队", True),
        ("ＡＢＣ", "abc", True),
        ("1,200", "1200", True),
        ("3.5 million", "3500000", True),
        ("12 May 1976", "1976-05-12", True),
        ("May 12, 1976", "1976年5月12日", True),
        ("1976", "12 May 1976", False),
        ("1200", "1201", False),
        ("Ada", "Ada Moravec", False),
        ("", "", False),
        ("+", "-", False),
    ],
)
def test_answers_are_compared_by_value_and_form(answer: str, other: str, expected: bool) -> None:
    assert is_same_answer(answer, other) is expected
    assert is_same_answer(other, answer) is expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Heron Prize", "two heron prizes", True),
        ("Alder", "an alderman", False),
        ("国家队", "巴西國 家隊", True),
        ("1976", "in the 1970s", False),
        ("1976", "on 3 May 1976", True),
        ("3 May 1976", "in 1976", False),
        ("50", "50年代", False),
        ("312", "共312个", True),
        ("1200", "1,200 people", True),
        ("", "anything", False),
        ("!", "anything!", False),
    ],
)
def test_names_in_texts(name: str, text: str, expected: bool) -> None:
    assert is_mentioned(name, text, Tokenizer()) is expected


def test_quotes_are_verbatim_and_long_enough() -> None:
    assert is_verbatim("founded  in 1976", "It was founded\nin 1976.")
    assert not is_verbatim("founded in 1975", "It was founded in 1976.")
    assert not is_verbatim("in 1976", "It was founded in 1976.")
    assert is_verbatim("于1958年", "俱乐部于1958年创立。")
    assert not is_verbatim("1958年创办", "俱乐部于1958年创立。")
    assert not is_verbatim("于年", "俱乐部于年创立。")


def test_values_are_read_from_texts() -> None:
    assert parse_date("the 3rd of May 1976") is None or parse_date("3rd of May 1976") == DateValue(1976, 5, 3)
    assert parse_date("1976-13-01") is None
    assert parse_number("about 5") is None
    assert find_dates("From 1976-05-12 to 1980, and in the 1990s.") == {DateValue(1976, 5, 12), DateValue(1980)}
    assert find_numbers("v1.2 of 1,200 and 3.5 million") == {1200.0, 3_500_000.0}


@pytest.mark.parametrize(
    ("entity", "value", "expected"),
    [
        ("1976", "the 1970s", True),
        ("1976", "the 1980s", False),
        ("1976", "the late 1970s", True),
        ("1976", "the early 1970s", False),
        ("1976", "20世纪70年代", True),
        ("1976", "the second half of the 20th century", True),
        ("1976", "between 1970 and 1980", True),
        ("1976", "after 1980", False),
        ("1976", "1976", False),
        ("12 May 1976", "May 1976", True),
        ("12 May 1976", "June 1976", False),
        ("1,200", "more than 1,000", True),
        ("1,200", "fewer than 1,000", False),
        ("1200", "about 1300", True),
        ("1200", "about 1500", False),
        ("Alder", "England", True),
        ("Alder", "Durham", False),
        ("Alder", "a market town", None),
        ("1976", "a distant year", None),
    ],
)
def test_blurs_that_a_program_decides_on(entity: str, value: str, expected: bool | None) -> None:
    assert check_blur(entity, value, PLACES) is expected
