"""Verifier of performance tasks: the tests pass, and the workload is significantly faster than on the base tree."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from guest.scoring.timing import RUNS_PER_TREE, is_faster, order_runs
from guest.verifier import grade
from guest.verifier.kind_score import KindScore
from guest.verifier.tree_runs import TreeRun, TreeRunner


def score_speed(task: Mapping[str, Any], submission: bytes, folder: str, work: str) -> KindScore:
    """Return the score of a faster solution; arguments as in `guest.verifier.writing.score_tests`.

    Raises:
        InfrastructureFailure: the evaluation itself failed.
    """
    parts = {"ratio": 1.0, "expert_ratio": task["ratio"], "p": 1.0}
    if not submission.strip():
        return KindScore(0.0, parts, "the patch is empty, so nothing is faster")
    runner = TreeRunner(task["workdir"], work, task["seconds"])
    folder_of_tests = runner.make_path("tests")
    os.mkdir(folder_of_tests, 0o711)
    record = os.path.join(folder_of_tests, grade.PATCH_RECORD)
    if not grade.apply_patch(runner.write("submission", submission), task["workdir"], record):
        return KindScore(0.0, parts, "the patch does not apply")
    passed, tampering = grade.grade_submission(task, folder_of_tests)
    if tampering or not all(passed.values()):
        broken = [test for test, is_passed in passed.items() if not is_passed]
        detail = f"{len(broken)} tests do not pass" if broken else "the results are forged"
        return KindScore(0.0, {"expert_ratio": task["ratio"]}, detail, tampering)
    with open(os.path.join(folder, "workload.sh"), "rb") as file:
        script = file.read()
    times = measure_trees(runner, script, task, (b"", submission))
    if isinstance(times, str):
        return KindScore(0.0, parts, times)
    resolved, speedup, p = is_faster(times[0], times[1], task["threshold"])
    explanation = f"{speedup:.2f} times as fast (p = {p:.3g}); required {task['threshold']:.2f}"
    return KindScore(float(resolved), {**parts, "ratio": round(speedup, 3), "p": p}, explanation)


def measure_trees(
    runner: TreeRunner, script: bytes, task: Mapping[str, Any], patches: Sequence[bytes]
) -> list[list[float]] | str:
    """Return the seconds of the workload on each tree, measured in turn after a warm-up, or why they are void."""
    seconds: list[list[float]] = [[] for _ in patches]
    for tree, counts in order_runs(len(patches), RUNS_PER_TREE):
        run = runner.run(script, patch=patches[tree])
        if reason := _find_invalid_reason(run, task["workload_tests"]):
            return reason
        if counts:
            use_wall = task["clock"] == "wall" or run.cpu_seconds is None
            seconds[tree].append(run.wall_seconds if use_wall else run.cpu_seconds or 0.0)
    return seconds


def _find_invalid_reason(run: TreeRun, tests: Sequence[str]) -> str:
    if run.report is None:
        return "the runner left no report of the workload"
    if run.canaries in ("wrong", "missing"):
        return f"canary: the one beside the workload is {run.canaries}"
    failing = [test for test in tests if not run.report.has_passed(test)]
    return f"{len(failing)} tests of the workload do not pass, such as {failing[0]}" if failing else ""
