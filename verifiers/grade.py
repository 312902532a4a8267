"""What a submission is worth: only its patch travels, into a fresh box of the task's own image and script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from backends.services import Services
from backends.testing.bench import Bench, Done
from backends.testing.outcomes import Report
from taskdb.records import RunKind, Score, Task, TestId


@contextmanager
def bench_of(task: Task, services: Services) -> Iterator[Bench]:
    """The task's own image and script, for as many runs as are wanted."""
    with services.sandbox.series(task.image, limits=services.test_limits()) as boxes:
        yield Bench(
            services=services, boxes=boxes, image_digest=task.image_digest, workdir=task.the_plan.workdir,
            script=services.artifacts.text(task.the_script),
        )  # fmt: skip


def grade(task: Task, services: Services, patch: bytes) -> Score:
    """The score of one submission; empty is the no-op.

    Everything must hold for 1: all F2P and P2P tests pass (one that is missing fails), the canaries came to what they
    must, and the sabotaged twins failed. Anything else is 0. `value` is None when our own side failed.

    Raises:
        Transient: engine, disk or network failed.
    """
    with bench_of(task, services) as bench:
        return score(task, services, bench, bench.run(RunKind.SOLVED, patch=patch, last=not task.twins), patch)


def score(task: Task, services: Services, bench: Bench, done: Done, patch: bytes) -> Score:
    """The score of a run that was made with `patch`; runs the twins when they matter."""
    name = task.name
    if done.result.infrastructure_error:
        why = done.result.infrastructure_error
        return Score(task=name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=why)
    f2p = [test for test, _ in task.FAIL_TO_PASS]
    f2p_rate, p2p_rate = pass_rate(f2p, done.report), pass_rate(task.PASS_TO_PASS, done.report)
    tampering = list(_canaries(done))
    if f2p_rate == p2p_rate == 1.0 and not tampering and task.twin_patch and task.twins:
        twin_patch = services.artifacts.get(task.twin_patch)
        files = sorted({test.partition("::")[0] for test in task.twins})
        twin = bench.run(RunKind.TWIN, patch=patch, test_patch=twin_patch, files=files, last=True)
        if twin.result.infrastructure_error:
            why = twin.result.infrastructure_error
            return Score(task=name, value=None, resolved=False, f2p_rate=1.0, p2p_rate=1.0, infrastructure_error=why)
        tampering += [*_canaries(twin), *_twins(task.twins, twin)]
    resolved = f2p_rate == p2p_rate == 1.0 and not tampering
    return Score(
        task=name, value=1.0 if resolved else 0.0, resolved=resolved, f2p_rate=f2p_rate, p2p_rate=p2p_rate,
        tampering=tuple(tampering), explanation=_explanation(task, done, tampering),
    )  # fmt: skip


def pass_rate(tests: Iterable[TestId], report: Report) -> float:
    """Share of the tests that passed, 0..1; 1 when there are none."""
    named = list(tests)
    return sum(report.passed(test) for test in named) / len(named) if named else 1.0


def _canaries(done: Done) -> Iterable[str]:
    """A canary that came out wrong, or is missing beside tests that passed."""
    if done.result.canaries == "wrong":
        yield "canary: a test that cannot pass passed, or one that cannot fail failed"
    elif done.result.canaries == "missing" and done.record.counts.passed:
        yield "canary: tests that were run are missing from the report"


def _twins(named: Iterable[TestId], twin: Done) -> Iterable[str]:
    return (f"twin: {test} passed though it was made to fail" for test in named if twin.report.passed(test))


def _explanation(task: Task, done: Done, tampering: list[str]) -> str:
    """One line for people."""
    if not done.result.applied:
        return "the patch does not apply"
    if done.result.broken:
        return done.result.broken
    if tampering:
        return tampering[0]
    wrong = [test for test, _ in task.FAIL_TO_PASS if not done.report.passed(test)]
    broken = [test for test in task.PASS_TO_PASS if not done.report.passed(test)]
    if not wrong and not broken:
        return f"all {len(task.FAIL_TO_PASS)} FAIL_TO_PASS and {len(task.PASS_TO_PASS)} PASS_TO_PASS tests pass"
    first = f", such as {(wrong or broken)[0]}"
    return f"{len(wrong)} FAIL_TO_PASS and {len(broken)} PASS_TO_PASS tests do not pass{first}"
