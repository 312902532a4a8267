"""Benchmarks that no question may share: runs of 13 words of their texts, and hashes of their pairs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError
from core.files import read_text
from explorers.answering.checks import normalize_answer
from explorers.search.tokens import Tokenizer

WORDS = 13
"""Words of a run, as in GPT-3 (arXiv 2005.14165)."""


@dataclass(frozen=True, kw_only=True)
class Benchmarks:
    """Runs of words, and sha256 (hex) of question and answer on a line each, normalised as answers are."""

    runs: frozenset[tuple[str, ...]] = frozenset()
    pairs: frozenset[str] = frozenset()

    def find_overlap(self, question: str, answer: str, tokenizer: Tokenizer) -> str:
        """Return the part that a question shares with a benchmark; empty for nothing."""
        if hash_pair(question, answer) in self.pairs:
            return "the pair of question and answer"
        run = next((run for run in iterate_runs(tokenizer.tokenize(question)) if run in self.runs), None)
        return f"the words {' '.join(run)}" if run else ""


def hash_pair(question: str, answer: str) -> str:
    """Return the sha256 (hex) of a normalised question and answer."""
    return hashlib.sha256(f"{normalize_answer(question)}\n{normalize_answer(answer)}".encode()).hexdigest()


def iterate_runs(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each run of WORDS tokens."""
    for at in range(len(tokens) - WORDS + 1):
        yield tuple(tokens[at : at + WORDS])


def read_benchmarks(path: Path, tokenizer: Tokenizer) -> Benchmarks:
    """Return the benchmarks of a file of JSON lines: `question` with `answer`, or `sha256` of a pair.

    Raises:
        InputError: it cannot be read, or a line has neither.
    """
    runs: set[tuple[str, ...]] = set()
    pairs: set[str] = set()
    lines = read_text(path, f"--explore-benchmarks: {path} cannot be read").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _read_row(line, f"{path}:{number}")
        if "sha256" in row:
            pairs.add(row["sha256"])
        else:
            runs.update(iterate_runs(tokenizer.tokenize(row["question"])))
            pairs.add(hash_pair(row["question"], row.get("answer", "")))
    return Benchmarks(runs=frozenset(runs), pairs=frozenset(pairs))


def _read_row(line: str, place: str) -> dict[str, str]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{place}: no JSON") from error
    names = [name for name in ("sha256", "question") if isinstance(row, dict) and isinstance(row.get(name), str)]
    if not names or not isinstance(row.get("answer", ""), str):
        raise InputError(f"{place}: neither a question nor a sha256", advice="rows are {question, answer} or {sha256}")
    return {str(name): value for name, value in row.items() if isinstance(value, str)}
