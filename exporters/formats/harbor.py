"""Harbor (0.24, 0.25; task schema 1.4): a folder per task, which verifiers, SkyRL, rLLM and NeMo-Gym also read.

The verifier has a separate container without network. It gets only the agent's work, as a patch that Harbor collects
when the agent ends. The task names the image (`docker_image`) and holds a self-contained build context for it.
"""

from __future__ import annotations

import base64
import math
import shlex
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import tomli_w

from exporters import task_files
from exporters.build_context import write_build_context
from exporters.bundle_writer import write_file
from exporters.export_format import ExportFormat
from exporters.facts import build_facts
from exporters.harbor_dataset import ORGANIZATION, DatasetWriter
from exporters.instruction_files import (
    AGENT_LOG,
    build_check_files,
    build_guidance_files,
    describe_guidance,
    explain_uncarried,
    extend_agent_dockerfile,
    extend_verifier_dockerfile,
    load_dutiful,
    render_collection,
    render_log,
)
from exporters.item import ExportItem
from exporters.prompts import FINDINGS_FILE, REVIEW_FOLDER, build_instruction
from exporters.tree import TREE_ARCHIVE
from exporters.verifier_files import (
    build_gold_submission,
    build_verifier_files,
    compute_verifier_seconds,
    explain_environment,
    explain_ungradable,
    find_submission_path,
)
from taskdb.records.instructions import InstructionOracle
from taskdb.records.oracles import ReviewOracle
from training_data.canaries import mark_folder

if TYPE_CHECKING:
    from backends.services import Services
    from core.settings.machine import LimitSettings
    from core.settings.models import BudgetSettings
    from taskdb.records import Task

AGENT_SECONDS = 3600
"""Time limit for an agent."""
REVIEW_MEMORY_MB = 1024
"""Memory of an environment that holds the material of a review only."""

SOLVE = """\
#!/bin/bash
# Does what earns 1: {what}.
set -euo pipefail
cd {folder}
base64 -d << 'END_OF_SOLUTION' {command}
{solution}
END_OF_SOLUTION
"""
SOLVE_LOG = """\
# What an agent that follows the instructions does, as the log of one.
mkdir -p {folder}
base64 -d << 'END_OF_LOG' > {path}
{log}
END_OF_LOG
"""


