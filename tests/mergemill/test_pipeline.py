"""The runner: what is written when, what is done again, and how failures are told apart."""

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

from backends.cluster.local import LocalCluster
from mergemill.errors import InputError, MachineError, Transient
from taskdb.chains import Scope
from taskdb.queries import summary
from taskdb.records import Kind, Stage, Task
from taskdb.store import Store
from tests import records
from tests.mergemill.stages import Mined, Stages, miner, run
from tests.records import rejection

ROOT = Path(__file__).parents[2]


def held(folder: Path) -> dict[str, Any]:
    with Store.open(f"sqlite:///{folder}/m.db") as store:
        return summary(store, ["git:greet"])


def test_a_run_takes_every_candidate_through_all_stages(tmp_path: Path) -> None:
    done = run(tmp_path, Stages())
    assert done.exit_code == 0
    assert held(tmp_path) | {"seconds": {}} == {
        "mined": 4, "candidates": 3, "environments": 3, "verified": 3, "tasks": {"bugfix": 3}, "certified": 3,
        "rejected": {"no-tests": 1}, "seconds": {},
    }  # fmt: skip
    assert done.new == 4 + 3 * 5


def test_the_same_run_again_does_nothing(tmp_path: Path) -> None:
    run(tmp_path, Stages({(Stage.VERIFY, "ada__greet-1"): "flaky"}))
    before = held(tmp_path)
    again = Stages()
    done = run(tmp_path, again)
    assert (done.new, again.calls) == (0, [])
    assert held(tmp_path) == before


def test_every_finished_record_gives_one_line(tmp_path: Path) -> None:
    run(tmp_path, Stages({(Stage.BUILD, "ada__greet-2"): "no-environment"}))
    lines = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert len(lines) == 4 + 2 * 5 + 1
    assert all(list(line) == ["event", "stage", "name", "ok", "reason", "seconds"] for line in lines)
    refused = next(line for line in lines if line["stage"] == "build" and line["name"] == "ada__greet-2")
    assert (refused["ok"], refused["reason"]) == (False, "no-environment")


def test_a_rejected_record_goes_no_further_and_is_done_again_when_asked(tmp_path: Path) -> None:
    first = Stages({(Stage.VERIFY, "ada__greet-1"): "flaky"})
    run(tmp_path, first)
    assert (Stage.DERIVE, "ada__greet-1") not in first.calls
    again = Stages()
    run(tmp_path, again, retry=["flaky"])
    assert again.calls == [
        (stage, "ada__greet-1") for stage in (Stage.VERIFY, Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY)
    ]
    assert held(tmp_path)["certified"] == 3
    assert held(tmp_path)["rejected"] == {"no-tests": 1}


def test_a_transient_failure_is_no_verdict_and_the_next_run_goes_on(tmp_path: Path) -> None:
    broken = Stages({(Stage.VERIFY, "ada__greet-1"): Transient("no answer")})
    done = run(tmp_path, broken)
    assert done.exit_code == 75
    assert broken.calls.count((Stage.VERIFY, "ada__greet-1")) == 2  # tried again at once
    assert held(tmp_path)["rejected"] == {"no-tests": 1}
    mended = Stages()
    assert run(tmp_path, mended).exit_code == 0
    assert mended.calls == [
        (stage, "ada__greet-1") for stage in (Stage.VERIFY, Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY)
    ]


