"""Keys of gold trees: tasks in which the same tests run on the same tree, with the same packages, once gold is applied.

With its gold patch and its tests a task with an injected bug has the base tree of its environment, and so have the
others of this environment. Whether these tests pass with another time zone, hash seed or number of CPUs is a fact about
that tree, whichever of the tasks shows it. ADR 0038 has the reasons.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from backends.git import GitError
from backends.index import ScratchIndex
from builders.layers import LAYER_LABEL
from mergemill.execution.environment_families import is_drawn
from taskdb.records.instructions import InstructionOracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backends.services import Services
    from taskdb.records import Task
    from taskdb.records.lineage import GoldGradings, RepositoryHistory


def compute_gold_key(task: Task, services: Services, family: str) -> str:
    """Return the key of the tasks with the gold tree of a task; empty where it shares nothing.

    Tree, listed tests, packages and environment family are in the key, and the conditions under which gold is graded.

    Args:
        task: the task.
        services: clones with its base tree, artifacts with its patches, and the engine with its image.
        family: key of its environment family; empty if unknown.

    Raises:
        InputError: the base tree or a patch is missing.
        Transient: the engine failed.
    """
    if isinstance(task.oracle, InstructionOracle):
        return ""  # its gold submission has further lines
    image = services.images.inspect(task.image) if family else None
    if image is None or image.labels.get(LAYER_LABEL) != "source":
        return ""
    try:
        tree = _write_gold_tree(task, services)
    except GitError:
        return ""
    contents = {
        "family": family,
        # The last layer is the agent's tree, those below it are base and packages.
        "layers": image.layers[:-1],
        "tree": tree,
        "tests": sorted({*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS}),
        "gradings": services.settings.certify.runs,
        "cpus": services.settings.limits.cpus,
    }
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _write_gold_tree(task: Task, services: Services) -> str:
    """Return the id of the tree of a task with its gold patch and its tests.

    Raises:
        GitError: a patch does not apply.
        InputError: the base tree or a patch is missing.
    """
    repository = services.clones.open_tree(task.source, task.repo, task.base_commit)
    with ScratchIndex(repository, task.base_commit) as index:
        for patch in (task.setup_patch, task.gold_patch, task.test_patch):
            index.apply(services.artifacts.get(patch) if patch else b"")
        return index.write_tree()


def select_gradings(task: Task, key: str, history: RepositoryHistory, share: float | None) -> GoldGradings | None:
    """Return the gradings of gold on which a certificate relies; None where the task has all of its own.

    Args:
        task: the task to certify.
        key: key of its gold tree; empty if it shares nothing.
        history: facts about its repository. Where a test was ever seen to be flaky, every task has its own gradings.
        share: share of the tasks that have their own in addition to the first; None where all have.
    """
    gradings: Mapping[str, GoldGradings] = history.gold_gradings
    reference = gradings.get(key) if key and history.is_steady else None
    if share is None or reference is None or is_drawn(task, share) or reference.task == task.id:
        return None
    return reference
