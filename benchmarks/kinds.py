"""Scores of gold, empty and wrong submissions to certified tasks of every kind, by the command line.

    python -m benchmarks.kinds --db URL [--source S] [--limit N] [--out FOLDER]

Prints two tables: change by kind (`mergemill tasks yields`); kind by submission, with the smallest and largest value.
A wrong submission must score less than 1 where a score has parts (reviews, tests), and 0 where it has none; the exit
code is 1 when one scores as high as gold.
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
NEW_FILE_PATCH = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+{1}\n"
FINDINGS_PER_FILE = 40
"""Findings per file of a review that reports everything."""


def run_mergemill(*words: str, db: str) -> list[dict[str, Any]]:
    """Return the JSON lines that a command prints."""
    process = subprocess.run([*MERGEMILL, *words, "--db", db, "--json"], capture_output=True, text=True, check=False)
    if process.returncode not in (0, 75):
        raise SystemExit(
            f"mergemill {' '.join(words)} ended with {process.returncode}: {process.stderr.strip()[-300:]}"
        )
    return [json.loads(line) for line in process.stdout.splitlines()]


def generate_wrong_submissions(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (description, option of `grade`, content) of wrong submissions, from the output of `tasks show`."""
    if task["kind"] == "review":
        yield from _generate_reviews(task)
    elif task["kind"] == "test-writing":
        yield from _generate_tests(task)
    else:
        yield "a note beside the code", "--patch", NEW_FILE_PATCH.format("NOTES-of-mine.txt", "It works now.")
        yield "the change's tests alone", "--patch", task["test_patch"]
        yield "the gold patch without its added lines", "--patch", remove_added_lines(task["patch"])


def remove_added_lines(patch: str) -> str:
    """Return a patch without its added lines; files to which it only adds lines are omitted."""
    files = []
    for file in PatchSet(patch):
        hunks = []
        for hunk in file:
            rows = [line for line in hunk if not line.is_added]
            if any(line.is_removed for line in rows):
                kept = sum(not line.is_removed for line in rows)
                head = f"@@ -{hunk.source_start},{len(rows)} +{hunk.source_start},{kept} @@\n"
                hunks.append(head + "".join(f"{line.line_type}{line.value}" for line in rows))
        if hunks and not file.is_added_file:
            files.append(
                f"diff --git a/{file.path} b/{file.path}\n--- a/{file.path}\n+++ b/{file.path}\n" + "".join(hunks)
            )
    return "".join(files) or NEW_FILE_PATCH.format("EMPTY-of-mine.txt", "Nothing to take away.")


