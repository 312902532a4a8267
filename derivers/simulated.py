"""Tasks of changes that have no environment: a model predicts the test outcomes, and the task is marked accordingly.

Such a task has `environment=simulated`, is never certified, and is listed only on request.
"""

from __future__ import annotations

from enum import StrEnum

from backends.git import GitError
from backends.services import Services
from derivers.base import KindRejection, build_task
from evaluation.lists import make_lists
from evaluation.reports.outcomes import EvaluationReport
from evaluation.simulation.simulated_run import SimulationError, build_simulation_input, simulate_run
from languages.paths import is_test_file
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage

SAMPLES = 2
"""Simulated runs of each tree; tests whose outcomes differ between them are excluded."""


class Reason(StrEnum):
    """Why a change gives no simulated task."""

    NO_MODEL = "no-model"
    NO_TEST_FILE = "no-test-file"
    NOT_SIMULATED = "not-simulated"
    """The files are too long for the model, or none of its answers is usable."""
    NO_FAIL_TO_PASS = "no-fail-to-pass"  # noqa: S105 - PASS is no password


def derive_simulated(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the simulated task of a change, from four queries to the model.

    Raises:
        Transient: the endpoint failed.
    """
    candidate = lineage.candidate
    if services.model is None:
        return KindRejection(Reason.NO_MODEL, "no model is configured")
    tests = [path for path in candidate.test_files if is_test_file(path, candidate.language)]
    if not tests:
        return KindRejection(Reason.NO_TEST_FILE, "the change touches no test file")
    try:
        test_only, gold = (_simulate_runs(lineage, services, tests, with_gold=gold) for gold in (False, True))
    except (SimulationError, GitError) as error:
        return KindRejection(Reason.NOT_SIMULATED, str(error))
    lists = make_lists(test_only, gold)
    if not lists.fail_to_pass:
        detail = f"the change fixes none of {len(gold[0].outcomes)} simulated tests"
        return KindRejection(Reason.NO_FAIL_TO_PASS, detail)
    # No image, even where one was built in which the tests did not run.
    task = build_task(
        Lineage(candidate=candidate),
        Kind.SIMULATED,
        environment="simulated",
        FAIL_TO_PASS=lists.fail_to_pass,
        PASS_TO_PASS=lists.pass_to_pass,
    )
    return [task]


def _simulate_runs(
    lineage: Lineage, services: Services, tests: list[str], *, with_gold: bool
) -> list[EvaluationReport]:
    """Return simulated test-only runs, or gold runs."""
    candidate, get = lineage.candidate, services.artifacts.get
    simulation = build_simulation_input(
        services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit),
        candidate.base_commit,
        language=candidate.language,
        test_patch=get(candidate.test_patch),
        test_files=tests,
        files=candidate.gold_files,
        patch=get(candidate.gold_patch) if with_gold else b"",
    )
    return [simulate_run(simulation, services, sample=sample) for sample in range(1, SAMPLES + 1)]
