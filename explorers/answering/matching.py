"""Quotes and names in texts: verbatim but for white space, or in any case, number, width and form of characters."""

from __future__ import annotations

from collections.abc import Iterable

from core.quotes import is_quoted_from, normalize_whitespace
from explorers.answering.values import find_dates, find_numbers, parse_date, parse_number
from explorers.search.tokens import HAS_CJK, Tokenizer, normalize_text

MIN_CJK_QUOTE = 4
"""Least characters of a quote in a script without spaces, whose characters are words."""


def is_verbatim(quote: str, text: str) -> bool:
    """Return whether a quote stands in a text but for white space, and is long enough."""
    if HAS_CJK.search(quote):
        words = normalize_whitespace(quote)
        return len(words) >= MIN_CJK_QUOTE and words in normalize_whitespace(text)
    return is_quoted_from(quote, text)


def is_mentioned(name: str, text: str, tokenizer: Tokenizer) -> bool:
    """Return whether a name stands in a text: the same stems in a row, or the same value.

    Characters of scripts without spaces are compared as they stand, in their simplified form. An empty name stands
    nowhere.
    """
    date, number = parse_date(name), parse_number(name)
    if date is not None and any(date.covers(other) for other in find_dates(text)):
        return True
    if date is not None or number is not None:
        return number in find_numbers(text)
    if HAS_CJK.search(name):
        return _keep_letters(name) in _keep_letters(text)
    wanted, words = tokenizer.tokenize(name), tokenizer.tokenize(text)
    if not wanted:
        return False
    n = len(wanted)
    return any(words[at : at + n] == wanted for at in range(len(words) - n + 1))


def find_mention(names: Iterable[str], text: str, tokenizer: Tokenizer) -> str:
    """Return the first of some names that stands in a text; empty for none."""
    return next((name for name in names if name.strip() and is_mentioned(name, text, tokenizer)), "")


def _keep_letters(text: str) -> str:
    return "".join(character for character in normalize_text(text) if character.isalnum())
