"""Compare published task lists with the database: `python -m benchmarks.instances --db URL [--tasks] FILE.jsonl...`.

For each task of the files that `mergemill run instances:FILE --db URL` has processed, the table shows whether its
FAIL_TO_PASS set equals the published one or has more, fewer or other tests, or why its tests did not run. Shares refer
to all finished tasks and have Wilson intervals (95 %). `--tasks` prints one row per task with the differences.
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

from core.errors import InputError
from languages.registry import detect_language
from miner.instances import InstanceRow, parse_instance
from miner.patches import parse_published_patches
from taskdb.queries import look_up_change
from taskdb.store import Store

PENDING = "waiting"
VERDICTS = ("exact", "superset", "subset", "different")


@dataclass(frozen=True, kw_only=True)
class InstanceResult:
    """Verdict of one task, or the stage and reason that ended it before its lists could be compared."""

    name: str
    language: str
    verdict: str
    detail: str


def load_results(store: Store, files: Sequence[Path]) -> Iterator[InstanceResult]:
    """Yield the files' tasks that the database contains; the verdict of an unfinished task is `pending`."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = parse_instance(line)
            try:
                story = look_up_change(store, row.instance_id)[1]
            except InputError:
                continue
            verdict, detail = _read_verdict(story)
            yield InstanceResult(name=row.instance_id, language=_find_language(row), verdict=verdict, detail=detail)


def _find_language(row: InstanceRow) -> str:
    return detect_language(parse_published_patches(None, row.base_commit, row.patch, row.test_patch).gold.files) or "?"


def _read_verdict(story: dict[str, Any]) -> tuple[str, str]:
    published, last = story["published"], story["events"][-1]
    if published is None:
        return (PENDING, "") if last["ok"] else (f"{last['stage']}: {last['reason']}", last["detail"])
    f2p = published["fail_to_pass"]
    results = [f"{word} {len(f2p[word])}: {f2p[word][0]}" for word in ("missing", "extra") if f2p[word]]
    return published["verdict"], "; ".join(results)


def format_share(hits: int, n: int) -> str:
    """Return a share such as `9 of 12, 75 % (47-91)`."""
    if not n:
        return "-"
    interval = binomtest(hits, n).proportion_ci(method="wilson")
    return f"{hits} of {n}, {hits / n:.0%} ({interval.low:.0%}-{interval.high:.0%})"


def render_table(results: Sequence[InstanceResult]) -> Iterator[str]:
    """Yield a Markdown table with one row per language, and the reasons of tasks that did not run."""
    yield "| language | tasks | tests ran | exact FAIL_TO_PASS | superset | subset | different |"
    yield "|---|---|---|---|---|---|---|"
    by_language: dict[str, list[InstanceResult]] = defaultdict(list)
    for one in results:
        by_language[one.language].append(one)
    for name, of_language in [*sorted(by_language.items()), ("all", list(results))]:
        rows = [row for row in of_language if row.verdict != PENDING]
        counted = Counter(row.verdict for row in rows)
        ran = sum(counted[verdict] for verdict in VERDICTS)
        rest = " | ".join(str(counted[verdict]) for verdict in VERDICTS[1:])
        yield f"| {name} | {len(rows)} | {ran} | {format_share(counted['exact'], len(rows))} | {rest} |"
    reasons = Counter((row.language, row.verdict) for row in results if row.verdict not in VERDICTS)
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
        results = list(load_results(store, arguments.files))
    lines = [*render_table(results)]
    if arguments.tasks:
        lines += ["", "| task | language | verdict | what differs |", "|---|---|---|---|"]
        lines += [f"| {one.name} | {one.language} | {one.verdict} | {one.detail[:160]} |" for one in results]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
