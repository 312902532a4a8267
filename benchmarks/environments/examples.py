"""Run examples of causes for which environments fail: `python -m benchmarks.environments.examples [--only NAME]`.

Each example is a small git repository with one change, whose tests fail for one cause: packages as of a wrong day,
requirement files that contradict the project, or surroundings that the tests need. The stages mine, build and verify
run by the command line, so that `--mergemill COMMAND` can be another version of mergemill. The exit status is 1 where
an example does not end as expected.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments.example_files import EXAMPLES, Example

VERIFIED = "verified"
OPENED = "2023-02-01T00:00:00Z"
"""Date of a published row whose pull request was opened a year before its base commit."""


@dataclass(frozen=True, kw_only=True)
class ExampleResult:
    """What became of one example."""

    example: Example
    result: str
    """`verified`, or the reason of the rejection."""
    detail: str
    seconds: float
    edits: Sequence[str] = field(default=())
    """What repaired the build."""

    @property
    def is_expected(self) -> bool:
        """Whether the example ended as expected."""
        return self.result == self.example.expected


def make_repository(example: Example, folder: Path) -> str:
    """Create the example's repository in `folder`; return its source on the command line."""
    from tests.helpers import TinyRepo  # noqa: PLC0415 - the repositories of the tests

    repo = TinyRepo(folder / "clones" / f"ada__{example.name}")
    base = repo.commit("Begin", dict(example.base))
    repo.git("checkout", "-q", "-b", "change")
    merge = repo.commit(example.statement, dict(example.change))
    repo.git("checkout", "-q", "main")
    repo.minute += 1
    repo.git("merge", "-q", "--no-ff", "-m", f"Merge pull request #1 from ada/change\n\n{example.statement}", "change")
    if not example.is_published:
        return f"git:{repo.path}"
    tests = [path for path in example.change if "test" in path]
    diffs = [
        repo.git("diff", base, merge, "--", *part) + "\n"
        for part in ([path for path in example.change if path not in tests], tests)
    ]
    row = {
        "instance_id": f"ada__{example.name}-1",
        "repo": f"ada/{example.name}",
        "base_commit": base,
        "patch": diffs[0],
        "test_patch": diffs[1],
        "problem_statement": example.statement,
        "FAIL_TO_PASS": ["tests/test_change.py::test_change"],
        "PASS_TO_PASS": [],
        "created_at": OPENED,
    }
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return f"instances:{rows}"


def run_example(example: Example, command: Sequence[str], folder: Path) -> ExampleResult:
    """Run the stages mine, build and verify with a new database in `folder`; return what became of the change."""
    source = make_repository(example, folder)
    database = folder / "mergemill.db"
    settings = ["--db", f"sqlite:///{database}"]
    began = time.monotonic()
    log = b""
    for stage in (("mine", source), ("build",), ("verify",)):
        options = [*settings, "--clones", str(folder / "clones"), "--repeats", "1"]
        done = subprocess.run([*command, *stage, *options], capture_output=True, check=False)
        log += done.stdout + done.stderr
    seconds = time.monotonic() - began
    (folder / "log").write_bytes(log)
    result, detail = read_result(database)
    story = subprocess.run(
        [*command, "why", f"ada__{example.name}-1", "--json", *settings], capture_output=True, check=False
    )
    return ExampleResult(example=example, result=result, detail=detail, seconds=seconds, edits=list_edits(story.stdout))


def read_result(database: Path) -> tuple[str, str]:
    """Return (`verified` or a reason, its detail) of the database's only change."""
    with closing(sqlite3.connect(database)) as connection:
        if connection.execute("SELECT name FROM verifications").fetchall():
            return VERIFIED, ""
        rejected = connection.execute("SELECT reason, detail FROM rejections WHERE name LIKE 'ada__%-1'").fetchall()
    return rejected[-1] if rejected else ("nothing", "")


def list_edits(story: bytes) -> list[str]:
    """Return the edits of the accepted plan, from what `mergemill why --json` prints."""
    try:
        attempts = json.loads(story).get("attempts", ())
    except ValueError:  # there is no such change
        return []
    if not any(attempt["reason"] == "accepted" for attempt in attempts):
        return []
    return [edit for attempt in attempts if not attempt.get("rolled_back") for edit in attempt["edits"]]


def render_table(results: Sequence[ExampleResult]) -> str:
    """Return the results as a table in Markdown."""
    lines = ["| item | example | expected | result | repaired by | seconds |", "|---|---|---|---|---|---|"]
    for outcome in results:
        edits = "; ".join(f"`{edit}`" for edit in outcome.edits)
        result = outcome.result if outcome.result == VERIFIED else f"`{outcome.result}`"
        expected = outcome.example.expected if outcome.example.expected == VERIFIED else f"`{outcome.example.expected}`"
        example = f"{outcome.example.name}: {outcome.example.cause}"
        lines.append(
            f"| {outcome.example.item} | {example} | {expected} | {result} | {edits} | {outcome.seconds:.0f} |"
        )
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mergemill", default="mergemill", metavar="COMMAND", help="the mergemill to run")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="an example, or an item's number")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep repositories, databases and logs there")
    return parser.parse_args()


def main() -> int:
    """Run the examples and print the table."""
    options = parse_arguments()
    chosen = [
        example for example in EXAMPLES if not options.only or {example.name, str(example.item)} & set(options.only)
    ]
    results = []
    with tempfile.TemporaryDirectory(prefix="mergemill-examples-") as scratch:
        for example in chosen:
            folder = (options.folder or Path(scratch)).resolve() / example.name
            results.append(run_example(example, shlex.split(options.mergemill), folder))
            print(f"{example.name}: {results[-1].result} {results[-1].detail}", flush=True)
    print(render_table(results))
    return 0 if all(result.is_expected for result in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
