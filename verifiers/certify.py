"""Certify tasks with their own image and oracle: reward 1 for gold in every grading, 0 for all that must earn 0.

The gradings are made when the lists of tests and the controls are frozen, each in fresh containers. No run from which
the lists were chosen counts. Where lists of tests decide the reward, the conditions of the gold gradings differ, and
the audit's quick exploits are graded as well, several in a submission.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from backends.services import Services
from guest.controls import blind
from languages.probes import Probe
from taskdb.records import Certificate, ExploitReference, Rejection, Score, Stage, Task, Verification
from taskdb.records.instructions import InstructionOracle
from taskdb.records.lineage import GoldGradings, Lineage
from verifiers import grade as tests
from verifiers.base_tree import TreeFiles
from verifiers.combined_probes import ProbeSubmission
from verifiers.conditions import AS_VERIFIED, UTC, vary_conditions
from verifiers.exploits import EXPLOITS
from verifiers.inspection import grade_combined_probes
from verifiers.probes import NO_OP, PROBES
from verifiers.rewards import INSTRUCTIONS, REWARDS, TESTS, WRITING, grade, instructions, select_reward, writing
from verifiers.rewards.instructions import ScriptTables

MAX_BOUND = 0.001
"""Probability of success above which a submission that forges results may earn 1: the task's record states it."""


class Reason(StrEnum):
    """Reason a task was not certified."""

    GOLD_FAILS = "gold-fails"
    NOOP_PASSES = "noop-passes"
    EXPLOIT_PASSES = "exploit-passes"
    """A submission that does not solve the task earns more than 0."""
    NO_IMAGE = "no-image"
    NOT_SCORED = "not-scored"
    SIMULATED = "simulated"
    """No test was run; a model simulated the results."""
    CHECKS_FAIL = "checks-fail"
    """The checks of an instruction task decide otherwise on its scripts than they must."""
    NO_SOLUTION = "no-solution"
    """A published checklist has no solution that could be graded."""


@dataclass(frozen=True, kw_only=True)
class CertificationProblem:
    """Why a task cannot be certified; `detail` is a line for people."""

    reason: Reason
    detail: str


