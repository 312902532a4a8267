"""Reward of an instruction task: the tests pass, and no check of an instruction fails in the recorded conversation."""

from __future__ import annotations

import os
from dataclasses import dataclass

from backends.git import GitError, GitRepository, list_patch_additions, list_patch_paths
from backends.index import ScratchIndex
from backends.overlay import open_task_tree
from backends.services import Services
from core.errors import InputError
from evaluation.instructions.actions import ActionLog, read_actions
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checklist import (
    ConstraintChecklist,
    VerdictState,
    decide_after_feedback,
    decide_constraints,
)
from evaluation.instructions.evidence import RolloutEvidence
from evaluation.instructions.submission import NO_LOG, BrokenInstruction, InstructionSubmission, read_submission
from languages.registry import LANGUAGES
from taskdb.records import Score, Task
from taskdb.records.instructions import JUDGED, InstructionOracle
from verifiers import grade as tests
from verifiers.index_tree import apply_submission
from verifiers.judge.instructions import make_instruction_judge


def grade(task: Task, services: Services, submission: bytes, *, is_brief: bool = False) -> Score:
    """Return the score of a patch with its conversation (`evaluation.instructions.submission`).

    The value is 1 if the tests pass and no active check fails, else 0. `parts`: `tests`; `csr` and `isr`, by source and
    turn, too; `graded`, the CSR where the tests pass; `partial`, half tests and half CSR; numbers of failed, inactive
    and not delivered constraints. `verdicts` has the state of each constraint. The value is None where the scaffold's
    tools are not known.

    Raises:
        InputError: the submission is no patch with a conversation, or its conversation is empty (`no-log`).
        Transient: engine, disk or network failed.
    """
    is_published = require_oracle(task).published is not None
    if not submission:
        return _make_untested(task, None) if is_published else tests.grade_worthless_patch(task, services)
    given = read_submission(submission)
    if not given.answers:
        raise InputError(f"{NO_LOG}: a submission to {task.name} needs the requests of its rollout")
    log = read_log(task, given)
    # Before the tests, which would be run in vain.
    if not log.is_readable:
        detail = f"tools-unknown: {log.n_unknown} of {log.n_calls} calls are of unknown tools"
        return Score(
            task=task.name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=detail
        )
    # Nobody knows the tests of a published checklist.
    if is_published:
        return _make_untested(task, check(task, services, given, log))
    scored = tests.grade(task, services, given.patch_bytes, is_brief=is_brief)
    if scored.value is None:
        return scored
    checklist = check(task, services, given, log)
    is_resolved = scored.resolved and not checklist.failing
    return scored.model_copy(
        update={
            "value": 1.0 if is_resolved else 0.0,
            "resolved": is_resolved,
            "parts": checklist.list_parts_with_tests(scored.value, is_resolved=scored.resolved),
            "verdicts": checklist.states,
            "explanation": "; ".join(filter(None, (describe_failures(checklist), scored.explanation))),
        }
    )


def _make_untested(task: Task, checklist: ConstraintChecklist | None) -> Score:
    """Return the score by the checks alone; None for an empty submission.

    A void item is not known to be met, so that the value is the lower bound of ISR. No tests are run, so both rates of
    tests are 1.
    """
    # Where void items counted as met, a checklist without a model would earn 1 for anything.
    parts = checklist.list_parts() if checklist else {}
    value = parts.get("isr_low", 0.0)
    return Score(
        task=task.name,
        value=value,
        resolved=value == 1.0,
        f2p_rate=1.0,
        p2p_rate=1.0,
        parts=parts,
        verdicts=checklist.states if checklist else {},
        explanation=describe_failures(checklist) if checklist else "nothing was submitted",
    )


def load_dutiful(task: Task, services: Services) -> bytes:
    """Return the submission that solves the task and follows every instruction.

    Raises:
        InputError: the task is a published checklist.
    """
    dutiful = require_oracle(task).dutiful
    if dutiful is None:
        raise InputError(f"{task.name} is a published checklist, which has no solution")
    return services.artifacts.get(dutiful)


@dataclass(frozen=True, kw_only=True)
class ScriptTables:
    """Verdicts of the checks on a task's scripts."""

    dutiful: dict[str, str]
    """Constraint -> state for the script that follows all."""
    careless: dict[str, float]
    """Constraint -> value of the script that breaks it, by the checks alone: 0 where exactly its check fails.

    Judged items are left out without a model.
    """

    @property
    def problem(self) -> str:
        """Why the checks are not to be relied on, in a line; empty where they are."""
        failing = [name for name, state in self.dutiful.items() if state == VerdictState.FAILED]
        blind = [name for name, value in self.careless.items() if value]
        if failing:
            return f"the dutiful script fails {', '.join(failing)}"
        return f"no check, or another as well, fails for the careless script of {', '.join(blind)}" if blind else ""


