"""A few of many changes: of all operators, and all over the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from derivers.mutation.change import Change


def spread(found: Iterable[Change], number: int) -> list[Change]:
    """At most `number` changes, unlike each other: by turns of each operator, on lines and files not yet taken.

    Deterministic: of equally good ones the first.
    """
    left = list(found)
    operators: Counter[str] = Counter()
    places: Counter[tuple[str, int]] = Counter()
    files: Counter[str] = Counter()
    chosen: list[Change] = []
    while left and len(chosen) < number:
        best = min(left, key=lambda one: (operators[one.operator], places[one.path, one.line], files[one.path]))
        left.remove(best)
        chosen.append(best)
        operators[best.operator] += 1
        places[best.path, best.line] += 1
        files[best.path] += 1
    return chosen
