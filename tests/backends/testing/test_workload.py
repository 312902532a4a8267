"""The work that is timed: what it runs, whose time it tells, and what does not count as done."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import Repository
from backends.testing.workload import interleaved, sample, workload_script
from tests.boxes import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.rows import CACHED, FAST, MANY, OTHER_CLOCK, WRONG, make_rows, patch_to

pytestmark = pytest.mark.docker


def test_every_run_counts_and_a_memory_of_the_run_before_is_no_help(tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=300)
    repo = TinyRepo(tmp_path / "repo")
    base, merge = make_rows(repo)
    lineage = make_lineage(repo, services, base, merge)
    environment, get = lineage.the_environment, services.artifacts.get
    script = workload_script(
        environment.plan, Repository(repo.path), base, test_patch=get(lineage.candidate.test_patch),
        gold_patch=get(lineage.candidate.gold_patch), tests={MANY: 1}, rounds=25, canaries=True,
    )  # fmt: skip
    with services.sandbox.series(environment.image, limits=services.test_limits()) as boxes:
        slow, fast, cached, clock, wrong = (
            sample(boxes, script, [MANY], workdir="/testbed", patch=patch)
            for patch in (b"", *(patch_to(repo, base, source) for source in (FAST, CACHED, OTHER_CLOCK, WRONG)))
        )
        unfinished = sample(boxes, script, [MANY, "tests/test_rows.py::test_none"], workdir="/testbed", patch=b"")
        ended = interleaved(boxes, script, [MANY], (b"", b"no patch"), workdir="/testbed", runs=1)
    assert (slow.wrong, fast.wrong, cached.wrong, clock.wrong) == ("", "", "", "")
    assert slow.cpu
    assert fast.cpu
    assert cached.cpu
    assert clock.cpu
    assert slow.cpu > fast.cpu
    assert cached.cpu > fast.cpu, "each run starts without what the one before has kept"
    assert clock.cpu > fast.cpu, "the time is not told by the code's own clocks"
    assert wrong.wrong == f"1 tests of the work do not pass, such as {MANY}"
    assert unfinished.wrong == "1 tests of the work do not pass, such as tests/test_rows.py::test_none"
    assert not isinstance(ended, list)
    assert ended.wrong == "the patch does not apply"
