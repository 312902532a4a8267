"""Grams of eight words, by which texts of benchmarks are recognised (as in the decontamination of GPT-3 and others)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.files import read_text
from core.minhash import hash_feature

GRAM_WORDS = 8
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class GramIndex:
    """Hash of each gram -> where it is from."""

    places: dict[int, str] = field(default_factory=dict)

    def find(self, texts: Iterable[str]) -> tuple[str, str] | None:
        """Return the first gram of the texts that is known, and its place; None where none is."""
        if not self.places:
            return None
        for text in texts:
            for gram in iterate_grams(text, GRAM_WORDS):
                if place := self.places.get(hash_feature(gram)):
                    return gram, place
        return None


def iterate_grams(text: str, size: int) -> Iterator[str]:
    """Yield each sequence of `size` words, in lower case, without punctuation."""
    words = _WORD.findall(text.lower())
    for at in range(len(words) - size + 1):
        yield " ".join(words[at : at + size])


def load_gram_index(files: Iterable[str]) -> GramIndex:
    """Return the grams of the texts of files: every string of JSON or JSON lines, or a plain text.

    Raises:
        InputError: a file cannot be read.
    """
    index = GramIndex()
    for name in files:
        path = Path(name)
        what, advice = f"--simulate-benchmarks: cannot read {path}", "name files of texts, JSON or JSON lines"
        content = read_text(path, what, encoding="utf-8-sig", advice=advice)
        for text in _iterate_texts(content):
            for gram in iterate_grams(text, GRAM_WORDS):
                index.places.setdefault(hash_feature(gram), path.name)
    return index


def _iterate_texts(content: str) -> Iterator[str]:
    whole = _load_or_none(content)
    values = [whole] if whole is not None else [_load_or_none(line) for line in content.splitlines() if line.strip()]
    if None in values:
        yield content  # a plain text: its grams may go over the ends of lines
        return
    for value in values:
        yield from _iterate_strings(value)


def _load_or_none(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _iterate_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _iterate_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_strings(inner)
