"""What certified tasks of every kind pay for: gold, nothing, and three wrong submissions each, by the command line.

    python -m benchmarks.kinds --db URL [--source S] [--most N] [--out FOLDER]

Prints two tables: change by kind (`mergemill tasks yields`); kind by submission, with the least and the largest value.
A wrong submission must be worth less than 1 where a value has parts (reviews, tests), and 0 where it has none; the exit
code is 1 when one is worth as much as gold.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unidiff.patch import PatchSet

MERGEMILL = (sys.executable, "-c", "from mergemill.cli import main; main()")
NOTE = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{1}\n"
MANY = 40
"""Findings of a review that points everywhere, a file."""


def mergemill(*words: str, db: str) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints."""
    done = subprocess.run([*MERGEMILL, *words, "--db", db, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 75):
        raise SystemExit(f"mergemill {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def wrong(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(what it is, option of `grade`, content) of submissions that solve nothing, made from what `tasks show` tells."""
    if task["kind"] == "review":
        yield from _reviews(task)
    elif task["kind"] == "test-writing":
        yield from _tests(task)
    else:
        yield "a note beside the code", "--patch", NOTE.format("NOTES-of-mine.txt", "It works now.")
        yield "the change's tests alone", "--patch", task["test_patch"]
        yield "what gold takes away, nothing in its place", "--patch", taken_away(task["patch"])


def taken_away(patch: str) -> str:
    """The patch without its added lines; files that it only adds to are left as they were."""
    told = []
    for file in PatchSet(patch):
        hunks = []
        for hunk in file:
            rows = [line for line in hunk if not line.is_added]
            if any(line.is_removed for line in rows):
                kept = sum(not line.is_removed for line in rows)
                head = f"@@ -{hunk.source_start},{len(rows)} +{hunk.source_start},{kept} @@\n"
                hunks.append(head + "".join(f"{line.line_type}{line.value}" for line in rows))
        if hunks and not file.is_added_file:
            told.append(
                f"diff --git a/{file.path} b/{file.path}\n--- a/{file.path}\n+++ b/{file.path}\n" + "".join(hunks)
            )
    return "".join(told) or NOTE.format("EMPTY-of-mine.txt", "Nothing to take away.")


def _tests(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Wrong tests in the change's own test files' folder and language."""
    path = PatchSet(task["test_patch"])[0].path
    folder, _, name = path.rpartition("/")
    fails, passes = SILLY[task["language"]]
    for what, text in (("a test that always fails", fails), ("a test that always passes", passes)):
        beside = f"{folder}/{_silly_name(name)}".lstrip("/")
        lines = text.replace("PACKAGE", _package(task)).splitlines()
        head = f"diff --git a/{beside} b/{beside}\nnew file mode 100644\n--- /dev/null\n+++ b/{beside}\n"
        body = f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
        yield what, "--tests", head + body
    yield "the fix itself", "--tests", task["patch"]


SILLY = {
    "python": ("def test_silly():\n    assert False\n", "def test_silly():\n    assert True\n"),
    "go": (
        'package PACKAGE\n\nimport "testing"\n\nfunc TestSilly(t *testing.T) {\n\tt.Fatal("no")\n}\n',
        'package PACKAGE\n\nimport "testing"\n\nfunc TestSilly(t *testing.T) {\n}\n',
    ),
    "javascript": ("test('silly', () => { throw new Error('no') })\n", "test('silly', () => {})\n"),
}
"""Language -> a test that always fails, and one that always passes."""


def _silly_name(name: str) -> str:
    """A file name that the framework of `name` takes for a test's."""
    stem, dot, ending = name.partition(".")
    if stem.endswith("_test"):
        return f"silly_test{dot}{ending}"
    return f"test_silly{dot}{ending}" if stem.startswith("test") else f"silly{dot}{ending}"


def _reviews(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    paths = [defect["path"] for defect in task["oracle"]["defects"]] or [file.path for file in PatchSet(task["patch"])]
    everywhere = [finding(path, 5 * n + 1, 5 * n + 5) for path in set(paths) for n in range(MANY)]
    elsewhere = [finding("docs/no-such-file.txt", 1, 3)]
    whole = [finding(path, 1, 100_000) for path in set(paths)]
    for what, findings in (
        ("a finding for every five lines", everywhere),
        ("a finding somewhere else", elsewhere),
        ("one finding for the whole file", whole),
    ):
        yield what, "--review", json.dumps({"findings": findings})


def finding(path: str, first: int, last: int) -> dict[str, Any]:
    """A finding that claims nothing in particular."""
    return {"file": path, "first_line": first, "last_line": last, "claim": "Something is wrong here."}


def worth(task: Mapping[str, Any], folder: Path, db: str) -> Iterator[tuple[str, float | None]]:
    """(submission, value) of gold, of nothing, and of each wrong submission."""
    yield "gold", mergemill("grade", task["id"], "--gold", db=db)[0]["value"]
    yield "nothing", mergemill("grade", task["id"], "--noop", db=db)[0]["value"]
    for number, (what, option, content) in enumerate(wrong(task)):
        file = folder / f"{task['name']}-{number}".replace("/", "_")
        file.write_text(content)
        yield what, mergemill("grade", task["id"], option, str(file), db=db)[0]["value"]


def _package(task: Mapping[str, Any]) -> str:
    """The Go package that the change's tests are in."""
    lines = [line[1:] for line in task["test_patch"].splitlines() if line[1:].startswith("package ")]
    return lines[0].split()[1] if lines else str(task["repo"]).rpartition("/")[2]


def summed(found: Sequence[tuple[str, str, float | None]]) -> list[tuple[str, str, int, float | None, float | None]]:
    """(kind, submission, how many, least, largest value) in the order in which they were seen first."""
    groups: dict[tuple[str, str], list[float | None]] = {}
    for kind, what, value in found:
        groups.setdefault((kind, what), []).append(value)
    told = []
    for (kind, what), values in groups.items():
        scored = [value for value in values if value is not None]
        told.append((kind, what, len(values), min(scored, default=None), max(scored, default=None)))
    return told


def arguments() -> argparse.Namespace:
    """The options, see the docstring of the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kinds", description=__doc__)
    parser.add_argument("--db", required=True)
    parser.add_argument("--source", default=None, help="only tasks of this source")
    parser.add_argument("--most", type=int, default=2, help="tasks of each kind that are graded")
    parser.add_argument("--out", type=Path, default=Path("kinds"), help="where submissions are written")
    return parser.parse_args()


def main() -> int:
    """Grade, and print the tables."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = [options.source] if options.source else []
    rows = mergemill("tasks", "yields", *sources, db=options.db)
    kinds = [name for name in (rows[0] if rows else {}) if name == "change" or any(row[name] for row in rows)]
    print("| " + " | ".join(kinds) + " |\n|" + "---|" * len(kinds))
    for row in rows:
        print("| " + " | ".join(row[kind] or "" for kind in kinds) + " |")
    found: list[tuple[str, str, float | None]] = []
    for kind in kinds[1:]:
        only = [word for source in sources for word in ("--source", source)]
        listed = mergemill("tasks", "list", "--kind", kind, "--status", "certified", *only, db=options.db)
        for one in listed[: options.most]:
            (task,) = mergemill("tasks", "show", one["id"], db=options.db)
            for what, value in worth(task, options.out, options.db):
                print(f"{task['name']}: {what}: {value}", file=sys.stderr, flush=True)
                found.append((kind, what, value))
    print("\n| kind | submission | tasks | least | largest |\n|---|---|---|---|---|")
    told = summed(found)
    for kind, what, count, least, largest in told:
        print(f"| {kind} | {what} | {count} | {_number(least)} | {_number(largest)} |")
    return int(any(what != "gold" and largest is not None and largest >= 1 for _, what, _, _, largest in told))


def _number(value: float | None) -> str:
    return "not scored" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
