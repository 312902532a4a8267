"""A fixed amount of work for telling how fast a tree is: some of its tests, run many times, metered from outside.

The work is an evaluation script like any other, so what a submission cannot do there it cannot do here. Its time is the
processor time of all processes in the box, as the kernel counts it, or the time that passes: the code under test has
neither in its hands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backends.git import Repository
from backends.index import ScratchIndex
from backends.sandbox.base import Series
from backends.testing.run import TestResult, run_tests
from backends.testing.script import config_part, render_plan
from taskdb.records import BuildPlan, TestId

Clock = Literal["cpu", "wall"]

FRAMEWORKS = ("pytest",)
"""Whose tests can be run many times in one process."""

_FOLDER = ".mergemill-workload"
_PLUGIN = "mergemill_workload"


def workload_script(
    plan: BuildPlan, tree: Repository, base: str, *, test_patch: bytes, gold_patch: bytes, tests: Mapping[TestId, int],
    rounds: int, canaries: bool, clock: Clock = "cpu",
) -> str:  # fmt: skip
    """The script that runs some tests many times.

    Args:
        plan: of the environment; its framework is one of FRAMEWORKS.
        tree: the history that holds `base`.
        base: the commit that both patches are made for.
        test_patch: brings the tests; may be empty.
        gold_patch: its part on the runner's configuration is the task's.
        tests: those to run, each with its runs in one round.
        rounds: how many rounds; none knows what one before has kept in memory. 0 runs each test once.
        canaries: whether the suite takes in canaries.
        clock: of the seconds that the report has of each test, all its runs together.

    Raises:
        GitError: the test patch does not apply.
    """
    plugin = (Path(__file__).parent / "harness" / "workload" / f"{_PLUGIN}.py").read_bytes()
    rows = [f"{runs} {test}" for test, runs in tests.items()]
    with ScratchIndex(tree, base) as index:
        index.apply(test_patch)
        index.write(f"{_FOLDER}/{_PLUGIN}.py", plugin)
        index.write(f"{_FOLDER}/workload.txt", "\n".join([str(rounds), clock, plan.workdir, *rows]).encode())
        patch = index.diff()
    files = sorted({test.partition("::")[0] for test in tests})
    before = [value for name, value in plan.env if name == "PYTHONPATH"]
    env = [pair for pair in plan.env if pair[0] != "PYTHONPATH"]
    plugged = plan.model_copy(
        update={
            "test": plan.test.model_copy(update={"argv": (*plan.test.argv, "-p", _PLUGIN)}),
            "env": (*env, ("PYTHONPATH", ":".join([f"{plan.workdir}/{_FOLDER}", *before]))),
        }
    )
    return render_plan(
        plugged, test_patch=patch, files=files, canaries_beside=files if canaries else (),
        config_patch=config_part(gold_patch), metered=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run of a workload. `wrong`: why its time says nothing, or empty; `fault`: why it was no fault of the code."""

    cpu: float | None
    wall: float
    wrong: str = ""
    fault: str = ""

    def seconds(self, clock: Clock) -> float:
        """What the clock said; the time that passed where processor time cannot be told."""
        return self.wall if clock == "wall" or self.cpu is None else self.cpu


def sample(boxes: Series, script: str, tests: Sequence[TestId], *, workdir: str, patch: bytes) -> Sample:
    """Run the work once, in a fresh box with `patch` applied.

    Raises:
        Transient: the engine failed.
    """
    result = run_tests(boxes, script, workdir=workdir, patch=patch)
    return Sample(
        cpu=result.cpu_seconds, wall=result.test_seconds, wrong=_wrong(result, tests),
        fault=result.infrastructure_error or "",
    )  # fmt: skip


def _wrong(result: TestResult, tests: Sequence[TestId]) -> str:
    if not result.applied:
        return "the patch does not apply"
    if result.report is None or result.broken:
        return result.broken
    if result.canaries in ("wrong", "missing"):
        return f"canary: the one beside the work is {result.canaries}"
    left = [test for test in tests if not result.report.passed(test)]
    return f"{len(left)} tests of the work do not pass, such as {left[0]}" if left else ""


def interleaved(
    boxes: Series, script: str, tests: Sequence[TestId], patches: Sequence[bytes], *, workdir: str, runs: int
) -> list[list[Sample]] | Sample:
    """Samples of several trees, `runs` of each, taken in turn after a first one of each that does not count.

    The first sample that is wrong ends it and is the answer.

    Args:
        boxes: of the image whose tree the patches are for.
        script: what `workload_script` gave.
        tests: those it runs.
        patches: one for each tree; empty is the tree itself.
        workdir: the tree's folder.
        runs: samples of each that count.
    """
    taken: list[list[Sample]] = [[] for _ in patches]
    for number in range(runs + 1):
        order = range(len(patches)) if number % 2 else reversed(range(len(patches)))
        for which in order:
            one = sample(boxes, script, tests, workdir=workdir, patch=patches[which])
            if one.wrong or one.fault:
                return one
            if number:
                taken[which].append(one)
    return taken
