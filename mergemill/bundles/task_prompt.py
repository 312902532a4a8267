"""Text that an agent is given for a task: the prompt of an export, and nothing that it must not see."""

from __future__ import annotations

from typing import Any

import verifiers
from core.errors import InputError
from exporters.item import ExportItem
from exporters.prompts import build_complete_instruction
from exporters.rows import build_collect_command, build_messages
from exporters.verifier_files import explain_ungradable, find_submission_path
from taskdb.artifacts import Artifacts
from taskdb.records import Task


def build_task_prompt(task: Task, artifacts: Artifacts) -> dict[str, Any]:
    """Return name, id and kind of a task, form of its submissions, prompt as OpenAI messages, image and workdir.

    `collect_command` leaves the agent's work at `submission_path` of its container. A task that has no image has null
    for image and workdir; its prompt holds all material.

    Raises:
        InputError: an agent cannot work on it, since it is simulated.
    """
    if reason := explain_ungradable(task):
        raise InputError(f"{task.name} has no prompt: {reason}")
    item = ExportItem(task=task, certificate=None)
    workdir = task.plan.workdir if task.plan else ""
    row = {
        "instruction": build_complete_instruction(item, artifacts),
        "submission_path": find_submission_path(task),
        "workdir": workdir,
    }
    return {
        "task": task.name,
        "id": task.id,
        "kind": task.kind.value,
        "submission": verifiers.select_reward(task).submission,
        "messages": build_messages(row),
        "image": task.image or None,
        "workdir": workdir or None,
        "submission_path": find_submission_path(task),
        "collect_command": build_collect_command(item),
    }
