"""A sound task stands every probe, and one with a planted fault is found out by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backends.git import touched
from backends.services import Services
from derivers import derive
from taskdb.records import Rejection, Task, Verification
from tests.boxes import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.shop import SHOP, make_shop
from verifiers import inspect, verify
from verifiers.base import cloned_files, read_base
from verifiers.inspection import Inspection
from verifiers.probes import PROBES, Target, patch_of, wanted


@dataclass(frozen=True)
class Sound:
    services: Services
    task: Task

    def with_fault(self, *names: str, **fault: Any) -> Inspection:
        """What the probes of these names find of the task once something of it is changed."""
        probes = [probe for probe in PROBES if probe.name in names]
        return inspect(self.task.model_copy(update=fault), self.services, probes=probes)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    folder: Path = tmp_path_factory.mktemp("inspection")
    services = make_services(folder, repeats=1, test_timeout=20)
    repo = TinyRepo(folder / "repo")
    lineage = make_lineage(repo, services, *make_shop(repo))
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive(lineage.then(verification), services)
    assert not isinstance(made, Rejection)
    (task,) = made
    return Sound(services, task)


@pytest.mark.docker
def test_a_sound_task_has_no_findings_and_every_probe_is_worth_nothing(sound: Sound) -> None:
    found = inspect(sound.task, sound.services)
    assert found.findings == ()
    assert {one.name: one.value for one in found.probes} == {"gold": 1.0} | {probe.name: 0.0 for probe in PROBES}
    told = {one.name: one for one in found.probes}
    assert "made to fail" in told["source-forges"].tampering[0]
    assert "no report" in told["source-exits"].explanation
    assert (found.strength.fail_to_pass, found.strength.twins, found.strength.share) == (3, 3, 1.0)


@pytest.mark.docker
def test_a_task_without_twins_falls_to_a_forged_report(sound: Sound) -> None:
    found = sound.with_fault("conftest-forges", "source-forges", twins=(), twin_patch=None)
    assert [(fault.kind, fault.where) for fault in found.findings] == [("exploit", "source-forges")]
    assert "is worth 1" in found.findings[0].what
    assert found.strength.share == 0.0


@pytest.mark.docker
def test_a_task_whose_tests_pass_anyway_is_solved_by_nothing(sound: Sound) -> None:
    passing = tuple((test, sound.task.FAIL_TO_PASS[0][1]) for test in sound.task.PASS_TO_PASS)
    found = sound.with_fault("nothing", "only-tests", FAIL_TO_PASS=passing, twins=(), twin_patch=None)
    assert [fault.where for fault in found.findings if fault.kind == "exploit"] == ["nothing", "only-tests"]


@pytest.mark.docker
def test_a_gold_patch_that_solves_nothing_and_a_statement_that_tells_it_are_findings(sound: Sound) -> None:
    useless = SHOP.replace('"""Sum of the prices."""', '"""Sum of the prices, rounded(2)."""').encode()
    gold = patch_of({"shop/__init__.py": useless}, {"shop/__init__.py": SHOP.encode()})
    statement = 'Write """Sum of the prices, rounded(2).""" there.'
    found = sound.with_fault(gold_patch=sound.services.artifacts.put(gold), problem_statement=statement)
    assert [fault.kind for fault in found.findings] == ["statement", "gold"]
    assert found.findings[0].where == '"""Sum of the prices, rounded(2)."""'
    assert "the gold patch is worth 0" in found.findings[1].what


@pytest.mark.docker
def test_each_probe_is_a_patch_of_its_own_that_git_applies(sound: Sound) -> None:
    files = dict(cloned_files(sound.task, sound.services))
    gold_files = touched(sound.services.artifacts.get(sound.task.gold_patch))
    base = read_base(files.items(), wanted(sound.task, gold_files))
    assert sorted(base.files) == ["shop/__init__.py", "tests/test_shop.py"]
    target = Target(task=sound.task, gold_files=gold_files, base=base.files)
    patches = {probe.name: patch_of(probe.make(target), base.files) for probe in PROBES}
    assert len(set(patches.values())) == len(PROBES)
    assert {name for name, patch in patches.items() if not patch} == {"nothing"}
    assert touched(patches["deleted-tests"]) == ["tests/test_shop.py"]
    assert b"deleted file" in patches["deleted-tests"]
    assert b"+class TestMore:\n+    def test_it_is_a_number(*_): pass\n" in patches["only-tests"]
