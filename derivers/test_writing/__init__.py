"""Test-writing: the fix is withheld and so are its tests; what is asked for are tests that notice the fault.

The change's own tests are the measure (`derivers.test_writing.measure`), so they are worth 1 by construction.
"""

from __future__ import annotations

import shlex

from backends.services import Services
from backends.testing.written import NotScoredError
from derivers.base import Refusal, set_aside, task_of
from derivers.bugfix import is_bugfix
from derivers.statements import filled
from derivers.test_writing.measure import Measure, Reason
from taskdb.lineage import Lineage
from taskdb.records import Kind, Task

__all__ = ["Reason", "test_writing"]


def test_writing(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The task of writing tests for a verified fix.

    Args:
        lineage: up to the verification, and the verdict where there is one.
        services: sandbox, clones, artifacts and settings.

    Raises:
        Transient: engine, disk or network failed.
    """
    if why_not := is_bugfix(lineage.the_verification):
        return Refusal(Reason.NO_BEHAVIOURAL_FAILURE, why_not)
    if refusal := set_aside(lineage):
        return refusal
    try:
        oracle = Measure(lineage=lineage, services=services).oracle()
    except NotScoredError as error:
        return Refusal(Reason.TESTS_DO_NOT_HOLD, str(error))
    if isinstance(oracle, Refusal):
        return oracle
    plain = task_of(lineage, Kind.TEST_WRITING)
    changes = {"problem_statement": statement(lineage, plain.problem_statement), "twin_patch": None, "twins": ()}
    return [plain.model_copy(update={"oracle": oracle, **changes})]


def statement(lineage: Lineage, problem: str) -> str:
    """What is asked for, with what the change's own statement says of the fault; of the fix it says nothing."""
    test = lineage.the_environment.plan.test
    command = shlex.join([*test.argv, *test.paths])
    return filled(
        "test_writing/statement.md.j2", problem=problem.strip(), framework=test.framework, command=command,
        folder=test.folder,
    ).removesuffix("\n")  # fmt: skip
