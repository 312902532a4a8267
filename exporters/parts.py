"""What both formats ship of a task: its patches and script, and the grader with its data for inside the container."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backends.services import Services
    from taskdb.records import Task

SLACK = 10
"""A run in another's machine may take this many times what the longest run took here."""
LEAST_SECONDS = 300
"""And never has less than this."""
RECORD = "record.json"
"""Name of the file with a task's record."""


def seconds_allowed(task: Task) -> int:
    """Seconds one run of the tests may take elsewhere, in steps of a minute."""
    wanted = max(LEAST_SECONDS, SLACK * task.test_seconds)
    return 60 * -(-int(wanted) // 60)


def fail_to_pass(task: Task) -> list[str]:
    """The FAIL_TO_PASS ids alone."""
    return [test for test, _ in task.FAIL_TO_PASS]


def box_file(name: str) -> bytes:
    """A file of `exporters/box`."""
    return files("exporters").joinpath("box", name).read_bytes()


def record(task: Task) -> bytes:
    """The task's record, with which a bundle can be read back (`exporters.reading`): canonical JSON."""
    return (json.dumps(task.model_dump(mode="json"), sort_keys=True) + "\n").encode()


def grader(task: Task, services: Services, *, spelled: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """File name -> content of what grades the task inside its container: the script, unchanged, and the grader.

    Args:
        task: the task.
        services: its artifacts.
        spelled: test id -> how its line is spelled, for ids that a log parser would misread.
    """
    data = {
        "name": task.name,
        "workdir": task.the_plan.workdir,
        "seconds": seconds_allowed(task),
        "FAIL_TO_PASS": fail_to_pass(task),
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
        "twins": list(task.twins) if task.twin_patch else [],
        "spelled": dict(spelled or {}),
    }
    shipped = {
        "eval.sh": services.artifacts.get(task.the_script),
        "grade.py": box_file("grade.py"),
        "task.json": (json.dumps(data, indent=1) + "\n").encode(),
    }
    if task.twin_patch:
        shipped["twin.patch"] = services.artifacts.get(task.twin_patch)
    return shipped
