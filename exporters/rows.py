"""Rows of formats for training and evaluation: prompt, image, verifier and facts of a task in a mapping.

Text in a row is valid UTF-8: parquet and most JSON readers reject lone surrogates. The verifier's archive and the
task's folder hold everything unchanged.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from core.text import replace_surrogates
from exporters import task_files
from exporters.archive import pack_files
from exporters.bundle_writer import write_file
from exporters.facts import build_facts
from exporters.prompts import build_complete_instruction
from exporters.task_folder import write_task_folder
from exporters.verifier_files import (
    build_gold_submission,
    build_verifier_files,
    compute_verifier_seconds,
    find_submission_path,
)
from taskdb.schema.task_columns import EXPORTED, VALUE_TYPES

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

REPLACED_NOTE = "{}: characters that UTF-8 cannot hold are replaced; the task's folder has them"
"""Note in the manifest for a text that is not complete in its row."""

_FIRST_FACTS = (
    *("kind", "change_kind", "language", "license", "tests", "family", "split", "strength", "untested_hunks"),
    *("control_bound", "flaky_bound", "underspecified", "unfair_tests", "set_aside", "audited", "certificate"),
    *("n_fail_to_pass", "n_pass_to_pass", "test_seconds", "statement_tokens", "changed_files", "changed_lines"),
    "difficulty",
)
"""Order of the facts in files of earlier versions; further facts follow."""
_PARQUET_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
FACT_TYPES: Mapping[str, pa.DataType] = {
    name: _PARQUET_TYPES[VALUE_TYPES[name]] for name in dict.fromkeys((*_FIRST_FACTS, *EXPORTED))
}
"""Facts of a row and their types in parquet; `difficulty` is a JSON object as text."""

TASK_TYPES: Mapping[str, pa.DataType] = {
    "instance_id": pa.string(),
    "repo": pa.string(),
    "base_commit": pa.string(),
    "created_at": pa.string(),
    "problem_statement": pa.string(),
    "instruction": pa.string(),
    "image": pa.string(),
    "workdir": pa.string(),
    "submission_path": pa.string(),
    "collect_command": pa.string(),
    "verifier": pa.string(),
    "verifier_seconds": pa.int64(),
    "cpus": pa.int64(),
    "memory_mb": pa.int64(),
    "gold_submission": pa.string(),
}
"""Columns of `build_task_row` and their types in parquet."""


def build_flat_facts(item: ExportItem) -> dict[str, Any]:
    """Return the facts of FACT_TYPES, each a text, a number or None; `split` is `train` where it is not known."""
    facts = build_facts(item)
    facts["difficulty"] = json.dumps(facts["difficulty"], sort_keys=True)
    facts["split"] = facts["split"] or "train"
    return {name: _convert(facts.get(name), kind) for name, kind in FACT_TYPES.items()}


def _convert(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return replace_surrogates(str(value))
    return int(value) if pa.types.is_integer(kind) else float(value)


def build_task_row(item: ExportItem, services: Services) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of TASK_TYPES, and notes on text that is not complete in them.

    A review has neither image nor workdir: its instruction holds the material, and the answer is the submission.
    `verifier` (a .tar.gz) and `gold_submission` are base64; an agent must see neither.
    """
    task = item.task
    row = {
        "instance_id": item.folder,
        "repo": task.repo,
        "base_commit": task.base_commit,
        "created_at": task.created_at,
        "problem_statement": task.problem_statement,
        "instruction": build_complete_instruction(item, services.artifacts),
        "image": item.image,
        "workdir": task.plan.workdir if task.plan else "",
        "submission_path": find_submission_path(task),
        "collect_command": build_collect_command(item),
        "verifier": base64.b64encode(pack_files(build_verifier_files(item, services))).decode(),
        "verifier_seconds": compute_verifier_seconds(task),
        "cpus": math.ceil(services.settings.limits.cpus),
        "memory_mb": services.settings.limits.memory_mb,
        "gold_submission": base64.b64encode(build_gold_submission(item, services)).decode(),
    }
    return make_valid_row(row)


def build_collect_command(item: ExportItem) -> str:
    """Return the shell command that leaves the agent's work at the row's `submission_path` in its container.

    A review has no container, so its command does nothing.
    """
    if not find_submission_path(item.task).endswith(".patch"):
        return "true"
    return task_files.read_container_file("collect.sh").decode().strip()


def make_valid_row(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a row whose texts are valid UTF-8, and a note for each column that differs."""
    valid = {name: _make_valid(value) for name, value in row.items()}
    return valid, [REPLACED_NOTE.format(name) for name, value in valid.items() if value != row[name]]


def _make_valid(value: Any) -> Any:
    if isinstance(value, list):
        return [_make_valid(inner) for inner in value]
    if isinstance(value, Mapping):
        return {_make_valid(key): _make_valid(inner) for key, inner in value.items()}
    return replace_surrogates(value) if isinstance(value, str) else value


@cache
def read_shipped_file(name: str) -> bytes:
    """Return the content of a file of `exporters/shipped`."""
    return files("exporters").joinpath("shipped", name).read_bytes()


def write_shipped_file(name: str, path: Path) -> None:
    """Write a file of `exporters/shipped` into a bundle."""
    write_file(path, read_shipped_file(name))


def write_reward_module(folder: Path) -> None:
    """Write the module that grades submissions, and the one by which it grades reviews, into a folder of a bundle."""
    write_shipped_file("mergemill_reward.py", folder / "mergemill_reward.py")
    write_file(folder / "mergemill_review.py", files("guest.scoring").joinpath("findings.py").read_bytes())


PATCH_HAND_IN = """\
Hand in a patch: what differs from the base commit in `{workdir}` when you finish. If you cannot change files there, end
your answer with one fenced block that holds the patch, as `git apply` accepts it.
"""
FINDINGS_HAND_IN = """\
Hand in one JSON object with your findings: end your answer with one fenced block that holds it.
"""


def build_prompt(row: Mapping[str, Any]) -> str:
    """Return the prompt of a row of `build_task_row`: how to hand in, then the instruction.

    The instruction ends with text of the repository, so nothing stands behind it.
    """
    is_patch = row["submission_path"].endswith(".patch")
    hand_in = PATCH_HAND_IN.format(workdir=row["workdir"]) if is_patch else FINDINGS_HAND_IN
    return f"{hand_in}\n{row['instruction']}"


def build_training_row(item: ExportItem, services: Services) -> tuple[dict[str, Any], list[str]]:
    """Return the columns of TRAINING_TYPES (a task's columns and its facts), and notes as `build_task_row`."""
    row, notes = build_task_row(item, services)
    return row | build_flat_facts(item), notes


def iterate_training_rows(items: Iterable[ExportItem], folder: Path, services: Services) -> Iterator[dict[str, Any]]:
    """Yield the row of each item (see `build_training_row`); write its folder beside the rows, and add its notes."""
    for item in items:
        row, notes = build_training_row(item, services)
        item.notes.extend(notes)
        write_task_folder(item, folder / item.folder, services)
        yield row


TRAINING_TYPES: Mapping[str, pa.DataType] = {**TASK_TYPES, **FACT_TYPES}
"""Columns of `build_training_row` and their types in parquet."""


def build_messages(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the prompt of a row as OpenAI messages."""
    return [{"role": "user", "content": build_prompt(row)}]
