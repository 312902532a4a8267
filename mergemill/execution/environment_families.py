"""Environment families: tasks on which the same exploits are made against the same defences.

An exploit attacks the restored test files, the runner, the report and its parser. Tasks share all of these where they
share repository, plan, base image and harness version. ADR 0031 has the reasons.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from backends.sandbox.images import BASE_IMAGE_LABEL
from builders.layers import LAYER_LABEL
from core.errors import InputError
from evaluation.script.harness_version import compute_harness_version
from languages.registry import frameworks_by_name, list_own_version_variables
from mergemill.execution.grader_version import compute_grader_version
from verifiers.certify import is_open_to_guesses
from verifiers.probes import PROBES
from verifiers.rewards import REWARDS, TESTS, select_reward

if TYPE_CHECKING:
    from backends.sandbox.images import ImageInfo
    from backends.services import Services
    from taskdb.records import BuildPlan, Environment, ExploitReference, Task


def compute_family(task: Task, services: Services, environment: Environment | None = None) -> str:
    """Return the key of a task's environment family; empty for tasks for which no exploits are made.

    A certificate also depends on which exploits there are and which of them may pass, so both are in the key.

    Args:
        task: the task.
        services: artifacts with its script, and the engine with its image.
        environment: record of its environment. Without it, or where its log names no version of the runner, tasks whose
            packages have different dates share no family.

    Raises:
        InputError: the script is missing.
        Transient: the engine failed.
    """
    if not task.image or select_reward(task) is not REWARDS[TESTS]:
        return ""
    image = services.images.inspect(task.image)
    contents = {
        "repo": task.repo,
        **_describe_plan(task.require_plan(), _read_runner_versions(environment, services) if environment else []),
        "base": _identify_base(image) if image else task.image_digest,
        "harness": compute_harness_version(services.artifacts.get_text(task.require_script())),
        "grader": compute_grader_version(),
        "exploits": [(probe.name, probe.group) for probe in PROBES],
        "strong_controls": not is_open_to_guesses(task, services),
    }
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def compute_plan_family(repo: str, environment: Environment, services: Services) -> str:
    """Return the key of the environments that share repository, plan and test runner with an environment.

    Bases and harnesses are not compared, as those of a task not yet derived are unknown.
    """
    described = {"repo": repo, **_describe_plan(environment.plan, _read_runner_versions(environment, services))}
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _describe_plan(plan: BuildPlan, versions: list[str]) -> dict[str, Any]:
    """Return what of a plan can change how an exploit does, and the versions of the test runner and its plug-ins.

    The version that the project pretends to have changes no defence. The date of the packages decides on those of the
    runner, and is left out where they are known.
    """
    # Evidence names the lines of manifests from which a plan was made, and builds nothing.
    described = plan.model_dump(mode="json", exclude={"evidence"})
    own_version = list_own_version_variables()
    described["env"] = [[name, value] for name, value in plan.env if name not in own_version]
    if versions:
        del described["exclude_newer"]
        for steps in ("dependency_steps", "source_steps"):
            described[steps] = [step.replace(plan.exclude_newer, "DATE") for step in described[steps]]
    return {"plan": described, "runner": versions}


def _read_runner_versions(environment: Environment, services: Services) -> list[str]:
    """Return the lines that name the versions of the test runner and its plug-ins; empty where they are unknown."""
    first, *others = frameworks_by_name()[environment.plan.test.framework].version_lines or ("(?!)",)
    try:
        log = services.artifacts.get_text(environment.log) if environment.log else ""
    except InputError:  # a bundle has no logs
        return []
    runner = re.search(first, log, re.MULTILINE)
    plugins = [re.search(line, log, re.MULTILINE) for line in others]
    return [runner.group(), *(line.group() for line in plugins if line)] if runner else []


def _identify_base(image: ImageInfo) -> str:
    """Return what identifies the base of an image: its name or, for images built before the label, its layers."""
    if BASE_IMAGE_LABEL in image.labels:
        return image.labels[BASE_IMAGE_LABEL]
    # A source layer lies on a dependency layer, and this on the base.
    base_layers = image.layers[:-2] if image.labels.get(LAYER_LABEL) == "source" else ()
    # Other images share a family with nothing but the image itself.
    return " ".join(base_layers) or image.digest


def is_drawn(task: Task, share: float) -> bool:
    """Return whether a task is among the share (0..1) that gets exploits of its own, by the hash of its id."""
    drawn = int(hashlib.sha256(f"exploits {task.id}".encode()).hexdigest()[:8], 16)
    return drawn < share * 16**8


def select_reference(
    task: Task, family: str, exploited: Mapping[str, ExploitReference], share: float | None
) -> ExploitReference | None:
    """Return the task on whose exploits a certificate relies; None where the task's own are graded, or none.

    Args:
        task: the task to certify.
        family: key of the task's environment family.
        exploited: family -> a certified task whose exploits earned what they must.
        share: share of the tasks of a family that get exploits in addition to its first; None where it is no choice.
    """
    reference = exploited.get(family) if family else None
    if share is None or reference is None or is_drawn(task, share) or reference.task == task.id:
        return None
    return reference
