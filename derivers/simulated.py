"""A task of a change whose tests could not be run: a model plays the runs, and the task says so for ever.

It is marked `environment=simulated`, gets no certificate, and comes among other tasks only where it is asked for.
"""

from __future__ import annotations

from enum import StrEnum

from backends.git import GitError
from backends.services import Services
from backends.simulation.play import UnplayableError, play, scene
from backends.testing.lists import make_lists
from backends.testing.outcomes import Report
from derivers.base import Refusal, task_of
from languages.paths import is_test_file
from taskdb.lineage import Lineage
from taskdb.records import Kind, Task

SAMPLES = 2
"""Plays of each tree; a test of which they say different things is left out."""


class Reason(StrEnum):
    """Why a change gives no simulated task."""

    NO_MODEL = "no-model"
    NO_TEST_FILE = "no-test-file"
    NOT_PLAYED = "not-played"
    """Too long for the model, or it gave no answer that could be used."""
    NO_FAIL_TO_PASS = "no-fail-to-pass"  # noqa: S105 - PASS is no password


def simulated(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The simulated task of a change; four questions to the model.

    Raises:
        Transient: the endpoint failed.
    """
    candidate = lineage.candidate
    if services.model is None:
        return Refusal(Reason.NO_MODEL, "no model takes part")
    tests = [path for path in candidate.test_files if is_test_file(path, candidate.language)]
    if not tests:
        return Refusal(Reason.NO_TEST_FILE, "no file with tests is changed")
    try:
        tested, solved = (_plays(lineage, services, tests, solved=solved) for solved in (False, True))
    except (UnplayableError, GitError) as error:
        return Refusal(Reason.NOT_PLAYED, str(error))
    lists = make_lists(tested, solved)
    if not lists.fail_to_pass:
        return Refusal(Reason.NO_FAIL_TO_PASS, f"none of {len(solved[0].outcomes)} tests is said to be fixed by it")
    task = task_of(
        lineage, Kind.SIMULATED, environment="simulated", FAIL_TO_PASS=lists.fail_to_pass,
        PASS_TO_PASS=lists.pass_to_pass,
    )  # fmt: skip
    return [task]


def _plays(lineage: Lineage, services: Services, tests: list[str], *, solved: bool) -> list[Report]:
    """Runs of B+T, or of B+T+G."""
    candidate, get = lineage.candidate, services.artifacts.get
    setting = scene(
        services.clones.open(candidate.source, candidate.repo), candidate.base_commit, language=candidate.language,
        test_patch=get(candidate.test_patch), test_files=tests, files=candidate.gold_files,
        patch=get(candidate.gold_patch) if solved else b"",
    )  # fmt: skip
    return [play(setting, services, sample=sample) for sample in range(1, SAMPLES + 1)]
