"""Tables of the benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.flaky.simulate import REPEATS, CaseResult
from taskdb.records.difficulty import compute_wilson_interval


def render_table(title: str, results: Sequence[CaseResult]) -> str:
    """Return a Markdown table: shares of caught and of slipped tests in percent, with Wilson's 95 % intervals."""
    numbers = [f"{what} at {number}" for what in ("caught", "slipped") for number in REPEATS]
    lines = [f"| {' | '.join((title, 'a run fails', 'tests', *numbers))} |", "|---" * (3 + len(numbers)) + "|"]
    for result in results:
        counts = result.counts
        cells = [_format_share(counts[number].caught, counts[number].tests) for number in REPEATS]
        cells += [_format_share(counts[number].slipped, counts[number].tests) for number in REPEATS]
        lines.append(f"| {' | '.join((result.name, result.rate, str(counts[REPEATS[0]].tests), *cells))} |")
    return "\n".join(lines) + "\n"


def _format_share(number: int, tests: int) -> str:
    low, high = compute_wilson_interval(number, tests)
    return f"{100 * number / tests:.0f} ({100 * low:.0f}-{100 * high:.0f})"
