"""Test-writing tasks: fix and tests are withheld; a submission is tests that detect the fault.

The oracle is built from the change's own tests (`derivers.test_writing.oracle_builder`), so their score is 1.
"""

from __future__ import annotations

import shlex

from backends.services import Services
from derivers.base import KindRejection, build_task, check_statement
from derivers.bugfix import check_bugfix
from derivers.statements import render_template
from derivers.test_writing.oracle_builder import Reason, WritingOracleBuilder
from evaluation.controls import NO_CONTROLS
from evaluation.submitted_tests.runner import NotScoredError
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage

__all__ = ["Reason", "derive_test_writing"]


def derive_test_writing(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the test-writing task of a verified fix.

    Args:
        lineage: lineage with a verification, and the verdict where it exists.
        services: sandbox, clones, artifacts and settings.

    Raises:
        Transient: engine, disk or network failed.
    """
    if detail := check_bugfix(lineage.require_verification()):
        return KindRejection(Reason.NO_BEHAVIOURAL_FAILURE, detail)
    if rejection := check_statement(lineage):
        return rejection
    try:
        oracle = WritingOracleBuilder(lineage=lineage, services=services).build()
    except NotScoredError as error:
        return KindRejection(Reason.TESTS_DO_NOT_HOLD, str(error))
    if isinstance(oracle, KindRejection):
        return oracle
    task = build_task(lineage, Kind.TEST_WRITING, oracle=oracle, **NO_CONTROLS)
    return [task.model_copy(update={"problem_statement": write_statement(lineage, task.problem_statement)})]


def write_statement(lineage: Lineage, problem: str) -> str:
    """Return the instructions, followed by the change's own statement, which describes the fault but not the fix."""
    test = lineage.require_environment().plan.test
    command = shlex.join([*test.argv, *test.paths])
    return render_template(
        "test_writing/statement.md.j2",
        problem=problem.strip(),
        framework=test.framework,
        command=command,
        folder=test.folder,
    ).removesuffix("\n")
