"""Harbor (0.24, 0.25; task schema 1.4): one folder per task, which verifiers, SkyRL, rLLM and NeMo-Gym also read.

The verifier has a separate container without network. It gets only the agent's work, as a patch that Harbor collects
when the agent ends. The task names the image (`docker_image`) and holds a self-contained build context for it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from exporters import task_files
from exporters.build_context import write_build_context
from exporters.bundle_writer import write_file
from exporters.item import ExportItem

if TYPE_CHECKING:
    from backends.services import Services

AGENT_SECONDS = 3600
"""Time limit for an agent."""

INSTRUCTION = """\
The repository {repo} lies in `{workdir}`. Solve the following by changing its source code there. Hidden tests decide;
changes to tests and to the configuration of the test runner do not count.

{statement}
"""

SOLVE = """\
#!/bin/bash
# Applies the gold patch.
set -euo pipefail
cd {workdir}
base64 -d << 'END_OF_PATCH' | git apply --whitespace=nowarn -
{patch}
END_OF_PATCH
"""


def write_harbor(items: Sequence[ExportItem], folder: Path, services: Services) -> Mapping[str, Sequence[str]]:
    """Write one task folder for each item, and the environment class for a plain engine; there are no notes."""
    for item in items:
        _write_task(item, folder / item.folder, services)
    write_file(folder / "harbor_engine.py", Path(__file__).with_name("harbor_engine.py").read_bytes())
    return {}


def _write_task(item: ExportItem, folder: Path, services: Services) -> None:
    task = item.task
    gold = services.artifacts.get(task.gold_patch)
    instruction = INSTRUCTION.format(
        repo=task.repo, workdir=task.require_plan().workdir, statement=task.problem_statement.strip()
    )  # Harbor strips leading lines that mention canaries, so other text stands first
    write_file(folder / "task.toml", tomli_w.dumps(_replace_surrogates(build_config(item, services))))
    write_file(folder / "instruction.md", instruction.encode(errors="replace"))
    write_build_context(task, folder / "environment", services)
    solve = SOLVE.format(workdir=task.require_plan().workdir, patch=base64.encodebytes(gold).decode().rstrip("\n"))
    write_file(folder / "solution" / "solve.sh", solve, executable=True)
    write_file(folder / "solution" / "gold.patch", gold)
    write_file(folder / "tests" / "test.sh", task_files.read_container_file("test.sh"), executable=True)
    write_file(folder / "tests" / "test.patch", services.artifacts.get(task.test_patch))
    if task.setup_patch:
        write_file(folder / "tests" / "setup.patch", services.artifacts.get(task.setup_patch))
    write_file(folder / "tests" / task_files.RECORD_FILE, task_files.encode_record(task))
    for name, content in task_files.build_grader_files(task, services).items():
        write_file(folder / "tests" / name, content, executable=name == "eval.sh")


def build_config(item: ExportItem, services: Services) -> dict[str, Any]:
    """Return the content of task.toml."""
    task, settings = item.task, services.settings
    resources = {
        "cpus": math.ceil(settings.cpus),
        "memory_mb": settings.memory_mb,
        "storage_mb": settings.disk_mb,
        "build_timeout_sec": settings.budget_seconds,
        "workdir": task.require_plan().workdir,
    }
    collect = {
        "command": task_files.read_container_file("collect.sh").decode().strip(),
        "user": "root",
        "timeout_sec": 120.0,
    }
    return {
        "schema_version": "1.4",
        "task": {
            "name": f"mergemill/{item.folder}",
            "description": _extract_first_line(task.problem_statement),
            "keywords": [task.kind.value, task.language],
        },
        "metadata": build_metadata(item),
        "agent": {"timeout_sec": float(AGENT_SECONDS), "user": "mergemill"},
        # The verifier's environment names no image: Harbor would assume that such an image contains the tests.
        "verifier": {
            "timeout_sec": 2.0 * task_files.compute_timeout(task) + 120,
            "user": "root",
            "environment_mode": "separate",
            "environment": {**resources, "network_mode": "no-network"},
            "collect": [collect],
        },
        "environment": {**resources, "docker_image": item.image, "network_mode": "public"},
    }


def build_metadata(item: ExportItem) -> dict[str, Any]:
    """Return the task's metadata, for readers and for filters."""
    task = item.task
    return {
        "instance_id": task.name,
        "task_id": task.id,
        "certificate": item.certificate.id if item.certificate else "",
        "repo": task.repo,
        "base_commit": task.base_commit,
        "created_at": task.created_at,
        "version": task.version,
        "language": task.language,
        "language_version": task.language_version,
        "category": task.kind.value,
        "license": task.license,
        "image_digest": task.image_digest,
        "gold_patch_sha256": task.gold_patch,
        "test_patch_sha256": task.test_patch,
        "setup_patch_sha256": task.setup_patch or "",
        "eval_script_sha256": task.require_script(),
        "FAIL_TO_PASS": task_files.list_fail_to_pass(task),
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
    }


def _extract_first_line(text: str) -> str:
    return next((line.strip(" #\t") for line in text.splitlines() if line.strip(" #\t")), "")[:200]


def _replace_surrogates(value: Any) -> Any:
    """Return the value with characters replaced that UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {key: _replace_surrogates(inner) for key, inner in value.items()}
    return [_replace_surrogates(inner) for inner in value] if isinstance(value, list) else value
