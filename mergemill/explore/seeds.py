"""Seeds of walks: the lines of a file, or titles of pages drawn by a hash."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from core.errors import InputError, UsageError
from core.files import read_text
from explorers.corpora.corpus import CorpusReader

SAMPLE = re.compile(r"sample:(\d+)")


def read_seeds(word: str, corpus: CorpusReader, draw: int) -> list[str]:
    """Return the seeds that a word stands for, each once, in their order.

    Args:
        word: file with a seed a line (`#` begins a comment), or `sample:N` for N titles of pages.
        corpus: the corpus.
        draw: number of the draw; another number gives another sample.

    Raises:
        UsageError: it is neither.
        InputError: the file cannot be read or has no seed.
    """
    if match := SAMPLE.fullmatch(word):
        return _draw_titles(corpus, int(match[1]), draw)
    if not word:
        raise UsageError("--seeds is missing", advice="name a file with a seed a line, or sample:N")
    lines = read_text(Path(word), f"the seeds {word} cannot be read", advice="or draw them: sample:N").splitlines()
    seeds = [" ".join(line.split()) for line in lines]
    kept = list(dict.fromkeys(seed for seed in seeds if seed and not seed.startswith("#")))
    if not kept:
        raise InputError(f"{word} has no seed", advice="write a seed a line")
    return kept


def _draw_titles(corpus: CorpusReader, n: int, draw: int) -> list[str]:
    """Return the titles of the pages with the least hashes: a larger sample begins with a smaller sample."""
    titles = {page.title for page in corpus}
    return sorted(titles, key=lambda title: hashlib.sha256(f"{draw}\n{title}".encode(errors="replace")).digest())[:n]
