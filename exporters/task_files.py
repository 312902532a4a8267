"""Files of a task that both formats contain: its record, and the in-container grader with script and data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from evaluation.runner.run import load_patch_program
from evaluation.runner.time_limit import MIN_GRADING_SECONDS, TimeLimit

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

CONTROLS_FILE = "controls.json"
"""Name of the file that holds a task's forms of sabotage."""
GUEST_MODULES = (
    "guest/controls/blind.py",
    "guest/controls/choices.py",
    "guest/controls/texts.py",
    "guest/reports/canaries.py",
    "guest/reports/entries.py",
    "guest/reports/junit.py",
)
"""Paths of the modules that the grader shares with `mergemill grade`, in the sources and in the grader's folder."""
RECORD_FILE = "record.json"
"""Name of the file that holds a task's record."""


def compute_timeout(task: Task) -> int:
    """Return the time limit in seconds for a run of the tests elsewhere, in steps of a minute."""
    limit = TimeLimit(expected=task.test_seconds, minimum=MIN_GRADING_SECONDS)
    return 60 * -(-int(limit.seconds) // 60)


def list_fail_to_pass(task: Task) -> list[str]:
    """Return the FAIL_TO_PASS ids without their failure kinds."""
    return [test for test, _ in task.FAIL_TO_PASS]


@cache
def read_container_file(name: str) -> bytes:
    """Return the content of a file of `guest/verifier`."""
    return files("guest").joinpath("verifier", name).read_bytes()


@cache
def read_guest_modules() -> Mapping[str, bytes]:
    """Return path -> content of GUEST_MODULES."""
    return {path: files("guest").joinpath(*path.split("/")[1:]).read_bytes() for path in GUEST_MODULES}


def encode_record(task: Task) -> bytes:
    """Return the task's record as canonical JSON, from which `exporters.bundle_reader` reads the task back."""
    return (json.dumps(task.model_dump(mode="json"), sort_keys=True) + "\n").encode()


def build_grader_files(
    task: Task,
    services: Services,
    *,
    escaped_ids: Mapping[str, str] | None = None,
    image_state: bytes | None = None,
) -> dict[str, bytes]:
    """Return name -> content of the files that grade the task in its container: script, grader and data.

    Args:
        task: the task.
        services: services that provide the artifacts.
        escaped_ids: test id -> escaped id, for ids that a log parser would misread.
        image_state: state of the image (`exporters.image_states`), where the grader has to check its container.
    """
    data = {
        "name": task.name,
        "workdir": task.require_plan().workdir,
        "seconds": compute_timeout(task),
        "deadline": task.evaluations * compute_timeout(task) + 90,
        "FAIL_TO_PASS": list_fail_to_pass(task),
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
        "escaped_ids": dict(escaped_ids or {}),
    }
    grader_files = {
        "eval.sh": services.artifacts.get(task.require_script()),
        "grade.py": read_container_file("grade.py"),
        "apply_patch.py": load_patch_program(),
        "task.json": (json.dumps(data, indent=1) + "\n").encode(),
        **read_guest_modules(),
    }
    if image_state is not None:
        grader_files["image_state.json"] = image_state
        grader_files["image_state.py"] = read_container_file("image_state.py")
    if task.blind_controls:
        grader_files[CONTROLS_FILE] = services.artifacts.get(task.blind_controls)
    return grader_files
