"""Published tasks against ours: `python -m benchmarks.instances --db URL [--tasks] FILE.jsonl...`.

What `mergemill run instances:FILE --db URL` came to, for each task of the files that the database has seen: its
FAIL_TO_PASS set is exactly the published one, holds more, fewer or other tests; or its tests never ran, and why. Shares
are of all tasks that came to an end, with Wilson intervals (95 %). `--tasks` prints a row for each, with what differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from languages.registry import language_of
from mergemill.errors import InputError
from miner.instances import Row, read
from miner.patches import split_published
from taskdb.queries import resolve_change, why
from taskdb.store import Store

WAITING = "waiting"
VERDICTS = ("exact", "superset", "subset", "different")


@dataclass(frozen=True, kw_only=True)
class Told:
    """One task: its verdict, or the stage and reason that ended it before its lists could be compared."""

    name: str
    language: str
    verdict: str
    detail: str


def tasks(store: Store, files: Sequence[Path]) -> Iterator[Told]:
    """Those of the files' tasks that the database has seen; `waiting`: not at an end yet."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = read(line)
            try:
                story = why(store, resolve_change(store, row.instance_id))
            except InputError:
                continue
            verdict, detail = _verdict(story)
            yield Told(name=row.instance_id, language=_language(row), verdict=verdict, detail=detail)


def _language(row: Row) -> str:
    return language_of(split_published(None, row.base_commit, row.patch, row.test_patch).gold.files) or "?"


def _verdict(story: dict[str, Any]) -> tuple[str, str]:
    published, last = story["published"], story["events"][-1]
    if published is None:
        return (WAITING, "") if last["ok"] else (f"{last['stage']}: {last['reason']}", last["detail"])
    f2p = published["fail_to_pass"]
    told = [f"{word} {len(f2p[word])}: {f2p[word][0]}" for word in ("missing", "extra") if f2p[word]]
    return published["verdict"], "; ".join(told)


def share(hits: int, n: int) -> str:
    """`9 of 12, 75 % (47-91)`."""
    if not n:
        return "-"
    interval = binomtest(hits, n).proportion_ci(method="wilson")
    return f"{hits} of {n}, {hits / n:.0%} ({interval.low:.0%}-{interval.high:.0%})"


def table(told: Sequence[Told]) -> Iterator[str]:
    """Markdown: a row for each language, and the reasons of those that did not run."""
    yield "| language | tasks | tests ran | exact FAIL_TO_PASS | superset | subset | different |"
    yield "|---|---|---|---|---|---|---|"
    by_language: dict[str, list[Told]] = defaultdict(list)
    for one in told:
        by_language[one.language].append(one)
    for name, of_language in [*sorted(by_language.items()), ("all", list(told))]:
        rows = [row for row in of_language if row.verdict != WAITING]
        counted = Counter(row.verdict for row in rows)
        ran = sum(counted[verdict] for verdict in VERDICTS)
        rest = " | ".join(str(counted[verdict]) for verdict in VERDICTS[1:])
        yield f"| {name} | {len(rows)} | {ran} | {share(counted['exact'], len(rows))} | {rest} |"
    reasons = Counter((row.language, row.verdict) for row in told if row.verdict not in VERDICTS)
    if reasons:
        yield ""
        yield from (f"- {name}: {reason}: {n}" for (name, reason), n in sorted(reasons.items()))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--db", default="sqlite:///mergemill.db")
    parser.add_argument("--tasks", action="store_true", help="a row for each task")
    arguments = parser.parse_args()
    with Store.open(arguments.db, create=False) as store:
        told = list(tasks(store, arguments.files))
    lines = [*table(told)]
    if arguments.tasks:
        lines += ["", "| task | language | verdict | what differs |", "|---|---|---|---|"]
        lines += [f"| {one.name} | {one.language} | {one.verdict} | {one.detail[:160]} |" for one in told]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
