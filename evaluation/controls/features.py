"""Features of values by which a reader could find the true one: where else they stand, their size, how usual they look.

The values of a draw are chosen so that the true one is as likely first as last in each feature
(`guest.controls.choices`), and the odds of a reader that goes by one of them are part of the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import log1p, prod, sqrt
from random import Random
from typing import Any

from backends.git import GitRepository
from evaluation.controls.blocks import TOKEN, TestFile, count_tokens, count_trigrams
from evaluation.controls.planning import MAX_MENUS, Menu
from guest.controls.choices import choose_values
from languages.paths import is_source, is_test_file

_DRAWS = 100
"""Draws by which the odds of readers are compared between menus."""
_FINAL_DRAWS = 300
"""Draws by which the odds of the chosen menus are measured."""
SHOWN_ODDS = (_FINAL_DRAWS + 1) / (_FINAL_DRAWS + 2)
"""Odds of a reader who always finds the true instance, by the rule of succession: 1 stands for no controls at all."""
_SURPRISE = 2.5
"""Standard deviations above chance from which a reader counts as better than chance."""
_SIMILAR = 1.25
"""Ratio to the lowest odds up to which a menu is kept."""
_MAX_TREE_FILES = 400
_MAX_TREE_BYTES = 4_000_000
_MAX_DIGITS = 15
_CONTEXT_BYTES = 8
"""Bytes in which the characters next to a site are looked for."""


@dataclass(frozen=True, kw_only=True)
class TreeCounts:
    """Tokens of the agent's tree, and three characters in a row, with the numbers of their places."""

    tokens: Mapping[str, int] = field(default_factory=dict)
    trigrams: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Counts of tokens and trigrams around a site, and the characters before and after it."""

    test: Mapping[str, int]
    """Tokens of the rest of its test."""
    file: Mapping[str, int]
    """Tokens of the rest of its file."""
    file_trigrams: Mapping[str, int]
    before: str
    after: str
    tree: TreeCounts

    @classmethod
    def read(
        cls, file: TestFile, block: tuple[int, int], spans: Sequence[tuple[int, int]], tree: TreeCounts
    ) -> Surroundings:
        """Return the surroundings of a site. `block`: first byte and end of the test."""
        start, end = block
        block_text = file.source[start:end]
        test = bytearray(block_text)
        for first, last in spans:
            test[first - start : last - start] = b" " * (last - first)
        first, last = spans[0]
        # The file is read once, however many sites it has.
        return cls(
            test=count_tokens([bytes(test)]),
            file=file.tokens - count_tokens([block_text]),
            # Also those that begin before the test or end after it.
            file_trigrams=file.trigrams - count_trigrams([file.source[max(0, start - 2) : end + 2]]),
            before=file.source[max(0, first - _CONTEXT_BYTES) : first].decode(errors="replace")[-2:],
            after=file.source[last : last + _CONTEXT_BYTES].decode(errors="replace")[:2],
            tree=tree,
        )

    def describe(self, text: str) -> list[float]:
        """Return the features of a value."""
        tokens = TOKEN.findall(text)
        number = text.strip("'\"")
        written = f"{self.before}{text}{self.after}".encode()
        return [
            _average(self.test.get(token, 0) for token in tokens),
            _average(self.file.get(token, 0) for token in tokens),
            round(_average(log1p(self.tree.tokens.get(token, 0)) for token in tokens), 3),
            float(number) if number.isdecimal() and len(number) <= _MAX_DIGITS else float(len(text)),
            float(len(number) - len(number.rstrip("0"))) if number[:1].isdigit() else 0.0,
            _average(first <= second for first, second in pairwise(tokens)),
            round(_average(log1p(self._count(trigram)) for trigram in count_trigrams([written])), 2),
        ]

    def _count(self, trigram: str) -> int:
        return self.file_trigrams.get(trigram, 0) + self.tree.trigrams.get(trigram, 0)


def _average(numbers: Iterable[float]) -> float:
    values = list(numbers)
    return round(sum(values) / len(values), 3) if values else 0.0


def count_tree(repository: GitRepository, commit: str) -> TreeCounts:
    """Return the counts of the sources and tests of a commit; of a large tree those of its first files."""
    entries = [
        entry
        for entry in repository.ls_tree(commit)
        if entry.mode.startswith("100") and (is_source(entry.path) or is_test_file(entry.path))
    ][:_MAX_TREE_FILES]
    contents = []
    size = 0
    for content in repository.read_blobs([entry.oid for entry in entries]):
        size += len(content)
        if size > _MAX_TREE_BYTES:
            break
        contents.append(content)
    return TreeCounts(tokens=count_tokens(contents), trigrams=count_trigrams(contents))


def compute_balance(surroundings: Surroundings, true: str, texts: Sequence[str]) -> float:
    """Return the share of other values that lie on the rarer side of the true one, in the feature that shows it best.

    0 where the true value has the most or least of some feature, 0.5 at most; equal values lie on both sides.
    """
    own, others = surroundings.describe(true), [surroundings.describe(text) for text in texts]
    shares = []
    for place, feature in enumerate(own):
        above = sum(other[place] > feature for other in others)
        below = sum(other[place] < feature for other in others)
        shares.append((min(above, below) + (len(others) - above - below) / 2) / len(others))
    return min(shares)


def select_menus(sites: Sequence[Mapping[str, Any]], menus: Sequence[Menu], random: Random) -> tuple[list[Menu], float]:
    """Return the menus in which readers find the true instance most seldom, and the odds of the best reader.

    Args:
        sites: sites of a block, with features.
        menus: combinations of sites to choose from.
        random: random of the draws.
    """
    compare = cache(lambda number, size: measure_odds(sites[number], size, random, _DRAWS))
    odds = [prod(compare(number, size) for number, size in menu) for menu in menus]
    chosen = [(menu, share) for menu, share in zip(menus, odds, strict=True) if share <= _SIMILAR * min(odds)]
    kept = [menu for menu, _ in chosen[:MAX_MENUS]]
    # A reader sees which menu was drawn, and may have another rule for each.
    measure = cache(lambda number, size: measure_odds(sites[number], size, random))
    shares = [prod(measure(number, size) for number, size in menu) for menu in kept]
    return kept, sum(shares) / len(shares)


def measure_odds(site: Mapping[str, Any], size: int, random: Random, draws: int = _FINAL_DRAWS) -> float:
    """Return the share of draws in which the best of the readers that go by one feature finds the true value of a site.

    It is 1/size unless a reader is better than that by more than chance explains. In a grid of sites a reader has a
    rule for each, so their odds are multiplied.

    Args:
        site: a site with features.
        size: number of its values that are drawn, the true one among them.
        random: random of the draws.
        draws: number of draws.
    """
    rates = [0.0] * (2 * len(site["features"]))
    for _ in range(draws):
        values = [site["features"], *(value["features"] for value in choose_values(site, size - 1, random))]
        for place, column in enumerate(zip(*values, strict=True)):
            # Values that are equal for a reader are equally likely to be taken.
            for way, extreme in enumerate((max(column), min(column))):
                rates[2 * place + way] += (column[0] == extreme) / column.count(extreme)
    chance, best = 1 / size, max(rates, default=0.0)
    if best / draws <= chance + _SURPRISE * sqrt(chance * (1 - chance) / draws):
        return chance
    # By the rule of succession (see `SHOWN_ODDS`).
    return max(chance, (best + 1) / (draws + 2))
