"""SWE-bench 5: `tasks.jsonl` with the fields that its harness (5.0.2) and mini-swe-agent read, and files of each task.

The harness starts `image` as root (a local image is not pulled), applies the model's patch in /testbed with `git
apply`, runs `eval_script` under `bash -x` without the lines `#!/bin/bash` and `set -uxo pipefail`, and parses the
output between the first two marker lines with the named log parser.

Therefore `eval_script` contains the task's own script, byte for byte, and the grader, which reads the report, runs the
negative controls and then prints a line per listed test. No output of the code under test is between the markers, and
XFAIL, which the harness would count as passed, is never printed.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from core.errors import InputError
from exporters import rows, task_files
from exporters.archive import pack_files
from exporters.bundle_writer import NOT_UTF8_NOTE, write_file
from exporters.export_format import ExportFormat, exclude_other_oracles
from exporters.image_states import ONE_CONTAINER, add_image_state
from exporters.item import ExportItem
from exporters.task_folder import write_task_folder
from training_data.parquet import ParquetShards
from training_data.row_files import JsonLines

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

LOG_PARSER = "parse_log_pytest_v2"
"""The parser that keeps spaces inside ids. The printed lines are the same for every test framework."""

EVAL_SCRIPT = """\
#!/bin/bash
# Runs the task's evaluation script, packed below unchanged, and prints the status of each listed test.
{{ set +x; }} 2> /dev/null
[ ! -f "$0" ] || chmod 600 "$0"
folder="$(mktemp -d)"
base64 -d << 'END_OF_ARCHIVE' | tar -xz -C "$folder" || exit 97
{archive}
END_OF_ARCHIVE
python3 -I -S "$folder/grade.py" --lines "$folder/lines"
code=$?
[ -f "$folder/lines" ] || exit "$code"
echo '>>>>> Start Test Output'
cat "$folder/lines"
rm -rf "$folder"
(exit "$code")
echo '>>>>> End Test Output'
"""

SETUP_PATCH_NOTE = "its tree, to which the other patches apply, is base_commit with setup_patch"
"""Note in the manifest for a row whose base commit alone is not the task's tree."""

PUBLISHED_NOTE = "it is as it was published: its lists were not verified, and it has neither image nor eval_script"
COLUMNS = (
    "instance_id",
    "repo",
    "version",
    "base_commit",
    "environment_setup_commit",
    "setup_patch",
    "patch",
    "test_patch",
    "problem_statement",
    "hints_text",
    "created_at",
    "FAIL_TO_PASS",
    "PASS_TO_PASS",
    "image",
    "image_name",
    "docker_image",
    "log_parser",
    "eval_type",
    "eval_script",
)
"""Columns that the harness reads, and other names of the image."""

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in COLUMNS),
        *rows.FACT_TYPES.items(),
    ]
)
"""Columns of `tasks.parquet`: those of the harness, then the facts."""

CARD = """\
---
configs:
- config_name: default
  data_files:
  - split: test
    path: tasks*.parquet
---

# Software-engineering tasks made from merged changes

Rows for SWE-bench 5 and tools that read them. `load_dataset` of this folder loads them, all in the split `test`.

"""
"""Data set card: without a card, `datasets` finds no rows here, as it expects them in files named for their split."""

NOOP_PATCH = """\
diff --git a/mergemill-noop.txt b/mergemill-noop.txt
new file mode 100644
--- /dev/null
+++ b/mergemill-noop.txt
@@ -0,0 +1 @@
+This patch changes nothing that matters; the harness does not run empty ones.
"""


