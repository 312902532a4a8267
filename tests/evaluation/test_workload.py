"""Workloads: what they run, whose time they measure, and which runs are invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from evaluation.performance.workload import measure_interleaved, render_workload, run_workload
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.slow_rows import CACHED, FAST, MANY, OTHER_CLOCK, WRONG, make_module_patch, make_slow_rows

pytestmark = pytest.mark.docker


def test_every_run_is_measured_and_starts_without_the_memory_of_earlier_runs(tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=300)
    repo = TinyRepo(tmp_path / "repo")
    base, merge = make_slow_rows(repo)
    lineage = make_lineage(repo, services, base, merge)
    environment, get = lineage.require_environment(), services.artifacts.get
    script = render_workload(
        environment.plan,
        GitRepository(repo.path),
        base,
        test_patch=get(lineage.candidate.test_patch),
        gold_patch=get(lineage.candidate.gold_patch),
        tests={MANY: 1},
        rounds=25,
        canaries=True,
    )
    with services.sandbox.open_pool(environment.image, limits=services.test_limits()) as pool:
        slow, fast, cached, clock, wrong = (
            run_workload(pool, script, [MANY], workdir="/testbed", patch=patch)
            for patch in (
                b"",
                *(make_module_patch(repo, base, source) for source in (FAST, CACHED, OTHER_CLOCK, WRONG)),
            )
        )
        unfinished = run_workload(pool, script, [MANY, "tests/test_rows.py::test_none"], workdir="/testbed", patch=b"")
        aborted = measure_interleaved(pool, script, [MANY], (b"", b"no patch"), workdir="/testbed", runs=1)
    assert (slow.invalid_reason, fast.invalid_reason, cached.invalid_reason, clock.invalid_reason) == ("", "", "", "")
    assert slow.cpu_seconds
    assert fast.cpu_seconds
    assert cached.cpu_seconds
    assert clock.cpu_seconds
    assert slow.cpu_seconds > fast.cpu_seconds
    assert cached.cpu_seconds > fast.cpu_seconds, "each run must start without cached results of earlier runs"
    assert clock.cpu_seconds > fast.cpu_seconds, "the code under test must not influence the clock"
    assert wrong.invalid_reason == f"1 tests of the workload do not pass, such as {MANY}"
    assert unfinished.invalid_reason == "1 tests of the workload do not pass, such as tests/test_rows.py::test_none"
    assert not isinstance(aborted, list)
    assert aborted.invalid_reason == "the patch does not apply"