def write_harbor(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write a folder for each task, the files of the data set, and the environment class for a plain engine."""
    return _write_dataset(items, folder, services, with_parquet=False)


def write_harbor_parquet(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the files that `write_harbor` writes, and the tasks packed in parquet."""
    return _write_dataset(items, folder, services, with_parquet=True)


def _write_dataset(items: Iterable[ExportItem], folder: Path, services: Services, *, with_parquet: bool) -> None:
    with DatasetWriter(folder, with_parquet=with_parquet) as dataset:
        for item in items:
            _write_task(item, folder / item.folder, services)
            if item.canary:
                mark_folder(folder / item.folder, item.canary)
            dataset.add(item.folder, item.facts.get("split") or "train")
    write_file(folder / "harbor_engine.py", (files("exporters") / "harbor_engine.py").read_bytes())


def _write_task(item: ExportItem, folder: Path, services: Services) -> None:
    task = item.task
    write_file(folder / "task.toml", tomli_w.dumps(_make_valid(build_config(item, services))))
    write_file(folder / "instruction.md", build_instruction(item).encode(errors="replace"))
    write_build_context(item, folder / "environment", services)
    if isinstance(task.oracle, InstructionOracle):
        _write_instructions(item, task.oracle, folder, services)
        return
    solution = build_gold_submission(item, services)
    write_file(folder / "solution" / "solve.sh", _render_solve(task, solution), executable=True)
    write_file(folder / "solution" / PurePosixPath(find_submission_path(task)).name.replace("model", "gold"), solution)
    for path, content in build_verifier_files(item, services).items():
        write_file(folder / "tests" / path, content, executable=path.endswith(".sh"))


def _write_instructions(item: ExportItem, oracle: InstructionOracle, folder: Path, services: Services) -> None:
    """Write the files of the agent's image, the context of the verifier's image, and the solution with its log."""
    guidance = build_guidance_files(item.task, oracle)
    agent_file, verifier_file = folder / "environment" / "Dockerfile", folder / "tests" / "Dockerfile"
    write_build_context(item, folder / "tests", services)
    write_file(verifier_file, extend_verifier_dockerfile(verifier_file.read_text(), TREE_ARCHIVE))
    write_file(agent_file, extend_agent_dockerfile(agent_file.read_text(), guidance))
    for path, content in guidance.items():
        write_file(folder / "environment" / "guidance" / path, content)
    for path, content in build_check_files(item.task, oracle, services).items():
        write_file(folder / "tests" / path, content, executable=path.endswith(".sh"))
    dutiful = load_dutiful(oracle, services)
    log = render_log(oracle, dutiful)
    encoded = base64.encodebytes(log).decode().rstrip("\n")
    solve_log = SOLVE_LOG.format(folder=PurePosixPath(AGENT_LOG).parent, path=AGENT_LOG, log=encoded)
    solve = _render_solve(item.task, dutiful.patch_bytes) + solve_log
    write_file(folder / "solution" / "solve.sh", solve, executable=True)
    write_file(folder / "solution" / "gold.patch", dutiful.patch_bytes)
    write_file(folder / "solution" / "trajectory.json", log)


def _render_solve(task: Task, solution: bytes) -> str:
    is_review = isinstance(task.oracle, ReviewOracle)
    return SOLVE.format(
        what="writes the known defects as findings" if is_review else "applies a patch",
        folder=REVIEW_FOLDER if is_review else shlex.quote(task.require_plan().workdir),
        command=f"> {FINDINGS_FILE}" if is_review else "| git apply --whitespace=nowarn -",
        solution=base64.encodebytes(solution).decode().rstrip("\n"),
    )


def build_config(item: ExportItem, services: Services) -> dict[str, Any]:
    """Return the content of task.toml."""
    task = item.task
    is_review = isinstance(task.oracle, ReviewOracle)
    resources = _build_resources(task, services.settings.limits, services.settings.budget)
    guidance = build_guidance_files(task, task.oracle) if isinstance(task.oracle, InstructionOracle) else {}
    command = task_files.read_container_file("collect_review.sh" if is_review else "collect.sh").decode().strip()
    collect = {
        "command": render_collection(command, guidance) if isinstance(task.oracle, InstructionOracle) else command,
        "user": "root",
        "timeout_sec": 120.0,
    }
    return {
        "schema_version": "1.4",
        "task": {
            "name": f"{ORGANIZATION}/{item.folder}",
            "description": _extract_first_line(task.problem_statement),
            "keywords": [task.kind.value, task.language],
        },
        "metadata": build_metadata(item),
        "agent": {"timeout_sec": float(AGENT_SECONDS), "user": "mergemill"},
        # The verifier's environment names no image: Harbor would assume that such an image contains the tests.
        "verifier": {
            "timeout_sec": float(compute_verifier_seconds(task)),
            "user": "root",
            "environment_mode": "separate",
            "environment": {**resources, "network_mode": "no-network"},
            "collect": [collect],
        },
        # The image of the task has no files of instructions: Harbor builds the one that has them.
        "environment": {
            **resources,
            "docker_image": None if guidance else item.image or None,
            "network_mode": "public",
            **describe_guidance(guidance),
        },
    }


def _build_resources(task: Task, limits: LimitSettings, budget: BudgetSettings) -> dict[str, Any]:
    is_review = isinstance(task.oracle, ReviewOracle)
    return {
        "cpus": 1 if is_review else math.ceil(limits.cpus),
        "memory_mb": REVIEW_MEMORY_MB if is_review else limits.memory_mb,
        "storage_mb": limits.disk_mb,
        "build_timeout_sec": budget.seconds,
        "workdir": REVIEW_FOLDER if is_review else task.require_plan().workdir,
    }


def build_metadata(item: ExportItem) -> dict[str, Any]:
    """Return the task's metadata, for readers and for filters."""
    task = item.task
    return {
        "instance_id": task.name,
        "task_id": task.id,
        "repo": task.repo,
        "base_commit": task.base_commit,
        "created_at": task.created_at,
        "version": task.version,
        "language_version": task.language_version,
        "category": task.kind.value,
        "image_digest": task.image_digest,
        "gold_patch_sha256": task.gold_patch,
        "test_patch_sha256": task.test_patch,
        "setup_patch_sha256": task.setup_patch or "",
        "eval_script_sha256": task.eval_script or "",
        "FAIL_TO_PASS": task_files.list_fail_to_pass(task),
        "PASS_TO_PASS": list(task.PASS_TO_PASS),
        **build_facts(item),
    }


def _extract_first_line(text: str) -> str:
    return next((line.strip(" #\t") for line in text.splitlines() if line.strip(" #\t")), "")[:200]


def _make_valid(value: Any) -> Any:
    """Return the value as TOML can hold it.

    Without keys that have no value, and without the characters that UTF-8 cannot encode.
    """
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_make_valid(key): _make_valid(inner) for key, inner in value.items() if inner is not None}
    return [_make_valid(inner) for inner in value] if isinstance(value, list) else value


def explain_exclusion(task: Task) -> str | None:
    """Return why Harbor cannot carry a task; None if it can."""
    if isinstance(task.oracle, InstructionOracle):
        return explain_environment(task) or explain_uncarried(task.oracle)
    return explain_ungradable(task)


FORMATS = {
    "harbor": ExportFormat(write=write_harbor, explain_exclusion=explain_exclusion, write_parquet=write_harbor_parquet)
}