def test_a_bug_costs_one_record_and_the_exit_code(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    done = run(tmp_path, Stages({(Stage.DERIVE, "ada__greet-2"): ZeroDivisionError("oops")}))
    assert done.exit_code == 1
    assert held(tmp_path)["certified"] == 2
    assert "ZeroDivisionError: oops" in caplog.text


@dataclass
class Judging(Stages):
    """Judges whose statements are told apart by what they are set aside for; tasks are made of the others."""

    aside: str | None = None

    def judge(self, it: Any, services: Any) -> Any:
        return super().judge(it, services).model_copy(update={"set_aside": self.aside})

    def derive(self, it: Any, services: Any) -> Any:
        made = super().derive(it, services)
        aside, (kind,) = it.the_verdict.set_aside, it.kinds
        return rejection(it.the_verdict, Stage.DERIVE, aside, kind=kind, name=it.candidate.name) if aside else made


def test_what_the_judge_set_aside_is_judged_again_when_asked(tmp_path: Path) -> None:
    run(tmp_path, Judging(aside="message-not-stated"), only=["ada__greet-1"])
    assert held(tmp_path)["rejected"] == {"no-tests": 1, "message-not-stated": 1}
    others, same, mended = Stages(), Judging(aside="message-not-stated"), Judging()
    run(tmp_path, others, only=["ada__greet-1"], retry=["flaky"])
    assert others.calls == []
    done = run(tmp_path, same, only=["ada__greet-1"], retry=["message-not-stated"])
    assert (done.new, {stage for stage, _ in same.calls}) == (0, {Stage.JUDGE, Stage.DERIVE})
    run(tmp_path, mended, only=["ada__greet-1"], retry=["message-not-stated"])
    assert list(dict.fromkeys(stage for stage, _ in mended.calls)) == [Stage.JUDGE, Stage.DERIVE, Stage.CERTIFY]
    assert (held(tmp_path)["certified"], held(tmp_path)["rejected"]) == (1, {"no-tests": 1})
    again = Judging()
    assert run(tmp_path, again, only=["ada__greet-1"], retry=["message-not-stated"]).new == 0
    assert again.calls == []


class Reviewing(Stages):
    """Makes two reviews of every change, too, unless a fault says otherwise."""

    def derive(self, it: Any, services: Any) -> Any:
        if it.kinds != (Kind.REVIEW,):
            return super().derive(it, services)
        if refused := self._do(Stage.DERIVE, it, it.candidate):
            return refused
        whole = records.task(records.verification(records.environment(it.candidate)), it.candidate)
        fields = {"parent": it.candidate.id, "kind": Kind.REVIEW, "environment": "none", "image": ""}
        names = [f"{it.candidate.name}.review-{number}" for number in (1, 2)]
        return [Task(**whole.model_dump() | fields | {"name": name}) for name in names]


def test_what_needs_no_environment_is_made_of_changes_that_have_none(tmp_path: Path) -> None:
    stages = Reviewing({(Stage.BUILD, "ada__greet-2"): "no-plan"})
    assert run(tmp_path, stages, kinds=(Kind.BUGFIX, Kind.REVIEW)).exit_code == 0
    found = held(tmp_path)
    assert (found["tasks"], found["certified"]) == ({"bugfix": 2, "review": 6}, 8)
    assert found["rejected"] == {"no-tests": 1, "no-plan": 1}
    assert run(tmp_path, Reviewing(), kinds=(Kind.BUGFIX, Kind.REVIEW)).new == 0


def test_a_bug_in_one_kind_costs_that_kind_alone(tmp_path: Path) -> None:
    class Broken(Reviewing):
        def derive(self, it: Any, services: Any) -> Any:
            if it.kinds == (Kind.BUGFIX,) and it.candidate.name == "ada__greet-2":
                raise ZeroDivisionError("oops")
            return super().derive(it, services)

    assert run(tmp_path, Broken(), kinds=(Kind.BUGFIX, Kind.REVIEW)).exit_code == 1
    assert held(tmp_path)["tasks"] == {"bugfix": 2, "review": 6}


def test_a_dead_engine_ends_the_run_early(tmp_path: Path) -> None:
    dead = Stages({(Stage.BUILD, f"ada__greet-{n}"): Transient("no engine") for n in range(1, 100)})
    assert run(tmp_path, dead, mine=partial(miner, changes=99)).exit_code == 75
    assert len({name for _, name in dead.calls}) < 15


def test_a_lacking_machine_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="no base"):
        run(tmp_path, Stages({(Stage.BUILD, "ada__greet-4"): MachineError("no base")}))


