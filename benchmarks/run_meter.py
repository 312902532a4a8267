"""A meter of the processor time of test processes, read inside of their containers by the evaluation scripts."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from backends.sandbox.execution import ExecResult
from backends.sandbox.pool import WarmContainerPool
from evaluation.script import render


@dataclass
class RunMeter:
    """Sum over the runs of tests so far; any thread may add to it."""

    cpu_seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, files: Mapping[str, bytes]) -> None:
        """Add what an evaluation script left: path -> content. A run that was killed left nothing."""
        seconds = sum(int(content) for path, content in files.items() if path.endswith("/report/cpu")) / 1e9
        with self._lock:
            self.cpu_seconds += seconds


@contextmanager
def meter_tests() -> Iterator[RunMeter]:
    """Let the evaluation scripts that are rendered in the block meter their tests, and count what this process runs.

    Scripts that were rendered before are not counted.
    """
    meter, run, render_script = RunMeter(), WarmContainerPool.run, render.render_script

    def run_counted(pool: WarmContainerPool, *args: Any, **options: Any) -> ExecResult:
        result = run(pool, *args, **options)
        meter.add(result.files)
        return result

    def render_metered(*args: Any, **options: Any) -> str:
        return render_script(*args, **options | {"metered": True})

    with (
        mock.patch.object(WarmContainerPool, "run", run_counted),
        mock.patch.object(render, "render_script", render_metered),
    ):
        yield meter
