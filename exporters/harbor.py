"""Harbor (0.24, 0.25; task schema 1.4): one folder a task, which verifiers, SkyRL, rLLM and NeMo-Gym read, too.

The verifier is a container of its own, without network: only the agent's work travels there, as a patch that Harbor
collects at the agent's end. The image is named (`docker_image`) and its recipe shipped beside it, self-contained.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from exporters import parts
from exporters.bundle import put
from exporters.item import Item
from exporters.recipe import write_recipe

if TYPE_CHECKING:
    from backends.services import Services

AGENT_SECONDS = 3600
"""What an agent may take."""

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


def write(items: Sequence[Item], folder: Path, services: Services) -> Mapping[str, Sequence[str]]:
    """Write one task folder for each item, and the environment for a plain engine; nothing is left out."""
    for item in items:
        _write_task(item, folder / item.folder, services)
    put(folder / "harbor_engine.py", Path(__file__).with_name("harbor_engine.py").read_bytes())
    return {}


def _write_task(item: Item, folder: Path, services: Services) -> None:
    task = item.task
    gold = services.artifacts.get(task.gold_patch)
    instruction = INSTRUCTION.format(
        repo=task.repo, workdir=task.the_plan.workdir, statement=task.problem_statement.strip()
    )  # Harbor strips leading lines that speak of canaries; ours stands first
    put(folder / "task.toml", tomli_w.dumps(_clean(config(item, services))))
    put(folder / "instruction.md", instruction.encode(errors="replace"))
    write_recipe(task, folder / "environment", services)
    solve = SOLVE.format(workdir=task.the_plan.workdir, patch=base64.encodebytes(gold).decode().rstrip("\n"))
    put(folder / "solution" / "solve.sh", solve, executable=True)
    put(folder / "solution" / "gold.patch", gold)
    put(folder / "tests" / "test.sh", parts.box_file("test.sh"), executable=True)
    put(folder / "tests" / "test.patch", services.artifacts.get(task.test_patch))
    if task.setup_patch:
        put(folder / "tests" / "setup.patch", services.artifacts.get(task.setup_patch))
    put(folder / "tests" / parts.RECORD, parts.record(task))
    for name, content in parts.grader(task, services).items():
        put(folder / "tests" / name, content, executable=name == "eval.sh")


def config(item: Item, services: Services) -> dict[str, Any]:
    """The content of task.toml."""
    task, settings = item.task, services.settings
    resources = {
        "cpus": math.ceil(settings.cpus), "memory_mb": settings.memory_mb, "storage_mb": settings.disk_mb,
        "build_timeout_sec": settings.budget_seconds, "workdir": task.the_plan.workdir,
    }  # fmt: skip
    collect = {"command": parts.box_file("collect.sh").decode().strip(), "user": "root", "timeout_sec": 120.0}
    return {
        "schema_version": "1.4",
        "task": {
            "name": f"mergemill/{item.folder}",
            "description": _first_line(task.problem_statement),
            "keywords": [task.kind.value, task.language],
        },
        "metadata": metadata(item),
        "agent": {"timeout_sec": float(AGENT_SECONDS), "user": "mergemill"},
        # The verifier's environment names no image of its own: Harbor would take that as an image with tests in it.
        "verifier": {
            "timeout_sec": 2.0 * parts.seconds_allowed(task) + 120, "user": "root", "environment_mode": "separate",
            "environment": {**resources, "network_mode": "no-network"}, "collect": [collect],
        },
        "environment": {**resources, "docker_image": item.image, "network_mode": "public"},
    }  # fmt: skip


def metadata(item: Item) -> dict[str, Any]:
    """What is known of the task, for people and for filters."""
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
        "eval_script_sha256": task.the_script,
        "FAIL_TO_PASS": parts.fail_to_pass(task),
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
    }


def _first_line(text: str) -> str:
    return next((line.strip(" #\t") for line in text.splitlines() if line.strip(" #\t")), "")[:200]


def _clean(value: Any) -> Any:
    """The value with characters that UTF-8 cannot hold replaced."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list) else value
