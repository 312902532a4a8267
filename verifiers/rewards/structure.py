"""Reward of refactorings and migrations: the tests pass, and the tree has the structure that the oracle requires."""

from __future__ import annotations

from collections.abc import Sequence

from backends.index import ScratchIndex
from backends.services import Services
from guest.harness.structure.structure_check import MAX_FILE_BYTES, find_violations
from taskdb.records import Score, Task
from taskdb.records.oracles import MigrationOracle, RefactoringOracle
from verifiers.grade import grade as grade_tests
from verifiers.index_tree import apply_submission


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """Return the score of a patch. Tests run only where it has the required structure.

    `parts`: `structure`, 1 or 0, and `violations`, their number.

    Raises:
        Transient: engine, disk or network failed.
    """
    violations = find_structure_violations(task, services, submission)
    if violations:
        return Score(
            task=task.name,
            value=0.0,
            resolved=False,
            f2p_rate=0.0,
            p2p_rate=0.0,
            parts={"structure": 0.0, "violations": float(len(violations))},
            explanation=violations[0],
        )
    scored = grade_tests(task, services, submission)
    if scored.value is None:
        return scored
    return scored.model_copy(update={"parts": {"structure": 1.0, "violations": 0.0}})


def find_structure_violations(task: Task, services: Services, submission: bytes) -> Sequence[str]:
    """Return a line for each rule that the base tree with a patch violates, or that the patch does not apply."""
    oracle = task.oracle
    if not isinstance(oracle, RefactoringOracle | MigrationOracle):
        raise TypeError(f"{task.name} has no required structure")
    repository = services.clones.open_tree(task.source, task.repo, task.base_commit)
    with ScratchIndex(repository, task.base_commit) as index:
        if not apply_submission(submission, index):
            return ["the patch does not apply"]
        tree = {
            entry.path: entry
            for entry in index.repository.ls_tree(index.write_tree())
            if entry.mode.startswith("100") and entry.size <= MAX_FILE_BYTES
        }

        def read(path: str) -> str | None:
            if path not in tree:
                return None
            (content,) = index.repository.read_blobs([tree[path].oid])
            return content.decode(errors="replace")

        return find_violations(oracle.build_rules(), read, sorted(tree))