def write_swebench(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the bundle; notes are about escaped ids, or why a task is missing.

    Raises:
        InputError: none of the tasks can be written in this format.
    """
    with (
        JsonLines(folder / "tasks.jsonl", portable=True) as tasks,
        JsonLines(folder / "predictions.gold.jsonl", portable=True) as gold,
        JsonLines(folder / "predictions.noop.jsonl", portable=True) as noop,
        ParquetShards(folder / "tasks", SCHEMA) as table,
    ):
        for item in items:
            is_published = item.task.environment == "imported"
            try:
                row, notes = (build_published_row if is_published else build_row)(item, services)
            except UnicodeDecodeError:
                # JSON holds text, and the harness writes the patch as UTF-8.
                item.notes.append(NOT_UTF8_NOTE)
                continue
            item.notes.extend(notes)
            tasks.add(row)
            gold.add(_make_prediction(row, "gold", row["patch"]))
            # The harness skips empty patches, so the submission without a solution adds a file.
            noop.add(_make_prediction(row, "noop", NOOP_PATCH))
            valid, replaced = rows.make_valid_row(row)
            table.add(valid)
            item.notes.extend(f"tasks.parquet: {note}" for note in replaced)
            if not is_published:
                write_task_folder(item, folder / item.folder, services)
    write_file(folder / "README.md", CARD + ONE_CONTAINER)
    if not tasks.count:
        raise InputError("no task can be written as swebench: their patches are not UTF-8", advice="--format harbor")


def build_row(item: ExportItem, services: Services) -> tuple[dict[str, Any], list[str]]:
    """Return the task's row, all of COLUMNS and the facts, and notes on ids that are escaped in it.

    Raises:
        UnicodeDecodeError: a patch is not UTF-8.
    """
    task = item.task
    escaped, notes = escape_test_ids(task)
    changed = {test: line for test, line in escaped.items() if line != test}
    row = {
        "instance_id": item.folder,
        "repo": task.repo,
        "version": task.version,
        "base_commit": task.base_commit,
        "environment_setup_commit": task.base_commit,
        "setup_patch": services.artifacts.get(task.setup_patch).decode() if task.setup_patch else "",
        "patch": services.artifacts.get(task.gold_patch).decode(),
        "test_patch": services.artifacts.get(task.test_patch).decode(),
        "problem_statement": task.problem_statement,
        "hints_text": task.hints,
        "created_at": task.created_at,
        # Several ids may have the same escaped form, which the list names once.
        "FAIL_TO_PASS": json.dumps(list(dict.fromkeys(escaped[test] for test in task_files.list_fail_to_pass(task)))),
        "PASS_TO_PASS": json.dumps(list(dict.fromkeys(escaped[test] for test in task.PASS_TO_PASS))),
        "image": item.image,
        "image_name": item.image,
        "docker_image": item.image,
        "log_parser": LOG_PARSER,
        "eval_type": "pass_and_fail",
        "eval_script": render_eval_script(task, services, changed, add_image_state(item, services)),
        **rows.build_flat_facts(item),
    }
    return row, [*([SETUP_PATCH_NOTE] if task.setup_patch else []), *notes]


def build_published_row(item: ExportItem, services: Services) -> tuple[dict[str, Any], list[str]]:
    """Return the row of a task as it was published, whose ids are as they were: it has no image and no script.

    Raises:
        UnicodeDecodeError: a patch is not UTF-8.
    """
    task = item.task
    row = dict.fromkeys(COLUMNS, "") | {
        "instance_id": item.folder,
        "repo": task.repo,
        "version": task.version,
        "base_commit": task.base_commit,
        "environment_setup_commit": task.base_commit,
        "patch": services.artifacts.get(task.gold_patch).decode(),
        "test_patch": services.artifacts.get(task.test_patch).decode(),
        "problem_statement": task.problem_statement,
        "hints_text": task.hints,
        "created_at": task.created_at,
        "FAIL_TO_PASS": json.dumps(task_files.list_fail_to_pass(task)),
        "PASS_TO_PASS": json.dumps(task.PASS_TO_PASS),
        "eval_type": "pass_and_fail",
        **rows.build_flat_facts(item),
    }
    return row, [PUBLISHED_NOTE]


def _exclude(task: Task) -> str | None:
    """Return why rows of SWE-bench cannot carry a task; None if they can."""
    return None if task.environment == "imported" else exclude_other_oracles(task)


def escape_test_ids(task: Task) -> tuple[dict[str, str], list[str]]:
    """Return test id -> escaped id for the task's tests, and notes on the ids that differ or coincide."""
    escaped = {test: escape_test_id(test) for test in [*task_files.list_fail_to_pass(task), *task.PASS_TO_PASS]}
    changed = [(test, line) for test, line in escaped.items() if test != line]
    shared = [line for line, n in Counter(escaped.values()).items() if n > 1]
    return escaped, [
        *(f"{test!r} is written as {line!r}, as the log parser would misread it" for test, line in changed),
        *(f"{line!r} stands for several tests, which pass together or not at all" for line in shared),
    ]


@lru_cache(maxsize=10_000)
def escape_test_id(test: str) -> str:
    r"""Return a test id with the characters escaped that LOG_PARSER would change.

    The parser deletes control characters and `[<digits>m`, collapses runs of white space, and cuts FAILED lines at
    ` - `. Each such character becomes `\xNN` or `\uNNNN`; a backslash stays.
    """

    def escape(match: re.Match[str]) -> str:
        return "".join(f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in match[0])

    test = re.sub(r"[\x00-\x1f\x7f]|[^\S ]| (?=\s)|^ | $|(?<= )-(?= )|[\ud800-\udfff]", escape, test)
    return re.sub(r"\[(?=\d+m)", escape, test)


def render_eval_script(
    task: Task, services: Services, escaped_ids: Mapping[str, str], image_state: bytes | None
) -> str:
    """Return the row's `eval_script`.

    Args:
        task: the task.
        services: services that provide the artifacts.
        escaped_ids: the ids whose lines differ from the id.
        image_state: state of the image, with which the script checks its container; None for no check.
    """
    files = task_files.build_grader_files(task, services, escaped_ids=escaped_ids, image_state=image_state)
    archive = pack_files(files)
    return EVAL_SCRIPT.format(archive=base64.encodebytes(archive).decode().rstrip("\n"))


def _make_prediction(row: Mapping[str, Any], model: str, patch: str) -> dict[str, str]:
    return {"instance_id": row["instance_id"], "model_name_or_path": model, "model_patch": patch}


FORMATS = {"swebench": ExportFormat(write=write_swebench, explain_exclusion=_exclude)}
