"""Agreement of several opinions, item by item.

Items are each test (stated: yes, partly, no), whether anything leaks, whether anything is missing, and whether each of
the two levels is in its upper half, which is also how the annotators' labels are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from taskdb.records.verdicts import Opinion

UPPER = 0.5
"""Threshold of the upper half: levels 2 and 3 of 3 are above it."""
OpinionItems = dict[str, str]


def list_items(opinion: Opinion) -> OpinionItems:
    """Return the values of an opinion's items."""
    items: OpinionItems = {f"stated {test.test}": test.stated for test in opinion.tests}
    items |= {"leaks": str(bool(opinion.leaks)), "missing": str(bool(opinion.missing))}
    for name in ("underspecified", "unfair_tests"):
        level = getattr(opinion, name)
        if level is not None:
            items[name] = str(level > UPPER)
    return items


def compute_agreement(opinions: Sequence[Opinion]) -> float | None:
    """Return the share of pairs of opinions with equal values over all items, 0..1; None for less than two opinions."""
    pairs = [(items, other) for items, other in combinations(map(list_items, opinions), 2)]
    same = [items[item] == other[item] for items, other in pairs for item in items.keys() & other.keys()]
    return sum(same) / len(same) if same else None


def compute_alpha(opinions: Sequence[Opinion]) -> float | None:
    """Return Krippendorff's alpha for nominal data: 1 is agreement, 0 chance, below 0 worse than chance.

    None for fewer than two opinions, and where all values are equal, since chance agreement is undefined then.
    K. Krippendorff, Content Analysis (2004), chapter 11.
    """
    items = [list_items(opinion) for opinion in opinions]
    units = [
        [opinion[item] for opinion in items if item in opinion]
        for item in dict.fromkeys(key for opinion in items for key in opinion)
    ]
    units = [unit for unit in units if len(unit) > 1]
    totals = Counter(word for unit in units for word in unit)
    n = totals.total()
    expected = sum(a * b for (_, a), (_, b) in combinations(totals.items(), 2)) * 2
    if not expected:
        return None
    observed = sum(
        2 * sum(a * b for a, b in combinations(Counter(unit).values(), 2)) / (len(unit) - 1) for unit in units
    )
    return 1 - (n - 1) * observed / expected
