"""`certify --again`: the first task of each environment family of a bundle gets exploits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import exporters
from core.settings.group import replace_values
from mergemill.bundles import certify
from mergemill.bundles.certify import BundleCertificate
from taskdb.records import Task
from tests.containers import make_services
from tests.exporters.tasks import make_certificate, make_task_with_image
from verifiers.certify import CertificationGradings, CertificationProblem, Reason

pytestmark = pytest.mark.docker
NAMES = ("ada__words-1.bugfix", "ada__words-2.bugfix")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("family")
    services = make_services(folder)
    tasks = [make_task_with_image(services, folder, name=f"ada__words-{number}", evaluations=2) for number in (1, 2)]
    certificates = {task.id: make_certificate(task) for task in tasks}
    exporters.export_tasks("swebench", tasks, certificates, folder / "bundle", services)
    return folder / "bundle"


def grade(
    bundle: Path, folder: Path, exploits: str = "sample:0", only: tuple[str, ...] = ()
) -> list[BundleCertificate]:
    settings = replace_values(make_services(folder).settings, {"certify_exploits": exploits})
    return list(certify.certify_bundle(bundle, settings, only))


def test_the_second_task_relies_on_the_first(bundle: Path, tmp_path: Path) -> None:
    first, second = grade(bundle, tmp_path)
    assert (first.task, second.task) == NAMES
    assert (len(first.exploits), first.exploits_of) == (9, None)
    assert (second.exploits, second.exploits_of) == ({}, first.task)
    assert second.gold == [1.0, 1.0, 1.0]
    assert first.problems == second.problems == []


def test_other_tasks_get_exploits_of_their_own(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = CertificationProblem(reason=Reason.EXPLOIT_PASSES, detail="paid")
    problems: dict[str, list[CertificationProblem]] = {}

    def grade_at_once(task: Task, *_: object, with_exploits: bool) -> Iterator[CertificationGradings]:
        exploits: dict[str, float | None] = {"stray-file": 0.0} if with_exploits else {}
        yield CertificationGradings(gold=[1.0], noop=0.0, exploits=exploits, problems=problems.get(task.name, []))

    def list_references(exploits: str, *only: str) -> list[str | None]:
        results = grade(bundle, tmp_path, exploits, only)
        assert all(bool(result.exploits) == (result.exploits_of is None) for result in results)
        return [result.exploits_of for result in results]

    monkeypatch.setattr(certify, "iterate_gradings", grade_at_once)
    assert list_references("sample:0") == [None, NAMES[0]]
    assert list_references("sample:0", NAMES[1]) == [None]
    assert list_references("sample:1") == list_references("quick") == [None, None]
    problems[NAMES[0]] = [paid]
    assert list_references("sample:0") == [None, None]
