"""Multi-SWE-bench (1.1): rows of its `Dataset`, and a runner that registers their images with its harness."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import InputError
from exporters import rows, task_files
from exporters.archive import pack_files
from exporters.bundle_writer import NOT_UTF8_NOTE, write_file
from exporters.export_format import ExportFormat, exclude_other_oracles
from exporters.formats.swebench import NOOP_PATCH, escape_test_ids
from exporters.image_states import ONE_CONTAINER, add_image_state
from exporters.task_folder import write_task_folder
from taskdb.records import FailureKind
from training_data.row_files import JsonLines

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem
    from taskdb.records import Task

LANGUAGES = {"c++": "cpp", "javascript": "js", "typescript": "ts"}
"""Languages with another name there."""
SURROGATE_NUMBER = 1_000_000_000
"""Numbers from here on stand for no pull request."""
README = """\
# Software-engineering tasks made from merged changes

Rows for Multi-SWE-bench. `python evaluate.py --workdir gold` grades the gold patches with its harness.

"""


def write_multi_swe_bench(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the rows, patches to evaluate, the runner and a folder per task.

    Raises:
        InputError: none of the tasks can be written in this format.
    """
    used: set[tuple[str, int]] = set()
    with (
        JsonLines(folder / "tasks.jsonl", portable=True) as tasks,
        JsonLines(folder / "graders.jsonl", portable=True) as graders,
        JsonLines(folder / "patches.gold.jsonl", portable=True) as gold,
        JsonLines(folder / "patches.noop.jsonl", portable=True) as noop,
    ):
        for item in items:
            number = choose_number(item.task, used)
            try:
                row, notes = build_multi_swe_bench_row(item, services, number)
            except UnicodeDecodeError:
                item.notes.append(NOT_UTF8_NOTE)
                continue
            item.notes.extend(notes)
            used.add((item.task.repo.lower(), number))
            tasks.add(row)
            name = {key: row[key] for key in ("org", "repo", "number")}
            graders.add({**name, "image": item.image, "grader": build_grader(item, services)})
            gold.add({**name, "fix_patch": row["fix_patch"]})
            noop.add({**name, "fix_patch": NOOP_PATCH})
            write_task_folder(item, folder / item.folder, services)
    if not tasks.count:
        raise InputError("no task can be written as multi-swe-bench: their patches are not UTF-8")
    rows.write_shipped_file("multi_swe_bench_eval.py", folder / "evaluate.py")
    write_file(folder / "README.md", README + ONE_CONTAINER)


def choose_number(task: Task, used: set[tuple[str, int]]) -> int:
    """Return the number of the task's pull request; another where it has none, or the number is in `used`.

    Rows are identified by repository and number, and several tasks may come from a pull request.
    """
    match = re.search(r"-(\d{1,9})\.[a-z]", task.name)  # a release has its version there
    number = int(match[1]) if match else SURROGATE_NUMBER
    if number < SURROGATE_NUMBER and (task.repo.lower(), number) not in used:
        return number
    return SURROGATE_NUMBER + int(task.id[:7], 16)


def build_multi_swe_bench_row(item: ExportItem, services: Services, number: int) -> tuple[dict[str, Any], list[str]]:
    """Return the task's row, and notes on text and ids that are not complete in it.

    Statuses without the patches (`run`) are not recorded: PASS for a PASS_TO_PASS test, NONE for others.

    Raises:
        UnicodeDecodeError: a patch is not UTF-8.
    """
    task = item.task
    escaped, notes = escape_test_ids(task)
    org, _, repo = task.repo.rpartition("/")
    title, _, body = task.problem_statement.strip().partition("\n")
    absent = (FailureKind.ABSENT, FailureKind.COLLECTION)
    failing = {escaped[test]: "NONE" if kind in absent else "FAIL" for test, kind in task.FAIL_TO_PASS}
    passing = [escaped[test] for test in task.PASS_TO_PASS]
    fixed = {test: {"run": "NONE", "test": status, "fix": "PASS"} for test, status in failing.items()}
    row = {
        "org": org,
        "repo": repo,
        "number": number,
        "tag": "",
        "lang": LANGUAGES.get(task.language, task.language),
        "state": "closed",
        "title": title.strip("# "),
        "body": body.strip(),
        "base": {"label": f"{org}:{task.base_commit}", "ref": task.base_commit, "sha": task.base_commit},
        "resolved_issues": [{"number": number, "title": title.strip("# "), "body": body.strip()}],
        "fix_patch": services.artifacts.get(task.gold_patch).decode(),
        "test_patch": services.artifacts.get(task.test_patch).decode(),
        "fixed_tests": fixed,
        "p2p_tests": {test: {"run": "PASS", "test": "PASS", "fix": "PASS"} for test in passing},
        "f2p_tests": {test: row for test, row in fixed.items() if row["test"] == "FAIL"},
        "s2p_tests": {},
        "n2p_tests": {test: row for test, row in fixed.items() if row["test"] == "NONE"},
        "run_result": _build_result(passing, []),
        "test_patch_result": _build_result(passing, [test for test, status in failing.items() if status == "FAIL"]),
        "fix_patch_result": _build_result([*passing, *failing], []),
        "instance_id": item.folder,
        "image_name": item.image,
        **rows.build_flat_facts(item),
    }
    valid, replaced = rows.make_valid_row(row)
    return valid, [*notes, *replaced]


def _build_result(passed: Iterable[str], failed: Iterable[str]) -> dict[str, Any]:
    passed, failed = sorted(set(passed)), sorted(set(failed))
    return {
        "passed_count": len(passed),
        "failed_count": len(failed),
        "skipped_count": 0,
        "passed_tests": passed,
        "failed_tests": failed,
        "skipped_tests": [],
    }


def build_grader(item: ExportItem, services: Services) -> str:
    """Return base64 of a .tar.gz with the grader, its data, the evaluation script and the state of the image."""
    escaped, _ = escape_test_ids(item.task)
    changed = {test: line for test, line in escaped.items() if line != test}
    files = task_files.build_grader_files(
        item.task, services, escaped_ids=changed, image_state=add_image_state(item, services)
    )
    return base64.b64encode(pack_files(files)).decode()


FORMATS = {"multi-swe-bench": ExportFormat(write=write_multi_swe_bench, explain_exclusion=exclude_other_oracles)}
