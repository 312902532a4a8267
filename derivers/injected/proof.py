"""The task's own box: the agent's tree as an image, its script, and the lists that runs of both trees agree on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backends.overlay import patched
from backends.sandbox.base import ImageInfo
from backends.services import Services
from backends.testing.bench import Bench, Done, settled
from backends.testing.lists import Lists, make_lists
from backends.testing.script import render_plan
from backends.testing.twin_runs import Twins, twins_of
from derivers.bugfix import BEHAVIOURAL
from derivers.injected.patches import Patches
from derivers.injected.search import Reason
from taskdb.lineage import Lineage
from taskdb.records import RunKind

REPEATS = 2
"""Runs of each tree: a bug that shows once and then not is none. Certification runs three more."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a task is made of."""

    image: ImageInfo
    script: str
    lists: Lists
    twins: Twins
    wrong: Done
    """A run with the bug."""
    test_seconds: float


def prove(
    lineage: Lineage, services: Services, given: Patches, hidden: Sequence[str], files: Sequence[str]
) -> Proof | Reason:
    """Make the image of the agent's tree and run both trees in it.

    Args:
        lineage: a verified change.
        services: the engine, and what makes the image.
        given: the bug's patches.
        hidden: test files that the test patch brings.
        files: test files to run; empty for the whole suite.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, plan = lineage.candidate, lineage.the_environment.plan
    if services.boxes is None:
        raise LookupError("nothing here makes images of patched trees")
    image = services.boxes.source(plan, candidate, given.setup)
    if image is None:
        return Reason.NO_IMAGE
    with services.sandbox.series(image.name, limits=services.test_limits()) as boxes:

        def bench_of(beside: Sequence[str]) -> Bench:
            script = render_plan(plan, test_patch=given.tests, files=files, canaries_beside=beside)
            return Bench(
                services=services, boxes=boxes, image_digest=image.digest, workdir=plan.workdir, script=script
            )  # fmt: skip

        bench, tested, solved = _runs(bench_of, hidden, given.gold)
        lists = make_lists([done.report for done in tested], [done.report for done in solved])
        kinds = {kind for _, kind in lists.fail_to_pass}
        if not kinds or not kinds <= set(BEHAVIOURAL):
            return Reason.NOT_STABLE
        history = services.clones.open(candidate.source, candidate.repo)
        with patched(history, candidate.base_commit, given.setup) as (overlay, commit):
            twins = twins_of(
                bench, overlay, commit, test_patch=given.tests, solution=given.gold,
                tests=[test for test, _ in lists.fail_to_pass],
            )  # fmt: skip
    seconds = max(done.record.test_seconds for done in solved)
    return Proof(image=image, script=bench.script, lists=lists, twins=twins, wrong=tested[0], test_seconds=seconds)


def _runs(
    bench_of: Callable[[Sequence[str]], Bench], hidden: Sequence[str], gold: bytes
) -> tuple[Bench, list[Done], list[Done]]:
    """The bench that the suite can be judged by, and REPEATS runs in it with the bug and without."""
    bench, first = settled(bench_of, hidden, gold)
    tested, solved = [bench.run(RunKind.TESTED)], [first]
    for seed in range(1, REPEATS):
        tested.append(bench.run(RunKind.TESTED, seed=seed))
        solved.append(bench.run(RunKind.SOLVED, patch=gold, seed=seed))
    return bench, tested, solved
