"""Runs of the verifier of a bundle in a container, without the tools that read bundles."""

from __future__ import annotations

import json
from typing import Any

from backends.services import Services
from exporters.item import ExportItem
from exporters.verifier_files import REWARD_PATH, VERIFIER_FOLDER, build_verifier_files, find_submission_path
from taskdb.records import Task
from tests.containers import run_in_container


def run_verifier(
    task: Task,
    services: Services,
    submission: bytes | None,
    image: str | None = None,
    *,
    is_excessive: bool = False,
) -> tuple[dict[str, Any] | None, str]:
    """Return the reward that the verifier writes for a submission, or None, and its output.

    Args:
        submission: None for work that was not collected.
        image: for tasks without one.
        is_excessive: whether the submission exceeds the container's time or disk: only the engine then reads rewards.
    """
    item = ExportItem(task=task, certificate=None)
    files = {f"{VERIFIER_FOLDER}/{path}": content for path, content in build_verifier_files(item, services).items()}
    if submission is not None:
        files[find_submission_path(task)] = submission
    command = ["/bin/bash", f"{VERIFIER_FOLDER}/test.sh"]
    if is_excessive:
        limits = services.test_limits()
        result = services.sandbox.run(image or task.image, command, limits=limits, files=files, collect=[REWARD_PATH])
    else:
        result = run_in_container(services, image or task.image, command, files, collect=[REWARD_PATH])
    content = result.files.get(REWARD_PATH)
    return (json.loads(content) if content else None), result.output
