"""Verifier of a task: files that grade a submission in a container of the task's image.

Unpacked at VERIFIER_FOLDER, with the submission at the path that `find_submission_path` returns, `bash /tests/test.sh`
writes REWARD_PATH as root. Without a reward file the evaluation failed, which is different from a reward of 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from evaluation.reports.coverage import load_collectors
from evaluation.script.render import extract_config_patch, render_plan_script
from evaluation.submitted_tests.patch import load_path_rules
from exporters import task_files
from exporters.verifier_archive import pack_verifier
from guest.harness import HARNESS_FOLDER
from guest.scoring.submitted_tests import REPEATS
from guest.scoring.timing import RUNS_PER_TREE
from guest.verifier.writing import CANARY_FOLDER
from taskdb.records.instructions import InstructionOracle
from taskdb.records.oracles import (
    CodeEdit,
    Defect,
    MigrationOracle,
    PerformanceOracle,
    RefactoringOracle,
    ReviewOracle,
    TestWritingOracle,
)

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem
    from taskdb.records import Task

NOT_VERIFIED = "tasks as they were published are exported as swebench alone until `mergemill run` verifies them"
VERIFIER_FOLDER = "/tests"
PATCH_PATH = "/logs/artifacts/model.patch"
FINDINGS_PATH = "/logs/artifacts/findings.json"
REWARD_PATH = "/logs/verifier/reward.json"


def explain_ungradable(task: Task) -> str | None:
    """Return why submissions to the task cannot be graded outside of the database; None if they can."""
    if isinstance(task.oracle, InstructionOracle):
        return "instructions are graded by the requests of a rollout, which a bundle has not"
    return explain_environment(task)


def explain_environment(task: Task) -> str | None:
    """Return why submissions to the task have no container to be graded in; None if they have one."""
    reasons = {"simulated": "simulated tasks have no image", "imported": NOT_VERIFIED}
    return reasons.get(task.environment)


def compute_verifier_seconds(task: Task) -> int:
    """Return the time limit of the verifier: that of all its runs of the tests, and two minutes for the rest."""
    runs = task.evaluations
    if isinstance(task.oracle, ReviewOracle):
        runs = 0
    elif isinstance(task.oracle, PerformanceOracle):
        runs = task.evaluations + 2 * (RUNS_PER_TREE + 1)
    elif isinstance(task.oracle, TestWritingOracle):
        runs = 2 * REPEATS + 3 + len(task.oracle.mutants) + len(task.oracle.variants)
    return runs * task_files.compute_timeout(task) + 120


def find_submission_path(task: Task) -> str:
    """Return where the verifier expects the submission: a patch, or the findings of a review."""
    return FINDINGS_PATH if isinstance(task.oracle, ReviewOracle) else PATCH_PATH


def build_verifier_files(item: ExportItem, services: Services) -> Mapping[str, bytes]:
    """Return path -> content of the verifier's files; paths that end in `.sh` are executable.

    All artifacts of the task are among them, so that a bundle can be read back.

    Raises:
        LookupError: the task has no environment (see `explain_ungradable`).
    """
    task, get = item.task, services.artifacts.get
    verifier_files = {task_files.RECORD_FILE: task_files.encode_record(task), "test.patch": get(task.test_patch)}
    if task.setup_patch:
        verifier_files["setup.patch"] = get(task.setup_patch)
    if isinstance(task.oracle, ReviewOracle):
        return verifier_files | _build_review_files(task, task.oracle, services)
    verifier_files |= task_files.build_grader_files(task, services)
    if task.oracle is None:
        return verifier_files | {"test.sh": task_files.read_container_file("test.sh")}
    if isinstance(task.oracle, RefactoringOracle | MigrationOracle):
        return verifier_files | _build_structure_files(task.oracle)
    verifier_files["gold.patch"] = get(task.gold_patch)
    if isinstance(task.oracle, TestWritingOracle):
        added, data = _build_writing_files(task, task.oracle, services)
    elif isinstance(task.oracle, PerformanceOracle):
        added, data = _build_performance_files(task.oracle, services)
    else:
        raise LookupError(explain_ungradable(task))  # noqa: TRY004 - the task is right, but not for a bundle
    for path in ("grade.py", *task_files.GUEST_MODULES):  # parts of the archive
        del verifier_files[path]
    deadline = compute_verifier_seconds(task) - 30
    data = json.loads(verifier_files["task.json"]) | data | _describe_paths(task) | {"deadline": deadline}
    return verifier_files | added | _build_archive_files(data)


def _build_structure_files(oracle: RefactoringOracle | MigrationOracle) -> dict[str, bytes]:
    """Return the check of the tree's structure, after which the tests decide."""
    return {
        "test.sh": task_files.read_container_file("structure.sh"),
        "tests.sh": task_files.read_container_file("test.sh"),
        "structure_check.py": (HARNESS_FOLDER / "structure" / "structure_check.py").read_bytes(),
        "rules.json": (json.dumps(oracle.build_rules(), indent=1) + "\n").encode(),
    }


