"""How alike two patches or two statements are, and keys by which those that may be alike are found among a million.

A patch is taken as the set of its added and removed lines, indentation, blanks and file names aside; a statement as the
set of its three-word sequences. Likeness is the Jaccard index of two such sets, exactly. MinHash with banded keys
(Broder 1997; Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3) only says which pairs are worth a
look. The keys lie in databases, so what they are made of must never change: it is written out here, in a few lines
that need no numerical library (the usual one costs three CPU seconds and a hundred megabytes to import).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

from mergemill.config import Settings

BANDS = 16
ROWS = 4
"""A pair of likeness s shares a key with probability 1 - (1 - s^ROWS)^BANDS: 0.64 at 0.5, 0.99 at 0.7, 1 at 0.9."""
MIN_LINES = 4
MIN_SEQUENCES = 20
"""Sets smaller than that are alike by chance: `import os`, `Fix typo in the documentation`."""
MIN_SIGNS = 6
"""Letters and digits of a line that says anything."""

_PRIME = (1 << 61) - 1
_RANDOM = Random(20240229)  # noqa: S311 - fixed coefficients, no secret
_PERMUTATIONS = [(_RANDOM.randrange(1, _PRIME), _RANDOM.randrange(_PRIME)) for _ in range(BANDS * ROWS)]
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_WORDS = re.compile(r"<!--.*?(?:-->|\Z)|https?://\S+|!\[[^\]]*\]\([^)]*\)", re.DOTALL)
_WORD = re.compile(r"\w+")

Features = frozenset[int]


@dataclass(frozen=True)
class Sketch:
    """A change's patch and statement as sets; empty where there is too little of it to compare."""

    patch: Features
    statement: Features

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """63-bit numbers: two sketches that share none are not alike."""
        return (*_keys("patch", self.patch), *_keys("statement", self.statement))

    def likeness(self, other: Sketch, settings: Settings) -> str | None:
        """What of two changes is more alike than the settings allow, and how much; None when they are two changes."""
        for what, ours, theirs, most in (
            ("patch", self.patch, other.patch, settings.max_patch_similarity),
            ("statement", self.statement, other.statement, settings.max_statement_similarity),
        ):
            if (found := similarity(ours, theirs)) > most:
                return f"its {what} is {found:.2f} like that"
        return None


def sketch(patch: str, test_patch: str, statement: str) -> Sketch:
    """The sketch of a gold patch and a test patch (unified diffs) and a problem statement.

    The tests are only looked at where the gold patch alone says too little: a fix of one line is told by its tests.
    """
    lines = frozenset(map(_hashed, _lines(patch)))
    if len(lines) < MIN_LINES:
        lines |= frozenset(map(_hashed, _lines(test_patch)))
    words = _WORD.findall(_NO_WORDS.sub(" ", statement).lower())
    sequences = frozenset(_hashed(" ".join(words[at : at + 3])) for at in range(len(words) - 2))
    return Sketch(
        patch=lines if len(lines) >= MIN_LINES else frozenset(),
        statement=sequences if len(sequences) >= MIN_SEQUENCES else frozenset(),
    )


def similarity(one: Features, other: Features) -> float:
    """The Jaccard index of two sets, 0 when one is empty."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def _lines(patch: str) -> Iterator[str]:
    """Added and removed lines with their sign, without blanks; those that say something."""
    left = 0
    for line in patch.split("\n"):
        if left <= 0:
            found = _HUNK.match(line)
            left = sum(int(n or 1) for n in found.groups()) if found else 0
            continue
        left -= 2 if line[:1] in (" ", "") else 1 if line[0] in "+-" else 0
        said = "".join(line[1:].split())
        if line[:1] in ("+", "-") and sum(map(str.isalnum, said)) >= MIN_SIGNS:
            yield line[0] + said


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()) % _PRIME


def _keys(kind: str, features: Iterable[int]) -> Iterator[int]:
    if not features:
        return
    least = [min((a * x + b) % _PRIME for x in features) for a, b in _PERMUTATIONS]
    for band in range(BANDS):
        text = f"{kind} {band} {least[band * ROWS : band * ROWS + ROWS]}"
        yield int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
