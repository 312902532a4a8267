"""SWE-smith (0.0.9): rows whose `patch` is the bug and its reverse the solution, with a profile for the harness.

The images have the bug in their tree already, so nothing is checked out. Status lines come from the grader, as in
`swebench`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.overlay import open_patched_commit, open_task_tree
from backends.scratch import DIFF_OPTIONS
from core.errors import InputError
from exporters import rows, task_files
from exporters.archive import pack_files
from exporters.bundle_writer import NOT_UTF8_NOTE, write_file
from exporters.export_format import ExportFormat, exclude_other_oracles
from exporters.formats.swebench import NOOP_PATCH, escape_test_ids
from exporters.image_states import ONE_CONTAINER, add_image_state
from exporters.task_folder import write_task_folder
from training_data.row_files import JsonLines

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem
    from taskdb.records import Task

README = """\
# Software-engineering tasks made from merged changes

Rows for SWE-smith. `python evaluate.py --predictions gold --run-id gold` grades the gold patches with its harness.

"""


def write_swe_smith(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the rows, predictions, the profile and a folder per task.

    Raises:
        InputError: none of the tasks can be written in this format.
    """
    with (
        JsonLines(folder / "tasks.jsonl", portable=True) as tasks,
        JsonLines(folder / "predictions.noop.jsonl", portable=True) as noop,
        JsonLines(folder / "predictions.gold.jsonl", portable=True) as gold,
    ):
        for row, item in _iterate_rows(items, services):
            tasks.add(row)
            solution = services.artifacts.get(item.task.gold_patch).decode()
            for file, model, patch in ((gold, "gold", solution), (noop, "noop", NOOP_PATCH)):
                file.add({"instance_id": row["instance_id"], "model_name_or_path": model, "model_patch": patch})
            write_task_folder(item, folder / item.folder, services)
    if not tasks.count:
        raise InputError("no task can be written as swe-smith: their patches are not UTF-8", advice="--format harbor")
    rows.write_shipped_file("swesmith_eval.py", folder / "evaluate.py")
    write_file(folder / "README.md", README + ONE_CONTAINER)


def _iterate_rows(items: Iterable[ExportItem], services: Services) -> Iterator[tuple[dict[str, Any], ExportItem]]:
    for item in items:
        try:
            row, notes = build_swe_smith_row(item, services)
        except UnicodeDecodeError:
            item.notes.append(NOT_UTF8_NOTE)
            continue
        item.notes.extend(notes)
        yield row, item


def build_swe_smith_row(item: ExportItem, services: Services) -> tuple[dict[str, Any], list[str]]:
    """Return the task's row, and notes on text and ids that are not complete in it.

    Raises:
        UnicodeDecodeError: a patch is not UTF-8.
    """
    task = item.task
    escaped, notes = escape_test_ids(task)
    changed = {test: line for test, line in escaped.items() if line != test}
    row = {
        "instance_id": item.folder,
        "repo": f"mergemill/{item.folder}",
        "source_repo": task.repo,
        "base_commit": task.base_commit,
        "created_at": task.created_at,
        "patch": reverse_gold_patch(task, services).decode(),
        "test_patch": services.artifacts.get(task.test_patch).decode(),
        "problem_statement": task.problem_statement,
        "FAIL_TO_PASS": list(dict.fromkeys(escaped[test] for test in task_files.list_fail_to_pass(task))),
        "PASS_TO_PASS": list(dict.fromkeys(escaped[test] for test in task.PASS_TO_PASS)),
        "image_name": item.image,
        "timeout": task.evaluations * task_files.compute_timeout(task) + 120,
        **rows.build_flat_facts(item),
    }
    state = add_image_state(item, services)
    files = task_files.build_grader_files(task, services, escaped_ids=changed, image_state=state)
    row["grader"] = base64.b64encode(pack_files(files)).decode()
    valid, replaced = rows.make_valid_row(row)
    return valid, [*notes, *replaced]


def reverse_gold_patch(task: Task, services: Services) -> bytes:
    """Return the patch from the solved tree to the tree that the agent starts from: the bug.

    Raises:
        InputError: the clone of the task's source is missing.
    """
    with (
        open_task_tree(task, services) as (history, start),
        open_patched_commit(history, start, services.artifacts.get(task.gold_patch)) as (repository, solved),
    ):
        return repository.run_git("diff-tree", "-r", "-p", *DIFF_OPTIONS, "--no-renames", solved, start)


FORMATS = {"swe-smith": ExportFormat(write=write_swe_smith, explain_exclusion=exclude_other_oracles)}