def build_gold_submission(item: ExportItem, services: Services) -> bytes:
    """Return the submission that earns a reward of 1 when it lies at the submission's path.

    A patch, or the findings of a review.
    """
    task = item.task
    if isinstance(task.oracle, ReviewOracle):
        findings = [describe_defect(defect) for defect in task.oracle.defects]
        return (json.dumps({"findings": findings}) + "\n").encode()
    return services.artifacts.get(task.test_patch if isinstance(task.oracle, TestWritingOracle) else task.gold_patch)


def _build_archive_files(data: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        "test.sh": task_files.read_container_file("verifier.sh"),
        "verifier.pyz": pack_verifier(),
        "task.json": (json.dumps(data, indent=1) + "\n").encode(),
    }


def _describe_paths(task: Task) -> dict[str, str]:
    return {"submission": find_submission_path(task), "reward": REWARD_PATH}


def _build_writing_files(
    task: Task, oracle: TestWritingOracle, services: Services
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the edits, scripts and collectors of a test-writing task, and its data."""
    plan, get = task.require_plan(), services.artifacts.get
    edits = [*oracle.mutants, *oracle.variants]
    paths = {edit.patch: f"edits/{number}.patch" for number, edit in enumerate(edits, start=1)}
    names = sorted({PurePosixPath(test.partition("::")[0]).name for test in task_files.list_fail_to_pass(task)})
    config_patch = extract_config_patch(get(task.gold_patch))
    writing_files = {
        **{paths[edit.patch]: get(edit.patch) for edit in edits},
        **{f"coverage/{name}": content for name, content in load_collectors().items()},
    }
    for script, beside in (("plain.sh", []), ("canaries.sh", [f"{CANARY_FOLDER}/{name}" for name in names])):
        text = render_plan_script(plan, test_patch=b"", files=(), canaries_beside=beside, config_patch=config_patch)
        writing_files[script] = text.encode()

    def describe(edit: CodeEdit) -> dict[str, Any]:
        return {**edit.model_dump(mode="json", include={"operator", "path", "line"}), "patch": paths[edit.patch]}

    return writing_files, {
        "form": oracle.form,
        "rules": asdict(load_path_rules(task.language)),
        "has_canaries": b"write_canary" in get(task.require_script()),
        "mutants": [describe(edit) for edit in oracle.mutants],
        "variants": [describe(edit) for edit in oracle.variants],
        "uncovered_spans": [[span.path, span.first_line, span.last_line] for span in oracle.uncovered_spans],
    }


def _build_performance_files(oracle: PerformanceOracle, services: Services) -> tuple[dict[str, bytes], dict[str, Any]]:
    return {"workload.sh": services.artifacts.get(oracle.workload)}, {
        "form": oracle.form,
        "workload_tests": list(oracle.tests),
        "clock": oracle.clock,
        "ratio": oracle.ratio,
        "threshold": oracle.threshold,
    }


def _build_review_files(task: Task, oracle: ReviewOracle, services: Services) -> dict[str, bytes]:
    get = services.artifacts.get
    review_files = {"gold.patch": get(task.gold_patch), "files.json": get(oracle.files)}
    if oracle.diff is not None:
        review_files["review.diff"] = get(oracle.diff)
    defects = [describe_defect(defect) for defect in oracle.defects]
    data = {"name": task.name, "form": oracle.form, "defects": defects, **_describe_paths(task)}
    return review_files | _build_archive_files(data)


def describe_defect(defect: Defect) -> dict[str, Any]:
    """Return a defect in the form of a submitted finding."""
    return {
        "file": defect.path,
        "first_line": defect.first_line,
        "last_line": defect.last_line,
        "claim": defect.claim,
    }
