"""Tables of the benchmark: shares by language and half with intervals, failures by reason, one row per repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.environments.measure import STEPS, EnvironmentResult
from taskdb.records.difficulty import compute_wilson_interval


def count_reached(rows: Sequence[EnvironmentResult], step: str) -> int:
    """Return how many repositories reached the step."""
    return sum(row.step != "" and STEPS.index(row.step) >= STEPS.index(step) for row in rows)


def render_markdown(rows: Sequence[EnvironmentResult]) -> str:
    """Return all tables in Markdown."""
    return (
        "\n\n".join(
            "\n".join(lines)
            for lines in (
                _render_shares(rows),
                _render_failures(rows),
                _render_causes([row for row in rows if row.reason]),
                _render_repositories(rows),
            )
        )
        + "\n"
    )


def _render_shares(rows: Sequence[EnvironmentResult]) -> Iterator[str]:
    names = ("language", "half", "repositories", *STEPS, "share", "95 %", "seconds", "MB shared", "MB own")
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    groups = [*dict.fromkeys(row.group for row in rows)]
    halves = _list_halves(rows)
    for group in [*groups, "all"] if len(groups) > 1 else groups:
        for half in (*halves, "both") if len(halves) > 1 else halves:
            part = [row for row in rows if group in (row.group, "all") and half in (row.half, "both")]
            if part:
                yield _format_share(group, half, part)


def _format_share(group: str, half: str, rows: Sequence[EnvironmentResult]) -> str:
    counts = [count_reached(rows, step) for step in STEPS]
    low, high = compute_wilson_interval(counts[-1], len(rows))
    good = [row for row in rows if not row.reason]
    middle = [
        f"{median(column):.{n}f}" if column else ""
        for n, column in (
            (0, [row.seconds for row in good]),
            (0, [row.shared_mb for row in good]),
            (2, [row.own_mb for row in good]),
        )
    ]
    cells = [group, half, len(rows), *counts, f"{counts[-1] / len(rows):.0%}", f"{low:.0%}-{high:.0%}", *middle]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _render_failures(rows: Sequence[EnvironmentResult]) -> Iterator[str]:
    names = _list_halves(rows)
    yield f"| reason | {' | '.join(names)} | repositories |"
    yield "|---" * (len(names) + 2) + "|"
    for reason, _ in Counter(row.reason for row in rows if row.reason).most_common():
        part = [row for row in rows if row.reason == reason]
        halves = Counter(row.half for row in part)
        counts = " | ".join(str(halves[name] or "") for name in names)
        yield f"| `{reason}` | {counts} | {', '.join(row.repo for row in part)} |"


def _render_causes(rows: Sequence[EnvironmentResult]) -> Iterator[str]:
    """Yield what the build stage says of each rejected repository."""
    yield "| repository | reason | detail |"
    yield "|---|---|---|"
    for row in rows:
        detail = " ".join(row.detail.split()).replace("|", "\\|")
        yield f"| {row.repo} | `{row.reason}` | {detail} |"


def _list_halves(rows: Sequence[EnvironmentResult]) -> list[str]:
    """Return the parts of the rows: `tune` before `held`, or `frozen`."""
    return sorted({row.half for row in rows}, reverse=True)


def _render_repositories(rows: Sequence[EnvironmentResult]) -> Iterator[str]:
    yield "| repository | language | half | commit's day | result | plan | seconds | MB shared | MB own | tests pass |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        what = f"`{row.reason}`" if row.reason else "accepted"
        version = f"{row.language} {row.version}".strip()
        tests = f"{row.passed} of {row.ran}" if row.ran else ""
        sizes = ["", ""] if row.reason else [f"{row.shared_mb:.0f}", f"{row.own_mb:.2f}"]
        cells = [row.repo, version, row.half, row.day, what, row.attempt or "", f"{row.seconds:.0f}", *sizes, tests]
        yield "| " + " | ".join(str(cell) for cell in cells) + " |"
