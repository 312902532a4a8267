"""Selection of a few diverse mutations from many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mutation.mutation import Mutation


def select_diverse(mutations: Iterable[Mutation], number: int) -> list[Mutation]:
    """Return at most `number` mutations that differ as much as possible in operator, then line, then file.

    Deterministic: among equally good mutations the first is chosen.
    """
    remaining = list(mutations)
    operators: Counter[str] = Counter()
    lines: Counter[tuple[str, int]] = Counter()
    files: Counter[str] = Counter()
    chosen: list[Mutation] = []
    while remaining and len(chosen) < number:
        best = min(
            remaining,
            key=lambda mutation: (
                operators[mutation.operator],
                lines[mutation.path, mutation.line],
                files[mutation.path],
            ),
        )
        remaining.remove(best)
        chosen.append(best)
        operators[best.operator] += 1
        lines[best.path, best.line] += 1
        files[best.path] += 1
    return chosen
