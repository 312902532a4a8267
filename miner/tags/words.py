"""Features of a title and a text: words, pairs of words, and the groups of `lexicon.py` that contain them.

The names of features are stored in `weights.json`. `0:fix` is a title's first word, `t:fix` a word of the title,
`t:off by` a pair, `b:fix` a word of the text; `T:repair` and `B:repair` stand for a word in title or text of the group
`repair`, and `T:repair+prose` that the title has words of both groups.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from miner.git import messages
from miner.tags.lexicon import GROUPS, QUALIFIED_GROUPS

MAX_WORDS = 150
"""Words of a text that are read; the beginning names the topic."""

_WORD = re.compile(r"[a-z]+(?:'t)?")
_NOISE = re.compile(r"https?://\S+|\b[0-9a-f]{12,}\b|^Merge .*'(?=\S+')|\S+@\S+")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""), ("e", ""))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return a word without its ending, roughly: fixes, fixed and fixing are `fix`."""
    for ending, rest in _ENDINGS:
        if word.endswith(ending) and not word.endswith("ss"):
            cut = word[: len(word) - len(ending)] + rest
            if len(cut) >= 3:
                word = cut
                break
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl" else word


_GROUPS_OF: dict[str, tuple[str, ...]] = {}
for _name, _words in GROUPS.items():
    for _each in _words.split():
        _GROUPS_OF[stem(_each)] = (*_GROUPS_OF.get(stem(_each), ()), _name)


def split_message(message: str) -> tuple[str, str]:
    """Return title and text of a commit message; of a plain branch merge the first line."""
    title, body = messages.extract_text(message)
    return title or message.strip().partition("\n")[0], body


def extract_features(title: str, body: str) -> dict[str, str]:
    """Return the features of a title and a text (either may be empty), each with the words that have it."""
    features: dict[str, str] = {}
    _add_title_features(split_words(title), features)
    seen = 0
    for word in split_words(body[:4000]):
        short = stem(word)
        features.setdefault(f"b:{short}", word)
        for group in _GROUPS_OF.get(short, ()):
            features.setdefault(f"B:{group}", word)
        seen += 1
        if seen == MAX_WORDS:
            break
    if not seen:
        features["no-text"] = ""
    return features


def _add_title_features(words: list[str], features: dict[str, str]) -> None:
    short = [stem(word) for word in words]
    if short:
        features[f"0:{short[0]}"] = words[0]
    for word, whole in zip(short, words, strict=True):
        features.setdefault(f"t:{word}", whole)
        for group in _GROUPS_OF.get(word, ()):
            features.setdefault(f"T:{group}", whole)
    for (previous, first), (two, second) in pairwise(zip(short, words, strict=True)):
        features.setdefault(f"t:{previous} {two}", f"{first} {second}")
    for group in QUALIFIED_GROUPS:
        if "T:repair" in features and f"T:{group}" in features:
            features[f"T:repair+{group}"] = f"{features['T:repair']} ... {features[f'T:{group}']}"
    if short and not any(key.startswith("T:") for key in features):
        features["no-group"] = ""
    if len(short) < 4:
        features["short-title"] = " ".join(words)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without addresses and hashes."""
    return _WORD.findall(_NOISE.sub(" ", text).lower())
