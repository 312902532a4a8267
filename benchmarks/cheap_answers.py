"""Answers that take no thought, for every subject of a set, which a bench must not pay.

    python -m benchmarks.cheap_answers SET --database FILE --out PREDICTIONS

Two rows for each task of the set, as `mergemill bench score SET --predictions` reads them. Model `empty` has an empty
patch or list of findings. Model `cheap` has, by the form of the submission:

- a patch: an unrelated file is added, and the test files of the task that the base tree has are deleted;
- tests: these test files once more, under other names; an empty test file where the change adds all of its own;
- a review: every ten lines of every file under review are listed.

The rows are the same on each run, sorted by name. No container is started; the clones of the tasks' sources are read.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import verifiers
from backends.git import list_patch_paths
from backends.services import Services
from core.config import Settings
from languages.paths import is_test_file
from languages.probes import Changes
from mergemill.bench.sets import read_set
from mergemill.execution.services import make_services
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle
from taskdb.store import Store
from verifiers.base_tree import index_base_tree, read_base_files
from verifiers.probes import make_patch

STORE = "mergemill-store"
LISTED_LINES = 10
STRAY_FILE: Changes = {"notes.txt": b"Fixed.\n"}


def answer_task(task: Task, services: Services) -> list[dict[str, Any]]:
    """Return the two rows of a task."""
    form = verifiers.select_reward(task).submission
    if isinstance(task.oracle, ReviewOracle):
        empty: object = {"findings": []}
        cheap: object = {"findings": list_everything(task.oracle.load_files(services.artifacts))}
    else:
        empty, cheap = "", _answer_with_patch(task, form, services)
    return [
        {"instance_id": task.name, "model_name_or_path": model, form: content}
        for model, content in (("empty", empty), ("cheap", cheap))
    ]


def list_everything(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a finding for every ten lines of some files, path -> text."""
    findings = []
    for path, text in sorted(files.items()):
        lines = len(text.splitlines())
        for first in range(1, lines + 1, LISTED_LINES):
            last = min(lines, first + LISTED_LINES - 1)
            place = {"file": path, "first_line": first, "last_line": last}
            findings.append({**place, "claim": "These lines may be wrong."})
    return findings


def make_cheap_changes(form: str, test_files: Mapping[str, bytes | None]) -> Changes:
    """Return the changes of a patch that solves nothing.

    Args:
        form: `patch` or `tests`, the form of the submission.
        test_files: test file of the task -> its content in the base tree, None where that has none.
    """
    there = {path: content for path, content in test_files.items() if content is not None}
    if form == "patch":
        return {**STRAY_FILE, **dict.fromkeys(there)}
    return {rename_copy(path): there.get(path, b"") for path in there or test_files}


def rename_copy(path: str) -> str:
    """Return a path in the same folder by which a runner still takes the file for tests."""
    folder, name = posixpath.split(path)
    first = name[:4]
    return posixpath.join(folder, f"{first}_more{name[4:]}" if first.lower() == "test" else f"more_{name}")


def _answer_with_patch(task: Task, form: str, services: Services) -> str:
    # A task with an injected bug has no test patch.
    touched = list_patch_paths(services.artifacts.get(task.test_patch))
    files = {*touched, *(test.partition("::")[0] for test, _ in task.FAIL_TO_PASS)}
    tests = sorted(path for path in files if is_test_file(path))
    base = index_base_tree(read_base_files(task, services), tests.__contains__).files
    patch = make_patch(make_cheap_changes(form, {path: base.get(path) for path in tests}), base)
    return patch.decode(errors="replace")


def main() -> int:
    """Write the rows and print their number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, metavar="SET", help="file of a set")
    parser.add_argument("--database", type=Path, required=True, metavar="FILE", help="SQLite database with its tasks")
    parser.add_argument("--out", type=Path, required=True, metavar="PREDICTIONS")
    options = parser.parse_args()
    settings = Settings(db=f"sqlite:///{options.database}", store=options.database.parent / STORE)
    services = make_services(settings, engine=False)
    with Store.open(settings.storage.db, create=False) as store:
        tasks = store.get_many(Task, [subject.id for subject in read_set(options.set).subjects])
    rows = [row for task in sorted(tasks.values(), key=lambda task: task.name) for row in answer_task(task, services)]
    options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows)} rows of {len(tasks)} tasks in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
