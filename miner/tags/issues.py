"""Features of an issue's title and text: those of `words.py`, pairs of words, and the form of the text."""

from __future__ import annotations

import re
from itertools import pairwise

from miner.tags.words import extract_features, split_words, stem

MAX_PAIRS = 150

_HEADING = re.compile(r"^\s*(?:#{1,6}|\*\*)\s*(.+?)\W*$", re.MULTILINE)
_MARKUP_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("has-code", re.compile(r"```")),
    ("has-trace", re.compile(r"Traceback|Error:|Exception|\bat \S+:\d+")),
    ("has-picture", re.compile(r"!\[|<img|user-images")),
    ("has-version", re.compile(r"\d+\.\d+\.\d+")),
)


def extract_issue_features(title: str, body: str) -> dict[str, str]:
    """Return the features of an issue, each with the words that have it.

    Besides those of `extract_features`: `h:` a heading of the form, `p:` a pair of words of the text, `head:` the part
    before the title's colon or in its brackets, and marks such as `has-trace`, `title?`, `long-2`.
    """
    previous = extract_features(title, body)
    for heading in _HEADING.findall(body[:4000])[:15]:
        previous.setdefault("h:" + " ".join(stem(word) for word in split_words(heading)[:4]), heading[:60])
    words = split_words(body[:2500])[:MAX_PAIRS]
    for word, two in pairwise(words):
        previous.setdefault(f"p:{stem(word)} {stem(two)}", f"{word} {two}")
    previous |= {name: "" for name, pattern in _MARKUP_PATTERNS if pattern.search(body)}
    if "?" in title:
        previous["title?"] = "?"
    if head := re.match(r"\[([^\]]+)\]|(\w+):", title):
        previous[f"head:{(head[1] or head[2]).lower()[:30]}"] = head[0]
    length = len(body.split())
    previous[f"long-{(length > 20) + (length > 60) + (length > 200)}"] = f"{length} words"
    previous[f"asks-{min(3, body.count('?'))}"] = ""
    return previous