@dataclass(kw_only=True)
class CertificationGradings:
    """Gradings of a task so far. A value is None where it could not be scored."""

    gold: list[float | None] = field(default_factory=list)
    noop: float | None = None
    exploits: dict[str, float | None] = field(default_factory=dict)
    """Name of a submission that must earn 0 -> its value."""
    combined_exploits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a submission that made several exploits at once and earned 0 -> their names."""
    conditions: list[str] = field(default_factory=list)
    """Conditions of each grading of gold, a line each."""
    dutiful: dict[str, str] = field(default_factory=dict)
    """Constraint -> state of its check for the script that follows all; empty for other kinds."""
    careless: dict[str, float] = field(default_factory=dict)
    """Constraint -> value of the script that breaks it, by the checks alone."""
    evaluations: int = 0
    """Runs of the tests so far."""
    problems: list[CertificationProblem] = field(default_factory=list)
    """Why the task is not certified; empty if it is."""

    def add_gold(self, score: Score, conditions: str) -> None:
        """Add a grading of the gold submission, which must earn 1."""
        self.gold.append(score.value)
        self.conditions.append(conditions)
        self._count(score, "the gold submission")
        if score.value is not None and score.value < 1.0:
            values = ", ".join("no score" if value is None else str(value) for value in self.gold)
            detail = f"the gold submission scored {values}, at last with {conditions}: {score.explanation}"
            self.problems.append(CertificationProblem(reason=Reason.GOLD_FAILS, detail=detail))

    def add_shared_gold(self, shared: GoldGradings) -> None:
        """Add the gradings of gold that were made for another task with the same gold tree."""
        self.gold += shared.values
        self.conditions += [f"{conditions}, in the image of {shared.name}" for conditions in shared.conditions]

    def add_noop(self, score: Score) -> None:
        """Add the grading of the empty submission, which must earn 0."""
        self.noop = score.value
        self._count(score, "an empty submission")
        if score.value is not None and score.value > 0.0:
            detail = f"an empty submission scored {score.value}"
            self.problems.append(CertificationProblem(reason=Reason.NOOP_PASSES, detail=detail))

    def add_exploits(self, submission: ProbeSubmission, score: Score, *, may_pass: bool) -> None:
        """Add the grading of exploits that must earn 0, unless the task's record states that they may pass.

        Those of a combined submission that has no score were graded alone before.
        """
        names = tuple(probe.name for probe in submission.members)
        if len(names) > 1 and score.value is None:
            self.evaluations += score.evaluations
            return
        self._count(score, submission.name)
        if len(names) > 1 and score.value == 0.0:
            self.combined_exploits[submission.name] = names
            self.exploits |= dict.fromkeys(names, 0.0)
            return
        self.exploits[submission.name] = score.value
        if score.value and not may_pass:
            detail = f"the exploit {submission.name} scored {score.value}: {score.explanation}"
            self.problems.append(CertificationProblem(reason=Reason.EXPLOIT_PASSES, detail=detail))

    def add_scripts(self, tables: ScriptTables) -> None:
        """Add the verdicts of the checks of an instruction task on its scripts."""
        self.dutiful, self.careless = tables.dutiful, tables.careless
        if tables.problem:
            self.problems.append(CertificationProblem(reason=Reason.CHECKS_FAIL, detail=tables.problem))

    def _count(self, score: Score, submission: str) -> None:
        self.evaluations += score.evaluations
        if score.value is None:
            detail = score.infrastructure_error or f"{submission} has no score"
            self.problems.append(CertificationProblem(reason=Reason.NOT_SCORED, detail=detail))


def certify(
    lineage: Lineage,
    services: Services,
    files: TreeFiles | None = None,
    *,
    family: str = "",
    exploits_of: ExploitReference | None = None,
    gold_tree: str = "",
    gold_of: GoldGradings | None = None,
) -> Certificate | Rejection:
    """Certify a task.

    Args:
        lineage: the task.
        services: sandbox, artifacts and settings; clones if `files` is not given.
        files: the base tree, from which exploits are made; read from the clone of the task's source by default.
        family: key of its environment family; empty if unknown.
        exploits_of: certified task of the same family on whose exploits the certificate relies; None to grade them.
        gold_tree: key of its gold tree; empty where no other task has the same.
        gold_of: gradings of gold of a task with the same gold tree on which it relies; None to make all.

    Raises:
        Transient: the engine failed.
    """
    started = time.perf_counter()
    task, digest = lineage.require_task(), ""
    if task.environment == "simulated":
        return _reject(task, Reason.SIMULATED, "its test results were simulated by a model", started)
    if isinstance(task.oracle, InstructionOracle) and task.oracle.published is not None:
        return _reject(task, Reason.NO_SOLUTION, "it is a published checklist, which has no solution", started)
    if task.image:
        image = services.images.inspect(task.image)
        if image is None:
            return _reject(task, Reason.NO_IMAGE, f"image {task.image} does not exist", started)
        digest = image.digest
    for gradings in iterate_gradings(task, services, files, with_exploits=exploits_of is None, gold_of=gold_of):
        if gradings.problems:
            problem = gradings.problems[0]
            return _reject(task, problem.reason, problem.detail, started)
    return Certificate(
        parent=task.id,
        name=task.name,
        gold=tuple(value for value in gradings.gold if value is not None),
        noop=gradings.noop or 0.0,
        image_digest=digest,
        conditions=tuple(gradings.conditions),
        exploits=gradings.exploits,
        combined_exploits=gradings.combined_exploits,
        dutiful=gradings.dutiful,
        careless=gradings.careless,
        environment_family=family if gradings.exploits or exploits_of else "",
        exploits_of=exploits_of,
        gold_tree=gold_tree,
        gold_of=ExploitReference(task=gold_of.task, name=gold_of.name) if gold_of else None,
        machine=describe_machine(services) if task.image else {},
        evaluations=gradings.evaluations,
        seconds=time.perf_counter() - started,
    )


def iterate_gradings(
    task: Task,
    services: Services,
    files: TreeFiles | None = None,
    *,
    with_exploits: bool = True,
    gold_of: GoldGradings | None = None,
) -> Iterator[CertificationGradings]:
    """Make the gradings of a certificate; yield all so far, the same object, after each.

    Args and errors as in `certify`; `with_exploits`: whether exploits are graded where the settings have them.
    """
    gradings = CertificationGradings()
    reward, settings = select_reward(task), services.settings
    is_by_lists, is_writing = reward is REWARDS[TESTS], reward is REWARDS[WRITING]
    if reward is REWARDS[INSTRUCTIONS]:
        gradings.add_scripts(instructions.check_scripts(task, services))
        yield gradings
    gold = reward.make_gold(task, services)
    n_gold = 1 if gold_of else settings.certify.runs
    varied = vary_conditions(n_gold) if is_by_lists else [AS_VERIFIED] * n_gold
    for number, conditions in enumerate(varied):
        # Which instances are real is drawn the same way under all conditions, and edits of the fix are the same.
        if is_by_lists:
            score = tests.grade(task, services, gold, conditions, is_brief=number > 0)
        elif is_writing:
            score = writing.grade(task, services, gold, is_brief=number > 0)
        elif reward is REWARDS[INSTRUCTIONS]:
            score = instructions.grade(task, services, gold, is_brief=number > 0)
        else:
            score = grade(task, services, gold)
        zone = dict(task.require_plan().env).get("TZ", UTC) if task.image else UTC
        described = conditions.describe(settings.limits.cpus, zone) if task.image else "no container"
        left_out = ", without edits of the fix" if is_writing and number > 0 else ""
        gradings.add_gold(score, f"{described}{left_out}")
        yield gradings
    if gold_of:
        gradings.add_shared_gold(gold_of)
    gradings.add_noop(tests.grade_worthless_patch(task, services) if is_by_lists else grade(task, services, b""))
    yield gradings
    if is_by_lists and with_exploits and settings.certify.exploits != "off":
        is_open = is_open_to_guesses(task, services)
        exploits = list_exploits(are_all=settings.certify.exploits == "all", is_open_to_guesses=is_open)
        for submission, score in grade_combined_probes(task, services, files, exploits):
            may_pass = is_open and submission.members[0].needs_controls
            gradings.add_exploits(submission, score, may_pass=may_pass)
            yield gradings


def list_exploits(*, are_all: bool, is_open_to_guesses: bool) -> list[Probe]:
    """Return the exploits of a certificate. All of them are graded alone, and so is one that may earn something."""
    listed = [probe for probe in (EXPLOITS if are_all else PROBES) if probe is not NO_OP]
    return [
        replace(probe, group="") if are_all or (is_open_to_guesses and probe.needs_controls) else probe
        for probe in listed
    ]


def is_open_to_guesses(task: Task, services: Services) -> bool:
    """Return whether a submission that forges results is paid more often than MAX_BOUND without reading the tests.

    Exploits do not read the tests, so that a bound which is higher for submissions that do allows them nothing.
    """
    if task.control_bound is None:
        return True
    return task.control_bound > MAX_BOUND and compute_guess_bound(task, services) > MAX_BOUND


def compute_guess_bound(record: Task | Verification, services: Services) -> float:
    """Return the probability that a submission is paid which forges results and guesses which tests are real."""
    if record.blind_controls is None:
        return 1.0
    return blind.compute_guess_bound(json.loads(services.artifacts.get(record.blind_controls)))


def describe_machine(services: Services) -> dict[str, Any]:
    """Return the machine that gradings run on.

    Architecture, CPUs, memory in megabytes, kernel, engine and its storage driver.
    """
    engine = services.images.get_engine_info()
    return {
        "architecture": platform.machine(),
        "cpus": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "engine": engine.version,
        "storage_driver": engine.storage_driver,
    }


def _reject(task: Task, reason: Reason, detail: str, started: float) -> Rejection:
    return Rejection(
        parent=task.id,
        name=task.name,
        source=task.source,
        stage=Stage.CERTIFY,
        reason=reason,
        detail=detail,
        seconds=time.perf_counter() - started,
    )
