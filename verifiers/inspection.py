"""Inspect a task: leaks in image and statement, scores of submissions that must earn 0, strength of its tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from backends.git import list_patch_paths, list_patch_renames
from backends.services import Services
from core.text import format_probability
from languages.probes import EXITS, Probe, ProbeTarget
from taskdb.records import Score, Task
from verifiers import statement
from verifiers.audit import audit_image, audit_review_tree
from verifiers.base_tree import BaseTreeIndex, TreeFiles, index_base_tree, read_base_files
from verifiers.combined_probes import ProbeSubmission, combine_probes, split_submission
from verifiers.grade import grade, grade_worthless_patch
from verifiers.probes import NO_OP, PROBES, create_target, make_patch, select_base_files
from verifiers.rewards import select_reward
from verifiers.strength import OracleStrength, draft_edits, measure_strength, read_gold_files, summarize_edits


@dataclass(frozen=True, kw_only=True)
class InspectionFinding:
    """A reason not to trust a task.

    Attributes:
        kind: image, tree, statement, gold or exploit.
        location: a path, a quote or the name of a submission.
        description: result line for people.
    """

    kind: str
    location: str
    description: str


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """Result of a graded submission; `value` is None if it could not be scored."""

    name: str
    value: float | None
    tampering: tuple[str, ...]
    explanation: str


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """Everything found in a task; a task without findings passed every check."""

    findings: tuple[InspectionFinding, ...]
    probes: tuple[ProbeResult, ...]
    strength: OracleStrength


class Counter(Protocol):
    """Counts the items that are finished."""

    def advance(self) -> object:
        """Count one more."""


OpenCounter = Callable[[str, int], AbstractContextManager[Counter]]
"""Opens the counter of a part of an inspection, from the noun of the items that are counted and the number of them."""


class _NoCounter:
    def advance(self) -> None:
        """Count nothing."""


def _open_no_counter(_noun: str, _number: int) -> AbstractContextManager[Counter]:
    return nullcontext(_NoCounter())


def inspect(
    task: Task,
    services: Services,
    files: TreeFiles | None = None,
    probes: Sequence[Probe] = PROBES,
    *,
    need_rates: bool = True,
    open_counter: OpenCounter = _open_no_counter,
) -> Inspection:
    """Inspect the task's image and statement, grade submissions that must earn 0, and measure the tests' strength.

    The strength is measured with at most `services.settings.verify.strength_runs` edits of the gold patch.

    Args:
        task: its image must exist in the engine.
        services: sandbox and artifacts; clones if `files` is not given.
        files: the base tree; read from the clone of the task's source by default.
        probes: submissions to grade, `services.settings.cluster.workers` of them at a time.
        need_rates: whether a grading goes on until every test was real, which detects more forgeries by name.
        open_counter: function that opens the progress of the probes, and then of the edits of the gold patch.

    Raises:
        InputError: image, clone or an artifact does not exist.
        Transient: the engine failed.
    """
    if task.oracle is not None or not task.image:
        return _inspect_by_oracle(task, services, files)
    gold = services.artifacts.get(task.gold_patch)
    target, base = read_target(task, services, files)
    results = [_make_result("gold", grade(task, services, gold))]
    with open_counter("submission", len(probes)) as counter:
        graded = _run_probes(probes, target, services, need_rates=need_rates, advance=counter.advance)
        results += [_make_result(probe.name, score) for probe, score in graded]
    edits = []
    if limit := services.settings.verify.strength_runs:
        edits = draft_edits(read_gold_files(target.touched, gold), limit)
    with open_counter("edit", len(edits)) as counter:
        strength = measure_strength(task, services, edits, counter.advance)
    return Inspection(
        findings=(*_find_leaks(task, gold, base, services), *_check_results(results, probes, task.control_bound)),
        probes=tuple(results),
        strength=strength,
    )


def grade_combined_probes(
    task: Task, services: Services, files: TreeFiles | None = None, probes: Sequence[Probe] = PROBES
) -> Iterator[tuple[ProbeSubmission, Score]]:
    """Yield the scores of submissions that must earn 0, as few as show it for all probes.

    Where several probes together earn something, or have no score, each of them is graded alone and comes before them.
    The first unexpected outcome ends a grading, and one file of FAIL_TO_PASS tests is enough where they fail
    (`verifiers.grade.grade_worthless_patch`), so that their rates are not about all tests.

    Args and errors as in `inspect`; the task is graded by lists of tests.
    """
    target, _ = read_target(task, services, files)

    def grade_submission(submission: ProbeSubmission) -> list[tuple[ProbeSubmission, Score]]:
        patch = make_patch(submission.changes, target.base)
        if _fails_by_a_file(submission):
            score = grade_worthless_patch(task, services, patch)
        else:
            score = grade(task, services, patch, need_rates=False)
        if score.value == 0.0 or len(submission.members) == 1:
            return [(submission, score)]
        members = [graded for member in split_submission(submission, target) for graded in grade_submission(member)]
        return [*members, (submission, score)]

    for graded in _map_in_threads(grade_submission, combine_probes(target, probes), services):
        yield from graded


def _fails_by_a_file(submission: ProbeSubmission) -> bool:
    """Return whether a file of tests is expected to show that a submission earns 0, whatever is drawn.

    One that ends the test process leaves no report, and one that is left to controls may pass a file by chance.
    """
    first, *others = submission.members
    return first.group != EXITS and (bool(others) or not first.needs_controls)


def read_target(task: Task, services: Services, files: TreeFiles | None = None) -> tuple[ProbeTarget, BaseTreeIndex]:
    """Return the parts that submissions for a task are made from, and the index of its base tree.

    Args and errors as in `inspect`.
    """
    gold = services.artifacts.get(task.gold_patch)
    gold_files = list(dict.fromkeys([*list_patch_paths(gold), *list_patch_renames(gold).values()]))
    base = index_base_tree(
        read_base_files(task, services) if files is None else files, select_base_files(task, gold_files)
    )
    return create_target(task, gold_files, base.files), base


def _inspect_by_oracle(task: Task, services: Services, files: TreeFiles | None) -> Inspection:
    """Inspect a task with an oracle of its own or without an image: leaks, and the scores of gold and no-op."""
    base = index_base_tree(read_base_files(task, services) if files is None else files)
    reward = select_reward(task)
    results = [
        _make_result("gold", reward.grade(task, services, reward.make_gold(task, services))),
        _make_result(NO_OP.name, reward.grade(task, services, b"")),
    ]
    gold = services.artifacts.get(task.gold_patch)
    return Inspection(
        findings=(*_find_leaks(task, gold, base, services), *_check_results(results, [NO_OP], None)),
        probes=tuple(results),
        strength=summarize_edits(task),
    )


def _find_leaks(task: Task, gold: bytes, base: BaseTreeIndex, services: Services) -> Iterator[InspectionFinding]:
    for leak in audit_image(task, services, base) if task.image else ():
        yield InspectionFinding(
            kind="image", location=f"/{leak.path}", description=f"{leak.description}, in layer {leak.layer[:19]}"
        )
    for path, description in audit_review_tree(task, services, base):
        yield InspectionFinding(kind="tree", location=path, description=f"{description}, in the tree under review")
    for quote, description in statement.find_leaks(task.problem_statement, gold, task.repo, base.lines):
        yield InspectionFinding(kind="statement", location=quote, description=description)


def _run_probes(
    probes: Sequence[Probe],
    target: ProbeTarget,
    services: Services,
    *,
    need_rates: bool,
    advance: Callable[[], object] = lambda: None,
) -> Iterator[tuple[Probe, Score]]:
    """Grade the probes that can be made from this task, some at a time, and yield them in their order."""

    def grade_probe(probe: Probe) -> Score | None:
        changes = probe.make(target)
        score = None
        if changes or probe is NO_OP:
            patch = make_patch(changes, target.base)
            score = grade(target.task, services, patch, need_rates=need_rates)
        advance()
        return score

    scores = _map_in_threads(grade_probe, probes, services)
    yield from ((probe, score) for probe, score in zip(probes, scores, strict=True) if score)


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def _map_in_threads(
    function: Callable[[_Item], _Result], items: Sequence[_Item], services: Services
) -> Iterator[_Result]:
    """Yield the results for the items in their order, with as many threads as there are workers."""
    with ThreadPoolExecutor(services.settings.cluster.workers, thread_name_prefix="mergemill-probe") as threads:
        try:
            yield from threads.map(function, items)
        finally:
            # After an error the remaining probes need not be graded, and the executor would wait for all of them.
            threads.shutdown(cancel_futures=True)


def _make_result(name: str, scored: Score) -> ProbeResult:
    explanation = scored.infrastructure_error or scored.explanation
    return ProbeResult(name=name, value=scored.value, tampering=scored.tampering, explanation=explanation)


def _check_results(
    results: Sequence[ProbeResult], probes: Sequence[Probe], control_bound: float | None
) -> Iterator[InspectionFinding]:
    """Yield a finding for each submission with another score than required."""
    known = {probe.name: probe for probe in probes}
    for result in results:
        outcome = "is not scored" if result.value is None else f"earns {result.value:g}"
        if result.name == "gold" and result.value != 1.0:
            yield InspectionFinding(
                kind="gold", location="gold", description=f"the gold patch {outcome}: {result.explanation}"
            )
        elif result.name != "gold" and result.value != 0.0:
            odds = ""
            if known[result.name].needs_controls:
                bound = (
                    "there are no controls"
                    if control_bound is None
                    else f"its odds are {format_probability(control_bound)}"
                )
                odds = f"; only controls expose it, and {bound}"
            yield InspectionFinding(
                kind="exploit",
                location=result.name,
                description=f"{known[result.name].description} {outcome}: {result.explanation}{odds}",
            )
