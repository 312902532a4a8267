"""Whether a text is in English, by its letters and its most frequent words. No dictionary is needed for that."""

from __future__ import annotations

import re

MIN_LETTERS = 12
"""Fewer letters do not show a script."""
MIN_WORDS = 8
"""Fewer words need not have any of `FREQUENT_WORDS`."""
MAX_FOREIGN = 0.15
"""Largest share of letters that are not of the Latin alphabet's 26, 0..1; names may have some."""
MIN_FREQUENT = 0.05
"""Least share of words that are frequent, 0..1; English prose has about 0.3, lists of names less."""
_FREQUENT = (
    "a about all and any are at be been but by can could each every find for from get give has have help how if into "
    "is it its let like make must my need new not of on only or our out please set she should show that the their them "
    "then there they this to up update us want what when where which who will with would you your"
)
FREQUENT_WORDS = frozenset(_FREQUENT.split())
"""Without those that are as frequent in German or Dutch."""
_WORD = re.compile(r"[^\W\d_]+")


def find_script_problem(text: str) -> str:
    """Return that a text is written in other letters than English letters of English, empty where it is not."""
    letters = [letter for letter in text if letter.isalpha()]
    if len(letters) < MIN_LETTERS:
        return ""
    share = sum(not letter.isascii() for letter in letters) / len(letters)
    return f"{share:.0%} of its letters are not English" if share > MAX_FOREIGN else ""


def find_language_problem(text: str) -> str:
    """Return why a text is not English, empty where nothing speaks against it."""
    if problem := find_script_problem(text):
        return problem
    words = [word.lower() for word in _WORD.findall(text)]
    if len(words) >= MIN_WORDS and sum(word in FREQUENT_WORDS for word in words) / len(words) < MIN_FREQUENT:
        return "it has hardly any of the most frequent English words"
    return ""
