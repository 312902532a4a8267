"""Similarity of patches and problem statements, and the index keys that find similar patches among a million.

A patch is the set of its added and removed lines without whitespace and file names; a problem statement is the set of
its three-word sequences. Similarity is the exact Jaccard index of two such sets. MinHash (`core.minhash`) only
selects the pairs to compare; its keys are stored in databases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from core.minhash import Features, compute_jaccard_index, compute_keys, hash_feature
from core.settings.mining import MiningSettings

MIN_LINES = 4
MIN_SEQUENCES = 20
"""Smaller sets are similar by chance: `import os`, `Fix typo in the documentation`."""
MIN_CHARACTERS = 6
"""Letters and digits that a line needs to count."""

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_IGNORED_TEXT = re.compile(r"<!--.*?(?:-->|\Z)|https?://\S+|!\[[^\]]*\]\([^)]*\)", re.DOTALL)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class PatchSketch:
    """Patch and problem statement of a change as sets; a set is empty where there is too little to compare."""

    patch: Features
    statement: Features

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """63-bit numbers; two sketches without a common key are not similar."""
        return (*compute_keys("patch", self.patch), *compute_keys("statement", self.statement))

    def describe_similarity(self, other: PatchSketch, mining: MiningSettings) -> str | None:
        """Return which part is more similar than the settings allow, and how similar; None if neither is."""
        for part, ours, theirs, limit in (
            ("patch", self.patch, other.patch, mining.max_patch_similarity),
            ("statement", self.statement, other.statement, mining.max_statement_similarity),
        ):
            if (share := compute_jaccard_index(ours, theirs)) > limit:
                return f"its {part} has a similarity of {share:.2f} to that"
        return None


def build_sketch(patch: str, test_patch: str, statement: str) -> PatchSketch:
    """Build the sketch of a gold patch, a test patch (unified diffs) and a problem statement.

    Test lines are used only where the gold patch has fewer than MIN_LINES: a one-line fix is identified by its tests.
    """
    lines = frozenset(map(hash_feature, _list_changed_lines(patch)))
    if len(lines) < MIN_LINES:
        lines |= frozenset(map(hash_feature, _list_changed_lines(test_patch)))
    words = _WORD.findall(_IGNORED_TEXT.sub(" ", statement).lower())
    sequences = frozenset(hash_feature(" ".join(words[at : at + 3])) for at in range(len(words) - 2))
    return PatchSketch(
        patch=lines if len(lines) >= MIN_LINES else frozenset(),
        statement=sequences if len(sequences) >= MIN_SEQUENCES else frozenset(),
    )


def _list_changed_lines(patch: str) -> Iterator[str]:
    """Yield added and removed lines with their sign, without whitespace; short lines are left out."""
    left = 0
    for line in patch.split("\n"):
        if left <= 0:
            match = _HUNK.match(line)
            left = sum(int(n or 1) for n in match.groups()) if match else 0
            continue
        left -= 2 if line[:1] in (" ", "") else 1 if line[0] in "+-" else 0
        text = "".join(line[1:].split())
        if line[:1] in ("+", "-") and sum(map(str.isalnum, text)) >= MIN_CHARACTERS:
            yield line[0] + text
