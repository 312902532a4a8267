"""How far several opinions agree, over what each says in one word.

The words are those of every test (stated: yes, partly, no), whether anything leaks, whether anything is missing, and
whether each of the two levels is in its upper half, which is how people's labels are read as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from taskdb.verdicts import Opinion

UPPER = 0.5
"""A level of 2 or 3 of 3 lies above."""
Words = dict[str, str]


def words(opinion: Opinion) -> Words:
    """What an opinion says, item by item."""
    said: Words = {f"stated {test.test}": test.stated for test in opinion.tests}
    said |= {"leaks": str(bool(opinion.leaks)), "missing": str(bool(opinion.missing))}
    for name in ("underspecified", "unfair_tests"):
        level = getattr(opinion, name)
        if level is not None:
            said[name] = str(level > UPPER)
    return said


def share(opinions: Sequence[Opinion]) -> float | None:
    """Share of the pairs of opinions that say the same of an item, over all items, 0..1; None with less than two."""
    pairs = [(one, other) for one, other in combinations(map(words, opinions), 2)]
    same = [one[item] == other[item] for one, other in pairs for item in one.keys() & other.keys()]
    return sum(same) / len(same) if same else None


def alpha(opinions: Sequence[Opinion]) -> float | None:
    """Krippendorff's alpha for nominal data: 1 agreement, 0 as by chance, below 0 worse.

    None with less than two opinions, and where all say the same word of every item: there is no chance to compare with.
    After K. Krippendorff, Content Analysis (2004), chapter 11.
    """
    said = [words(opinion) for opinion in opinions]
    units = [[one[item] for one in said if item in one] for item in dict.fromkeys(key for one in said for key in one)]
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
