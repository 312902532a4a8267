"""A fixed amount of work that measures the speed of a tree: some of its tests, run many times, metered from outside.

The workload is an ordinary evaluation script, with the same protection against a submission. Its time is the processor
time of all processes in the container, as the kernel counts it, or wall-clock time; the code under test can change
neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from backends.git import GitRepository
from backends.index import ScratchIndex
from backends.sandbox.base import ContainerPool
from evaluation.runner.run import EvaluationResult, run_tests
from evaluation.script.render import extract_config_patch, render_plan_script
from guest.harness import HARNESS_FOLDER
from guest.scoring.timing import order_runs
from languages.registry import find_framework, frameworks_by_name
from taskdb.records import BuildPlan, TestId

Clock = Literal["cpu", "wall"]

ReportedClock = Clock | Literal["work", "runs"]
"""What the seconds of a test in the report are: `work` is its work instead, `runs` the number of its runs that take a
fixed time (with programs only)."""

_FOLDER = ".mergemill-workload"


def can_repeat_tests(framework: str) -> bool:
    """Return whether a framework's tests can be run many times."""
    known = find_framework(framework)
    return known is not None and (known.programs is not None or known.rounds_plugin is not None)


def has_programs(framework: str) -> bool:
    """Return whether a framework's tests are compiled into programs."""
    known = find_framework(framework)
    return known is not None and known.programs is not None


def render_workload(
    plan: BuildPlan,
    repository: GitRepository,
    base: str,
    *,
    test_patch: bytes,
    gold_patch: bytes,
    tests: Mapping[TestId, int],
    rounds: int,
    canaries: bool,
    clock: ReportedClock = "cpu",
    work: Mapping[TestId, float] = MappingProxyType({}),
    counted_files: Mapping[str, bytes] = MappingProxyType({}),
) -> str:
    """Return the script that runs some tests many times.

    Args:
        plan: the environment's plan; the tests of its framework can be repeated (`can_repeat_tests`).
        repository: repository that holds the commit `base`.
        base: the commit that both patches apply to.
        test_patch: test patch that adds the tests; may be empty.
        gold_patch: its changes to the runner's configuration are part of the task.
        tests: test id -> runs of the test in a single round.
        rounds: number of rounds; each starts without the memory of the previous. 0 runs each test once.
        canaries: whether the test runner collects canaries.
        clock: clock of the seconds reported for each test, for all its runs together.
        work: test id -> work that the test must do, lest it becomes faster by doing less; no entry for any.
        counted_files: the test files with counters of their work, and what these need (frameworks with programs only).

    Raises:
        GitError: the test patch does not apply.
    """
    framework = frameworks_by_name()[plan.test.framework]
    plugin = framework.rounds_plugin
    added = dict(counted_files)
    if plugin is not None:
        module = f"{plugin.module}.py"
        added = {
            f"{_FOLDER}/{module}": (HARNESS_FOLDER / "workload" / module).read_bytes(),
            f"{_FOLDER}/workload.txt": _build_rows(plan, tests, rounds, clock, work),
        }
    with ScratchIndex(repository, base) as index:
        index.apply(test_patch)
        for path, content in added.items():
            index.write_file(path, content)
        patch = index.diff()
    files = sorted({test.partition("::")[0] for test in tests})
    return render_plan_script(
        plugin.enable(plan, _FOLDER) if plugin is not None else plan,
        test_patch=patch,
        files=files,
        canaries_beside=files if canaries else (),
        config_patch=extract_config_patch(gold_patch),
        metered=True,
        timed_rounds=_build_settings(plan, tests, rounds, clock, work) if framework.programs is not None else "",
    )


def _build_rows(
    plan: BuildPlan, tests: Mapping[TestId, int], rounds: int, clock: ReportedClock, work: Mapping[TestId, float]
) -> bytes:
    """Return the settings of the plug-in."""
    rows = [f"{runs} {work.get(test, 0):.0f} {test}" for test, runs in tests.items()]
    return "\n".join([str(rounds), clock, plan.workdir, *rows]).encode()


def _build_settings(
    plan: BuildPlan, tests: Mapping[TestId, int], rounds: int, clock: ReportedClock, work: Mapping[TestId, float]
) -> str:
    """Return the settings of `timed_rounds.py`."""
    settings = {
        "framework": plan.test.framework,
        "argv": plan.test.argv,
        "clock": clock,
        "rounds": rounds,
        "rows": [[runs, work.get(test, 0), test] for test, runs in tests.items()],
    }
    return json.dumps(settings, indent=0)


@dataclass(frozen=True, kw_only=True)
class WorkloadSample:
    """A run of a workload.

    `invalid_reason`: why the times are meaningless, or empty. `infrastructure_error`: the component that failed apart
    from the code under test, or empty.
    """

    cpu_seconds: float | None
    wall_seconds: float
    invalid_reason: str = ""
    infrastructure_error: str = ""

    def get_seconds(self, clock: Clock) -> float:
        """Return the seconds by the clock; wall-clock time where processor time is unavailable."""
        return self.wall_seconds if clock == "wall" or self.cpu_seconds is None else self.cpu_seconds


def run_workload(
    pool: ContainerPool, script: str, tests: Sequence[TestId], *, workdir: str, patch: bytes
) -> WorkloadSample:
    """Run the workload once, in a fresh container with `patch` applied.

    Raises:
        Transient: the engine failed.
    """
    result = run_tests(pool, script, workdir=workdir, patch=patch)
    return WorkloadSample(
        cpu_seconds=result.cpu_seconds,
        wall_seconds=result.test_seconds,
        invalid_reason=_find_invalid_reason(result, tests),
        infrastructure_error=result.infrastructure_error or "",
    )


def _find_invalid_reason(result: EvaluationResult, tests: Sequence[TestId]) -> str:
    if not result.is_applied:
        return "the patch does not apply"
    if result.report is None or result.failure_detail:
        return result.failure_detail
    if result.canary_status in ("wrong", "missing"):
        return f"canary: the one beside the workload is {result.canary_status}"
    failing = [test for test in tests if not result.report.has_passed(test)]
    return f"{len(failing)} tests of the workload do not pass, such as {failing[0]}" if failing else ""


def measure_interleaved(
    pool: ContainerPool, script: str, tests: Sequence[TestId], patches: Sequence[bytes], *, workdir: str, runs: int
) -> list[list[WorkloadSample]] | WorkloadSample:
    """Measure several trees in turn and return `runs` samples of each, without a first warm-up sample of each.

    An invalid sample ends the measurement and is returned instead.

    Args:
        pool: containers of the image that holds the base tree.
        script: the script that `render_workload` returned.
        tests: the tests that the script runs.
        patches: a patch for each tree, applied to the base tree; empty for the base tree itself.
        workdir: the tree's folder.
        runs: samples of each tree that count.
    """
    samples: list[list[WorkloadSample]] = [[] for _ in patches]
    for tree, counts in order_runs(len(patches), runs):
        sample = run_workload(pool, script, tests, workdir=workdir, patch=patches[tree])
        if sample.invalid_reason or sample.infrastructure_error:
            return sample
        if counts:
            samples[tree].append(sample)
    return samples