def _generate_tests(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield wrong tests in the folder and language of the change's own tests."""
    path = PatchSet(task["test_patch"])[0].path
    folder, _, name = path.rpartition("/")
    fails, passes = TRIVIAL_TESTS[task["language"]]
    for what, text in (("a test that always fails", fails), ("a test that always passes", passes)):
        beside = f"{folder}/{_name_trivial_test(name)}".lstrip("/")
        lines = text.replace("PACKAGE", _find_package(task)).splitlines()
        head = f"diff --git a/{beside} b/{beside}\nnew file mode 100644\n--- /dev/null\n+++ b/{beside}\n"
        body = f"@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
        yield what, "--tests", head + body
    yield "the fix itself", "--tests", task["patch"]


TRIVIAL_TESTS = {
    "python": ("def test_trivial():\n    assert False\n", "def test_trivial():\n    assert True\n"),
    "go": (
        'package PACKAGE\n\nimport "testing"\n\nfunc TestTrivial(t *testing.T) {\n\tt.Fatal("no")\n}\n',
        'package PACKAGE\n\nimport "testing"\n\nfunc TestTrivial(t *testing.T) {\n}\n',
    ),
    "javascript": ("test('trivial', () => { throw new Error('no') })\n", "test('trivial', () => {})\n"),
}
"""Language -> a test that always fails, and one that always passes."""


def _name_trivial_test(name: str) -> str:
    """Return the name of a new test file that follows the pattern of an existing one."""
    stem, dot, ending = name.partition(".")
    if stem.endswith("_test"):
        return f"trivial_test{dot}{ending}"
    return f"test_trivial{dot}{ending}" if stem.startswith("test") else f"trivial{dot}{ending}"


def _generate_reviews(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    paths = [defect["path"] for defect in task["oracle"]["defects"]] or [file.path for file in PatchSet(task["patch"])]
    everywhere = [build_finding(path, 5 * n + 1, 5 * n + 5) for path in set(paths) for n in range(FINDINGS_PER_FILE)]
    elsewhere = [build_finding("docs/no-such-file.txt", 1, 3)]
    whole = [build_finding(path, 1, 100_000) for path in set(paths)]
    for what, findings in (
        ("a finding for every five lines", everywhere),
        ("a finding somewhere else", elsewhere),
        ("one finding for the whole file", whole),
    ):
        yield what, "--review", json.dumps({"findings": findings})


def build_finding(path: str, first: int, last: int) -> dict[str, Any]:
    """Return a finding with an unspecific claim."""
    return {"file": path, "first_line": first, "last_line": last, "claim": "Something is wrong here."}


def grade_submissions(task: Mapping[str, Any], folder: Path, db: str) -> Iterator[tuple[str, float | None]]:
    """Yield (submission, value) of the gold, the empty and each wrong submission."""
    yield "gold", run_mergemill("grade", task["id"], "--gold", db=db)[0]["value"]
    yield "nothing", run_mergemill("grade", task["id"], "--noop", db=db)[0]["value"]
    for number, (what, option, content) in enumerate(generate_wrong_submissions(task)):
        file = folder / f"{task['name']}-{number}".replace("/", "_")
        file.write_text(content)
        yield what, run_mergemill("grade", task["id"], option, str(file), db=db)[0]["value"]


def _find_package(task: Mapping[str, Any]) -> str:
    """Return the Go package of the change's tests."""
    lines = [line[1:] for line in task["test_patch"].splitlines() if line[1:].startswith("package ")]
    return lines[0].split()[1] if lines else str(task["repo"]).rpartition("/")[2]


def summarise_values(
    figures: Sequence[tuple[str, str, float | None]],
) -> list[tuple[str, str, int, float | None, float | None]]:
    """Return (kind, submission, count, smallest value, largest value) in order of first occurrence."""
    groups: dict[tuple[str, str], list[float | None]] = {}
    for kind, what, value in figures:
        groups.setdefault((kind, what), []).append(value)
    rows = []
    for (kind, what), values in groups.items():
        scored = [value for value in values if value is not None]
        rows.append((kind, what, len(values), min(scored, default=None), max(scored, default=None)))
    return rows


def parse_arguments() -> argparse.Namespace:
    """Parse the options; see the docstring of the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kinds", description=__doc__)
    parser.add_argument("--db", required=True)
    parser.add_argument("--source", default=None, help="only tasks of this source")
    parser.add_argument("--limit", type=int, default=2, help="tasks of each kind to grade")
    parser.add_argument("--out", type=Path, default=Path("kinds"), help="folder for the submissions")
    return parser.parse_args()


def main() -> int:
    """Grade the submissions and print the tables."""
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = [options.source] if options.source else []
    rows = run_mergemill("tasks", "yields", *sources, db=options.db)
    kinds = [name for name in (rows[0] if rows else {}) if name == "change" or any(row[name] for row in rows)]
    print("| " + " | ".join(kinds) + " |\n|" + "---|" * len(kinds))
    for row in rows:
        print("| " + " | ".join(row[kind] or "" for kind in kinds) + " |")
    values: list[tuple[str, str, float | None]] = []
    for kind in kinds[1:]:
        only = [word for source in sources for word in ("--source", source)]
        listed = run_mergemill("tasks", "list", "--kind", kind, "--status", "certified", *only, db=options.db)
        for entry in listed[: options.limit]:
            (task,) = run_mergemill("tasks", "show", entry["id"], db=options.db)
            for what, value in grade_submissions(task, options.out, options.db):
                print(f"{task['name']}: {what}: {value}", file=sys.stderr, flush=True)
                values.append((kind, what, value))
    print("\n| kind | submission | tasks | smallest | largest |\n|---|---|---|---|---|")
    summary = summarise_values(values)
    for kind, what, count, smallest, largest in summary:
        print(f"| {kind} | {what} | {count} | {_format_value(smallest)} | {_format_value(largest)} |")
    return int(any(what != "gold" and largest is not None and largest >= 1 for _, what, _, _, largest in summary))


def _format_value(value: float | None) -> str:
    return "not scored" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
