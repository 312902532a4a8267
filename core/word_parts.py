"""Words of program text and prose, so that texts of different projects can be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import log

MIN_CHARS = 4
"""Letters of a word that counts; shorter ones are in every text."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_COMMON_TEXT = """
about above after again also argument arguments because been before being between both break bugs call called case
cases catch change changed class code could declare default does done each else error even except exception expected
export extends false file files final first following from function given gives have here import imports index init
instead into issue its itself just kwargs lambda last like line list main make method module more must name never none
null object only other over package param params pass please private protected public raise raises return returned
returns same self should since some static still string such test tested testing tests than that their them then there
these they this those throw throws todo true type types typing used using value values void what when where which
while will with without works would wrong yield your
"""
_COMMON = frozenset(_COMMON_TEXT.split())
"""Words of most programs and issues, which show no similarity."""


def list_word_parts(text: str) -> Counter[str]:
    """Return the words of a text in lower case with their numbers; `parseHttp_header` has three.

    Short and common words are left out, and a plural in `s` is the same word as its singular.
    """
    words = (match[0].lower() for match in _WORD.finditer(text))
    stems = (word[:-1] if word.endswith("s") and not word.endswith("ss") else word for word in words)
    return Counter(word for word in stems if len(word) >= MIN_CHARS and word not in _COMMON)


def weigh_words(texts: Iterable[Collection[str]]) -> dict[str, float]:
    """Return word -> its weight: the fewer of some texts have it, the more it shows (inverse document frequency)."""
    sets = [set(text) for text in texts]
    counts = Counter(word for words in sets for word in words)
    return {word: 1 + log((1 + len(sets)) / (1 + count)) for word, count in counts.items()}


def compare_words(ours: Collection[str], theirs: Collection[str], weights: Mapping[str, float]) -> float:
    """Return the cosine similarity of two sets of words, 0..1; words without a weight have the weight 1."""
    lengths = [sum(weights.get(word, 1.0) ** 2 for word in set(words)) for words in (ours, theirs)]
    shared = sum(weights.get(word, 1.0) ** 2 for word in set(ours) & set(theirs))
    return shared / (lengths[0] * lengths[1]) ** 0.5 if all(lengths) else 0.0
