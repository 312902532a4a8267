"""Runs of one environment's tests as records: who ran what from which script and image, with report and log kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backends.sandbox.base import Series
from backends.services import Services
from backends.testing.outcomes import Report
from backends.testing.run import TestResult, run_tests
from taskdb.records import RunKind, TestRun

NOTHING = Report(outcomes={}, uncollected={})
"""The report of a runner that broke down by itself: every test is absent."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """One run: the record, and what it is made of."""

    record: TestRun
    result: TestResult

    @property
    def report(self) -> Report:
        """The report, empty when the runner left none."""
        return self.result.report or NOTHING


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Boxes of an image and a script, to be run as often as asked."""

    services: Services
    boxes: Series
    image_digest: str
    workdir: str
    script: str

    def run(
        self,
        kind: RunKind,
        *,
        seed: int = 0,
        patch: bytes = b"",
        test_patch: bytes | None = None,
        files: Sequence[str] = (),
        last: bool = False,
    ) -> Done:
        """One run in a fresh container; arguments as in `run_tests`.

        Raises:
            Transient: the engine failed.
        """
        result = run_tests(
            self.boxes, self.script, workdir=self.workdir, patch=patch, test_patch=test_patch, files=files, seed=seed,
            last=last,
        )  # fmt: skip
        report = result.report or NOTHING
        artifacts = self.services.artifacts
        record = TestRun(
            kind=kind, seed=seed, script=result.script_sha, image_digest=self.image_digest,
            report=artifacts.put(report.to_bytes()), log=artifacts.put_text(result.log),
            exit_code=result.ran.exit_code, killed_by=result.ran.killed_by, seconds=result.ran.seconds,
            test_seconds=result.test_seconds, counts=report.counts(),
        )  # fmt: skip
        return Done(record=record, result=result)


def settled(bench_of: Callable[[Sequence[str]], Bench], beside: Sequence[str], gold: bytes) -> tuple[Bench, Done]:
    """The bench that a suite can be judged by, and its first run with the gold patch.

    Its script puts canaries, unless the report of a run shows that the suite takes in no strangers.

    Args:
        bench_of: makes a bench whose canaries are put beside the test files it is given; none beside none.
        beside: test files.
        gold: the patch.

    Raises:
        Transient: the engine failed.
    """
    bench = bench_of(beside)
    done = bench.run(RunKind.SOLVED, patch=gold)
    if done.result.report is not None and done.result.canaries in ("missing", "wrong"):
        bench = bench_of(())
        done = bench.run(RunKind.SOLVED, patch=gold)
    return bench, done
