"""The runner: stored results, resumption, and the kinds of failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backends.cluster.base import Cluster
from backends.cluster.local import LocalCluster
from core.errors import InputError, MachineError, Transient
from taskdb.queries.tasks import compute_summary
from taskdb.records import Kind, Stage, Task
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.mergemill.stages import FakeMinedChange, FakeStages, mine_changes, run
from tests.records import make_rejection
from tests.scopes import make_scope

ROOT = Path(__file__).parents[3]


def summarize(folder: Path) -> dict[str, Any]:
    with Store.open(f"sqlite:///{folder}/m.db") as store:
        return compute_summary(store, ["git:greet"])


def test_a_run_takes_every_candidate_through_all_stages(tmp_path: Path) -> None:
    done = run(tmp_path, FakeStages())
    assert done.exit_code == 0
    assert summarize(tmp_path) | {"seconds": {}} == {
        "mined": 4,
        "candidates": 3,
        "environments": 3,
        "verified": 3,
        "tasks": {"bugfix": 3},
        "certified": 3,
        "rejected": {"no-tests": 1},
        "seconds": {},
    }
    assert done.n_new == 4 + 3 * 5


def test_the_same_run_again_does_nothing(tmp_path: Path) -> None:
    run(tmp_path, FakeStages({(Stage.VERIFY, "ada__greet-1"): "flaky"}))
    before = summarize(tmp_path)
    again = FakeStages()
    done = run(tmp_path, again)
    assert (done.n_new, again.calls) == (0, [])
    assert summarize(tmp_path) == before


def test_every_finished_record_prints_one_line(tmp_path: Path) -> None:
    run(tmp_path, FakeStages({(Stage.BUILD, "ada__greet-2"): "no-environment"}))
    lines = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert len(lines) == 4 + 2 * 5 + 1
    assert all(list(line) == ["event", "stage", "name", "ok", "reason", "seconds"] for line in lines)
    rejected = next(line for line in lines if line["stage"] == "build" and line["name"] == "ada__greet-2")
    assert (rejected["ok"], rejected["reason"]) == (False, "no-environment")


def test_a_rejected_record_ends_its_change_and_is_processed_again_with_retry(tmp_path: Path) -> None:
    first = FakeStages({(Stage.VERIFY, "ada__greet-1"): "flaky"})
    run(tmp_path, first)
    assert (Stage.DERIVE, "ada__greet-1") not in first.calls
    again = FakeStages()
    run(tmp_path, again, retry=["flaky"])
    assert again.calls == [
        (stage, "ada__greet-1") for stage in (Stage.VERIFY, Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY)
    ]
    assert summarize(tmp_path)["certified"] == 3
    assert summarize(tmp_path)["rejected"] == {"no-tests": 1}


def test_a_transient_failure_is_no_verdict_and_the_next_run_continues(tmp_path: Path) -> None:
    broken = FakeStages({(Stage.VERIFY, "ada__greet-1"): Transient("no answer")})
    done = run(tmp_path, broken)
    assert done.exit_code == 75
    assert broken.calls.count((Stage.VERIFY, "ada__greet-1")) == 2  # tried again at once
    assert summarize(tmp_path)["rejected"] == {"no-tests": 1}
    repaired = FakeStages()
    assert run(tmp_path, repaired).exit_code == 0
    assert repaired.calls == [
        (stage, "ada__greet-1") for stage in (Stage.VERIFY, Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY)
    ]


def test_a_bug_costs_one_record_and_the_exit_code(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    done = run(tmp_path, FakeStages({(Stage.DERIVE, "ada__greet-2"): ZeroDivisionError("oops")}))
    assert done.exit_code == 1
    assert summarize(tmp_path)["certified"] == 2
    assert "ZeroDivisionError: oops" in caplog.text


@dataclass
class JudgingStages(FakeStages):
    """Stages whose judge sets every statement aside, for `aside`, or none."""

    aside: str | None = None

    def judge(self, it: Any, services: Any) -> Any:
        return super().judge(it, services).model_copy(update={"set_aside": self.aside})

    def derive(self, it: Any, services: Any) -> Any:
        made = super().derive(it, services)
        aside, (kind,) = it.require_verdict().set_aside, it.kinds
        return (
            make_rejection(it.require_verdict(), Stage.DERIVE, aside, kind=kind, name=it.candidate.name)
            if aside
            else made
        )


def test_a_set_aside_change_is_judged_again_with_retry(tmp_path: Path) -> None:
    run(tmp_path, JudgingStages(aside="message-not-stated"), only=["ada__greet-1"])
    assert summarize(tmp_path)["rejected"] == {"no-tests": 1, "message-not-stated": 1}
    others, same, repaired = FakeStages(), JudgingStages(aside="message-not-stated"), JudgingStages()
    run(tmp_path, others, only=["ada__greet-1"], retry=["flaky"])
    assert others.calls == []
    done = run(tmp_path, same, only=["ada__greet-1"], retry=["message-not-stated"])
    assert (done.n_new, {stage for stage, _ in same.calls}) == (0, {Stage.JUDGE, Stage.DERIVE})
    run(tmp_path, repaired, only=["ada__greet-1"], retry=["message-not-stated"])
    assert list(dict.fromkeys(stage for stage, _ in repaired.calls)) == [Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY]
    assert (summarize(tmp_path)["certified"], summarize(tmp_path)["rejected"]) == (1, {"no-tests": 1})
    again = JudgingStages()
    assert run(tmp_path, again, only=["ada__greet-1"], retry=["message-not-stated"]).n_new == 0
    assert again.calls == []


class ReviewingStages(FakeStages):
    """Stages that also derive two reviews of every change, unless a fault is set."""

    def derive(self, it: Any, services: Any) -> Any:
        if it.kinds != (Kind.REVIEW,):
            return super().derive(it, services)
        if rejected := self._apply_fault(Stage.DERIVE, it, it.candidate):
            return rejected
        whole = records.make_task(records.make_verification(records.make_environment(it.candidate)), it.candidate)
        fields = {"parent": it.candidate.id, "kind": Kind.REVIEW, "environment": "none", "image": ""}
        names = [f"{it.candidate.name}.review-{number}" for number in (1, 2)]
        return [Task(**whole.model_dump() | fields | {"name": name}) for name in names]


def test_kinds_without_an_environment_are_derived_from_changes_that_have_none(tmp_path: Path) -> None:
    stages = ReviewingStages({(Stage.BUILD, "ada__greet-2"): "no-plan"})
    assert run(tmp_path, stages, kinds=(Kind.BUGFIX, Kind.REVIEW)).exit_code == 0
    summary = summarize(tmp_path)
    assert (summary["tasks"], summary["certified"]) == ({"bugfix": 2, "review": 6}, 8)
    assert summary["rejected"] == {"no-tests": 1, "no-plan": 1}
    assert run(tmp_path, ReviewingStages(), kinds=(Kind.BUGFIX, Kind.REVIEW)).n_new == 0


def test_a_bug_in_one_kind_costs_that_kind_alone(tmp_path: Path) -> None:
    class BrokenStages(ReviewingStages):
        def derive(self, it: Any, services: Any) -> Any:
            if it.kinds == (Kind.BUGFIX,) and it.candidate.name == "ada__greet-2":
                raise ZeroDivisionError("oops")
            return super().derive(it, services)

    assert run(tmp_path, BrokenStages(), kinds=(Kind.BUGFIX, Kind.REVIEW)).exit_code == 1
    assert summarize(tmp_path)["tasks"] == {"bugfix": 2, "review": 6}


def test_a_dead_engine_ends_the_run_early(tmp_path: Path) -> None:
    dead = FakeStages({(Stage.BUILD, f"ada__greet-{n}"): Transient("no engine") for n in range(1, 100)})
    assert run(tmp_path, dead, mine=partial(mine_changes, changes=99)).exit_code == 75
    assert len({name for _, name in dead.calls}) < 15


def test_a_missing_requirement_of_the_machine_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="no base"):
        run(tmp_path, FakeStages({(Stage.BUILD, "ada__greet-4"): MachineError("no base")}))


def test_a_bad_line_does_not_stop_the_others(tmp_path: Path) -> None:
    def with_bad_line(source: str, services: Any) -> Iterator[Any]:
        yield InputError("line 3 is no JSON")
        yield from mine_changes(source, services)

    assert run(tmp_path, FakeStages(), mine=with_bad_line).exit_code == 3
    assert summarize(tmp_path)["certified"] == 3


def test_a_source_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    def picky(source: str, services: Any) -> Iterator[Any]:
        if source == "git:bad":
            raise InputError("git:bad is not a repository")
        yield from mine_changes(source, services)

    assert run(tmp_path, FakeStages(), mine=picky, sources=["git:bad", "git:greet"]).exit_code == 3
    assert summarize(tmp_path)["certified"] == 3


def test_candidates_of_earlier_runs_are_processed_when_the_miner_fails(tmp_path: Path) -> None:
    def cut(source: str, services: Any) -> Iterator[Any]:
        raise Transient("no network")
        yield

    run(tmp_path, FakeStages(), steps=())
    assert run(tmp_path, FakeStages(), mine=cut).exit_code == 75
    assert summarize(tmp_path)["certified"] == 3


def test_only_selects_candidates(tmp_path: Path) -> None:
    stages = FakeStages()
    run(tmp_path, stages, only=["ada__greet-2"])
    assert {name for _, name in stages.calls} == {"ada__greet-2"}


def test_the_pending_changes_of_a_stage_are_newest_first(tmp_path: Path) -> None:
    stages = FakeStages()
    run(tmp_path, stages, steps=stages.steps()[:1])
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        assert [it.candidate.name[-1] for it in store.find_pending(Stage.VERIFY, make_scope())] == ["4", "2", "1"]
        assert [it.candidate.name[-1] for it in store.find_pending(Stage.VERIFY, make_scope(limit=1))] == ["4"]
        assert list(store.find_pending(Stage.VERIFY, make_scope(sources=["git:other"]))) == []
        assert list(store.find_pending(Stage.BUILD, make_scope())) == []
        assert list(store.find_pending(Stage.DERIVE, make_scope())) == []


def test_a_change_that_other_rules_reject_begins_a_new_chain(tmp_path: Path) -> None:
    def stricter(source: str, services: Any) -> Iterator[Any]:
        for mined in mine_changes(source, services):
            yield FakeMinedChange(
                mined.pull_request, make_rejection(mined.pull_request, Stage.MINE, "too-large"), mined.tags
            )

    run(tmp_path, FakeStages())
    assert run(tmp_path, FakeStages(), mine=stricter).n_new == 4
    assert summarize(tmp_path)["certified"] == 0
    assert summarize(tmp_path)["rejected"] == {"too-large": 4}
    assert run(tmp_path, FakeStages()).n_new == 4  # the earlier chain is current again, with all its records
    assert summarize(tmp_path)["certified"] == 3


def test_results_that_wait_are_stored_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    add = Store.add_stage_results

    def add_slowly(self: Store, *finished: StageResult) -> list[StageResult]:
        sizes.append(len(finished))
        time.sleep(0.05)
        return add(self, *finished)

    monkeypatch.setattr(Store, "add_stage_results", add_slowly)
    done = run(tmp_path, FakeStages(), mine=partial(mine_changes, changes=30), workers=4)
    assert summarize(tmp_path)["certified"] == 20
    assert sum(sizes) == done.n_new - 30 == 20 * 5
    assert max(sizes) > 1


class OneBatch(Cluster):
    """Yields all results as one list, in the order of the records."""

    def describe(self) -> str:
        return "this machine"

    def map_batches(self, function: Any, records: Any, keeper: Any) -> Any:
        yield [result for record in records for result in function(record)]


@pytest.mark.parametrize(("error", "code"), [(InputError("bad"), 3), (Transient("away"), 75), (ValueError("bug"), 1)])
def test_a_failure_among_results_that_wait_costs_none_of_them(tmp_path: Path, error: Exception, code: int) -> None:
    stages = FakeStages({(Stage.VERIFY, "ada__greet-2"): error})
    done = run(tmp_path, stages, cluster=OneBatch())
    assert done.exit_code == code
    summary = summarize(tmp_path)
    assert (summary["environments"], summary["certified"]) == (3, 2)


def test_what_a_machine_lacks_ends_the_run_after_the_results_before_it(tmp_path: Path) -> None:
    stages = FakeStages({(Stage.VERIFY, "ada__greet-2"): MachineError("no engine")})
    with pytest.raises(MachineError, match="no engine"):
        run(tmp_path, stages, cluster=OneBatch())
    summary = summarize(tmp_path)
    assert (summary["environments"], summary["certified"]) == (2, 1)


def test_the_cluster_reads_only_a_few_records_ahead() -> None:
    read_numbers: list[int] = []

    def records() -> Iterator[int]:
        for n in range(1000):
            read_numbers.append(n)
            yield n

    results = LocalCluster(workers=2).map(lambda n: iter((n,)), records())
    next(results)
    results.close()
    assert len(read_numbers) < 10


def test_closing_a_map_early_calls_stop_and_waits_for_running_work() -> None:
    ended: list[str] = []

    def slow(n: int) -> Iterator[int]:
        yield n
        time.sleep(0.2)
        ended.append("work")
        yield n

    results = LocalCluster(workers=1, stop=lambda _: ended.append("stop")).map(slow, [1, 2, 3])
    next(results)
    results.close()
    assert ended == ["stop", "work"]


def test_a_bug_of_the_function_itself_is_raised_in_the_caller() -> None:
    def broken(n: int) -> Iterator[int]:
        raise ZeroDivisionError
        yield n

    with pytest.raises(ZeroDivisionError):
        list(LocalCluster(workers=2).map(broken, [1, 2]))


DRIVER = """
from functools import partial
from pathlib import Path
import sys, time
from tests.mergemill.stages import FakeStages, mine_changes, run

class SlowStages(FakeStages):
    def build(self, it, services):
        time.sleep(0.002)
        return super().build(it, services)

print("up", flush=True)
run(Path(sys.argv[1]), SlowStages(), mine=partial(mine_changes, changes=300))
"""


def test_the_run_of_a_killed_driver_continues(tmp_path: Path) -> None:
    for wait in (0.05, 0.3, 0.7):
        with subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ
        ) as driver:
            assert driver.stdout is not None
            driver.stdout.readline()
            time.sleep(wait)
            driver.send_signal(signal.SIGKILL)
    subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    assert summarize(tmp_path)["certified"] == 200
    assert run(tmp_path, FakeStages(), mine=partial(mine_changes, changes=300)).n_new == 0