def check_scripts(task: Task, services: Services) -> ScriptTables:
    """Return the verdicts on a task's scripts. Only checks are made; no tests are run."""
    oracle = require_oracle(task)

    def decide(submission: bytes) -> ConstraintChecklist:
        given = read_submission(submission)
        return check(task, services, given, read_log(task, given))

    careless = {}
    judged = {constraint.name for constraint in oracle.constraints if constraint.check == JUDGED}
    for script in oracle.careless:
        if script.constraint in judged and services.model is None:
            continue  # only a model sees this breach
        failing = [verdict.constraint.name for verdict in decide(services.artifacts.get(script.submission)).failing]
        careless[script.constraint] = 0.0 if failing == [script.constraint] else 1.0
    return ScriptTables(dutiful=decide(load_dutiful(task, services)).states, careless=careless)


def read_log(task: Task, given: InstructionSubmission) -> ActionLog:
    """Return the actions of a submission's conversation."""
    oracle = require_oracle(task)
    workdir = oracle.published.workdir if oracle.published else task.require_plan().workdir
    return read_actions(given.list_answers(), workdir=workdir, own_tools=[tool.name for tool in oracle.tools])


def check(task: Task, services: Services, given: InstructionSubmission, log: ActionLog) -> ConstraintChecklist:
    """Return the verdicts on the constraints of a task. A patch that does not apply changes no file.

    The tree of a published checklist is not known, so that its checks have the paths of the patch and no contents.

    Raises:
        InputError: the base tree is neither in the store nor in a clone.
    """
    language, oracle = LANGUAGES.get(task.language), require_oracle(task)
    is_published = oracle.published is not None
    evidence = RolloutEvidence(
        actions=log.actions,
        changes=list_paths(given.patch_bytes) if is_published else list_changes(task, services, given.patch_bytes),
        suffixes=language.suffixes if language else (),
    )
    judge = make_instruction_judge(services, [task.problem_statement, *oracle.turns] if is_published else ())
    checklist = decide_constraints(
        oracle,
        evidence,
        not_delivered=given.not_delivered,
        judge=judge.decide if judge else None,
    )
    if given.feedback is None:
        return checklist
    return decide_after_feedback(checklist, evidence, given.feedback.turn, given.feedback.constraints)


def list_broken(task: Task, services: Services, submission: bytes) -> list[BrokenInstruction]:
    """Return the instructions that a submission broke; none for submissions to other tasks. No test is run.

    Raises:
        InputError, Transient: as in `grade`.
    """
    if not isinstance(task.oracle, InstructionOracle):
        return []
    given = read_submission(submission)
    return [
        BrokenInstruction(
            name=verdict.constraint.name,
            text=verdict.constraint.text,
            quote=verdict.result.quote if verdict.result else "",
        )
        for verdict in check(task, services, given, read_log(task, given)).failing
    ]


def list_changes(task: Task, services: Services, patch: bytes) -> list[ChangedFile]:
    """Return the changes of files that a patch makes to the tree that the agent starts from."""
    with open_task_tree(task, services) as (repository, commit):
        return list_tree_changes(repository, commit, patch)


def list_tree_changes(repository: GitRepository, commit: str, patch: bytes) -> list[ChangedFile]:
    """Return the changes of files that a patch makes to the tree of a commit; none where it does not apply."""
    with ScratchIndex(repository, commit) as index:
        if not patch.strip() or not apply_submission(patch, index):
            return []
        # Without renames: the old path of a moved file is a change, too.
        names = index.run_git("diff-index", "--cached", "--name-only", "--no-renames", "-z", commit).split(b"\0")[:-1]
        paths = sorted(os.fsdecode(name) for name in names)
        return [
            change
            for path in paths
            for change in [ChangedFile(path, repository.read_file(commit, path), index.read_file(path))]
            if change.before != change.after
        ]


def list_paths(patch: bytes) -> list[ChangedFile]:
    """Return the changed files of a patch whose tree is not known: whether each is new, and empty contents."""
    try:
        added = list_patch_additions(patch)
        return [ChangedFile(path, None if path in added else b"", b"") for path in list_patch_paths(patch)]
    except GitError:
        return []


def describe_failures(checklist: ConstraintChecklist) -> str:
    """Return a line about the checks that failed; empty for none."""
    failures = checklist.list_failures()
    return f"not followed: {'; '.join(failures)}" if failures else ""


def require_oracle(task: Task) -> InstructionOracle:
    """Return the oracle of an instruction task."""
    if not isinstance(task.oracle, InstructionOracle):
        raise TypeError(f"{task.name} has no instructions")
    return task.oracle