def test_a_bad_line_does_not_stop_the_others(tmp_path: Path) -> None:
    def with_bad_line(source: str, services: Any) -> Iterator[Any]:
        yield InputError("line 3 is no JSON")
        yield from miner(source, services)

    assert run(tmp_path, Stages(), mine=with_bad_line).exit_code == 3
    assert held(tmp_path)["certified"] == 3


def test_a_source_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    def picky(source: str, services: Any) -> Iterator[Any]:
        if source == "git:bad":
            raise InputError("git:bad is not a repository")
        yield from miner(source, services)

    assert run(tmp_path, Stages(), mine=picky, sources=["git:bad", "git:greet"]).exit_code == 3
    assert held(tmp_path)["certified"] == 3


def test_when_the_miner_breaks_off_what_was_mined_before_goes_on(tmp_path: Path) -> None:
    def cut(source: str, services: Any) -> Iterator[Any]:
        raise Transient("no network")
        yield

    run(tmp_path, Stages(), steps=())
    assert run(tmp_path, Stages(), mine=cut).exit_code == 75
    assert held(tmp_path)["certified"] == 3


def test_only_and_dates_choose_candidates(tmp_path: Path) -> None:
    stages = Stages()
    run(tmp_path, stages, only=["ada__greet-2"])
    assert {name for _, name in stages.calls} == {"ada__greet-2"}


def test_one_stage_takes_what_waits_for_it_newest_first(tmp_path: Path) -> None:
    stages = Stages()
    run(tmp_path, stages, steps=stages.steps()[:1])
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        assert [it.candidate.name[-1] for it in store.pending(Stage.VERIFY, Scope())] == ["4", "2", "1"]
        assert [it.candidate.name[-1] for it in store.pending(Stage.VERIFY, Scope(limit=1))] == ["4"]
        assert list(store.pending(Stage.VERIFY, Scope(sources=["git:other"]))) == []
        assert list(store.pending(Stage.BUILD, Scope())) == []
        assert list(store.pending(Stage.DERIVE, Scope())) == []


def test_a_change_judged_anew_by_other_rules_begins_a_new_chain(tmp_path: Path) -> None:
    def stricter(source: str, services: Any) -> Iterator[Any]:
        for mined in miner(source, services):
            yield Mined(mined.pull_request, rejection(mined.pull_request, Stage.MINE, "too-large"), mined.tags)

    run(tmp_path, Stages())
    assert run(tmp_path, Stages(), mine=stricter).new == 4
    assert held(tmp_path)["certified"] == 0
    assert held(tmp_path)["rejected"] == {"too-large": 4}
    assert run(tmp_path, Stages()).new == 4  # the verdicts of before count again, with all that followed
    assert held(tmp_path)["certified"] == 3


def test_records_are_taken_a_few_ahead_only() -> None:
    taken: list[int] = []

    def records() -> Iterator[int]:
        for n in range(1000):
            taken.append(n)
            yield n

    results = LocalCluster(workers=2).map(lambda n: iter((n,)), records())
    next(results)
    results.close()
    assert len(taken) < 10


def test_leaving_early_waits_for_what_runs_and_calls_stop() -> None:
    ended: list[str] = []

    def slow(n: int) -> Iterator[int]:
        yield n
        time.sleep(0.2)
        ended.append("work")
        yield n

    results = LocalCluster(workers=1, stop=lambda: ended.append("stop")).map(slow, [1, 2, 3])
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
from tests.mergemill.stages import Mined, Stages, miner, run
from tests import records
from tests.records import rejection

class Slow(Stages):
    def build(self, it, services):
        time.sleep(0.002)
        return super().build(it, services)

print("up", flush=True)
run(Path(sys.argv[1]), Slow(), mine=partial(miner, changes=300))
"""


def test_a_driver_killed_at_any_moment_is_continued(tmp_path: Path) -> None:
    for wait in (0.05, 0.3, 0.7):
        with subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ
        ) as driver:
            assert driver.stdout is not None
            driver.stdout.readline()
            time.sleep(wait)
            driver.send_signal(signal.SIGKILL)
    subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    assert held(tmp_path)["certified"] == 200
    assert run(tmp_path, Stages(), mine=partial(miner, changes=300)).new == 0
