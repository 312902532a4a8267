"""MinHash with banded keys, which selects the pairs of sets that are worth comparing.

After Broder (1997) and Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 3. Two sets without a common
key are not similar; whether two with a common key are is decided by their exact Jaccard index. The keys are stored in
databases, so their definition must never change: it is written out here, without a numerical library (the usual library
takes three CPU seconds and a hundred megabytes to import).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from random import Random

BANDS = 16
ROWS = 4
"""A pair of similarity s shares a key with probability 1 - (1 - s^ROWS)^BANDS: 0.64 at 0.5, 0.99 at 0.7, 1 at 0.9."""

_PRIME = (1 << 61) - 1
_RANDOM = Random(20240229)  # noqa: S311 - fixed coefficients, no secret
_PERMUTATIONS = [(_RANDOM.randrange(1, _PRIME), _RANDOM.randrange(_PRIME)) for _ in range(BANDS * ROWS)]

Features = frozenset[int]


def compute_jaccard_index(features: Features, other: Features) -> float:
    """Return the Jaccard index of two sets; 0 when either is empty."""
    shared = len(features & other)
    return shared / (len(features) + len(other) - shared) if shared else 0.0


def hash_feature(text: str) -> int:
    """Return the number that stands for a text in a set of features."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).digest()) % _PRIME


def compute_keys(kind: str, features: Iterable[int]) -> Iterator[int]:
    """Yield the keys of a set, 63-bit numbers; sets of different kinds share none, and an empty set has none."""
    if not features:
        return
    least = [min((a * x + b) % _PRIME for x in features) for a, b in _PERMUTATIONS]
    for band in range(BANDS):
        text = f"{kind} {band} {least[band * ROWS : band * ROWS + ROWS]}"
        yield int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1
