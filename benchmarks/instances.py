"""Compare published task lists with the database: `python -m benchmarks.instances --db URL [--tasks] FILE.jsonl...`.

For each task of the files that `mergemill run instances:FILE --db URL` has processed, the table shows whether its
FAIL_TO_PASS set equals the published one, in which form, or has more, fewer or other tests, or why its tests did not
run, and the causes of differences. Tasks that someone has looked at (`--looked-at`) and others have tables of their
own. Shares have Wilson intervals (95 %); they refer to the finished tasks, and where nobody had looked, to all that
were begun. Verified tasks are compared again, so that results of earlier versions have today's verdicts. `--tasks`
prints one row per task with the differences, `--raw FILE.jsonl` writes one object per task, without tests or code.

`--draw N --salt WORD` prints N tasks of the files for such a run instead, in the order of sha256("WORD:ID"), without
those that someone has looked at; with `--clones DIR` only tasks whose base commit is in a clone there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from backends.git import GitRepository
from core.config import Settings
from core.errors import InputError
from evaluation.differences import compare_with_runs
from languages.registry import detect_language
from miner.instances import InstanceRow, read_instance_rows
from miner.patches import parse_published_patches
from taskdb.artifacts import Artifacts, open_artifacts
from taskdb.queries.tasks import look_up_change
from taskdb.records import Candidate, DifferenceCause, Environment, Verification
from taskdb.store import Store

PENDING = "waiting"
EXACT_FORMS = ("exact", "exact-by-name", "exact-by-parent", "exact-by-file")
VERDICTS = (*EXACT_FORMS, "superset", "subset", "different")
LOOKED_AT = Path(__file__).parent / "instances" / "looked_at.txt"
CAUSE_COLUMNS = tuple((name, side) for name in ("FAIL_TO_PASS", "PASS_TO_PASS") for side in ("missing", "extra"))


@dataclass(frozen=True, kw_only=True)
class InstanceResult:
    """Verdict of one task, or the stage and reason that ended it before its lists could be compared."""

    name: str
    language: str
    verdict: str
    detail: str
    language_version: str = ""
    was_looked_at: bool = False
    readings: tuple[str, ...] = ()
    causes: dict[str, int] = field(default_factory=dict)
    """`FAIL_TO_PASS missing network` -> number of tests."""


def draw_instances(rows: Sequence[InstanceRow], number: int, salt: str, looked_at: Collection[str]) -> list[str]:
    """Return the names of the first tasks in the order of sha256("SALT:NAME") that nobody has looked at."""
    names = [row.instance_id for row in rows if row.instance_id not in looked_at]
    return sorted(names, key=lambda name: hashlib.sha256(f"{salt}:{name}".encode()).hexdigest())[:number]


def is_available(row: InstanceRow, clones: Path, max_mb: float) -> bool:
    """Return whether a clone of at most `max_mb` megabytes (2^20 bytes) holds the base commit of a task."""
    name = row.repo.replace("/", "__")
    folder = next((path for path in (clones / name, clones / f"{name}.git") if path.is_dir()), None)
    if folder is None or not GitRepository(folder).has_commit(row.base_commit):
        return False
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= max_mb * 2**20


def load_results(
    store: Store, rows: Sequence[InstanceRow], artifacts: Artifacts, looked_at: Collection[str] = ()
) -> Iterator[InstanceResult]:
    """Yield the tasks that the database contains; the verdict of an unfinished task is `waiting`."""
    verifications = {verification.name: verification for verification in store.load_all(Verification)}
    for row in rows:
        try:
            story = look_up_change(store, row.instance_id)[1]
        except InputError:
            continue
        version = ""
        if verification := verifications.get(row.instance_id):
            version = store.get(Environment, verification.parent).plan.language_version
            story["published"] = _compare_again(store, verification, artifacts)
        verdict, detail = _read_verdict(story)
        published = story["published"] or {"readings": (), "causes": ()}
        yield InstanceResult(
            name=row.instance_id,
            language=_find_language(row),
            language_version=version,
            verdict=verdict,
            detail=detail,
            was_looked_at=row.instance_id in looked_at,
            readings=tuple(published["readings"]),
            causes=dict(
                Counter(f"{cause['list_name']} {cause['side']} {cause['cause']}" for cause in published["causes"])
            ),
        )


def _compare_again(store: Store, verification: Verification, artifacts: Artifacts) -> dict[str, Any] | None:
    published = store.get(Candidate, verification.candidate).published
    if published is None:
        return None
    return compare_with_runs(
        published,
        [test for test, _ in verification.FAIL_TO_PASS],
        verification.PASS_TO_PASS,
        runs=verification.runs,
        eval_files=verification.eval_files,
        artifacts=artifacts,
    ).model_dump(mode="json")


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


def render_table(results: Sequence[InstanceResult], *, count_waiting: bool = False) -> Iterator[str]:
    """Yield a Markdown table with one row per language, the causes of differences, and why other tasks did not run."""
    yield f"| language | tasks | tests ran | exact FAIL_TO_PASS | {' | '.join(VERDICTS[1:])} |"
    yield f"|{'---|' * (len(VERDICTS) + 3)}"
    by_language: dict[str, list[InstanceResult]] = defaultdict(list)
    for result in results:
        by_language[result.language].append(result)
    for name, of_language in [*sorted(by_language.items()), ("all", list(results))]:
        rows = [row for row in of_language if count_waiting or row.verdict != PENDING]
        counted = Counter(row.verdict for row in rows)
        ran = sum(counted[verdict] for verdict in VERDICTS)
        rest = " | ".join(str(counted[verdict]) for verdict in VERDICTS[1:])
        yield f"| {name} | {len(rows)} | {ran} | {format_share(counted['exact'], len(rows))} | {rest} |"
    yield ""
    yield f"Exact in any form: {format_share(sum(counted[form] for form in EXACT_FORMS), len(rows))}."
    yield from _render_causes(results)
    reasons = Counter((row.language, row.verdict) for row in results if row.verdict not in VERDICTS)
    if reasons:
        yield ""
        yield from (f"- {name}: {reason}: {n}" for (name, reason), n in sorted(reasons.items()))


def _render_causes(results: Sequence[InstanceResult]) -> Iterator[str]:
    tests: Counter[str] = Counter()
    for result in results:
        tests.update(result.causes)
    if tests:
        yield ""
        yield f"| cause (tests) | {' | '.join(f'{name} {side}' for name, side in CAUSE_COLUMNS)} |"
        yield f"|{'---|' * (len(CAUSE_COLUMNS) + 1)}"
        for cause in DifferenceCause:
            numbers = [tests[f"{name} {side} {cause.value}"] for name, side in CAUSE_COLUMNS]
            if any(numbers):
                yield f"| {cause.value} | {' | '.join(map(str, numbers))} |"


def render_halves(results: Sequence[InstanceResult]) -> Iterator[str]:
    """Yield a table of the tasks that someone has looked at and one of the others."""
    for was_looked_at, title in ((False, "Nobody had looked at"), (True, "Looked at while mergemill was developed")):
        if half := [result for result in results if result.was_looked_at is was_looked_at]:
            yield from ("", f"## {title}", "", *render_table(half, count_waiting=not was_looked_at))


def write_raw(results: Sequence[InstanceResult], path: Path, commit: str) -> None:
    """Write one JSON object per task: names, verdicts and counts, no test ids."""
    lines = []
    for result in results:
        data = asdict(result)
        if result.verdict in VERDICTS:
            del data["detail"]
        lines.append(json.dumps(data | {"mergemill": commit}) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def read_rows(files: Sequence[Path]) -> list[InstanceRow]:
    """Return the tasks of some files.

    Raises:
        InputError: a row cannot be used.
    """
    rows = []
    for file in files:
        for _, row in read_instance_rows(file):
            if isinstance(row, InputError):
                raise row
            rows.append(row)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or the drawn tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--db", default="sqlite:///mergemill.db")
    parser.add_argument("--tasks", action="store_true", help="a row for each task")
    parser.add_argument("--looked-at", type=Path, default=LOOKED_AT, help="file with one name of a task a line")
    parser.add_argument("--raw", type=Path, help="write the results there, one JSON object a line")
    parser.add_argument("--commit", default="", help="for --raw: the commit of mergemill that ran the tasks")
    parser.add_argument("--draw", type=int, metavar="N", help="print N tasks instead")
    parser.add_argument("--salt", default="", help="for --draw")
    parser.add_argument("--clones", type=Path, help="for --draw: folder of clones, OWNER__NAME or OWNER__NAME.git")
    parser.add_argument("--max-clone-mb", type=float, default=float("inf"), help="for --clones: size of a clone")
    options = parser.parse_args(arguments)
    rows, looked_at = read_rows(options.files), set(options.looked_at.read_text(encoding="utf-8").split())
    if options.draw is not None:
        if options.clones:
            rows = [row for row in rows if is_available(row, options.clones, options.max_clone_mb)]
        lines = draw_instances(rows, options.draw, options.salt, looked_at)
    else:
        artifacts = open_artifacts(Settings(db=options.db).storage)
        with Store.open(options.db, create=False) as store:
            results = list(load_results(store, rows, artifacts, looked_at))
        if options.raw:
            write_raw(results, options.raw, options.commit)
        lines = [*render_halves(results)][1:]
        if options.tasks:
            lines += ["", "| task | language | verdict | what differs |", "|---|---|---|---|"]
            lines += [
                f"| {result.name} | {result.language} | {result.verdict} | {result.detail[:160]} |"
                for result in results
            ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
