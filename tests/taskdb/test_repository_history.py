"""Facts about a repository: certificates whose exploits those of other tasks rely on, and flaky tests."""

from __future__ import annotations

from typing import Any

from taskdb.queries.repository_history import HistoryReader
from taskdb.records import (
    Certificate,
    Environment,
    ExploitReference,
    FlakyTest,
    RunVariant,
    Stage,
    Task,
    Verification,
)
from taskdb.records.lineage import GoldGradings, RepositoryHistory
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records

OLD_ID = "1a860778a465efc1d86c062ddeca7885821d8d7f594b48ef60139cf31256026e"
"""Id of the certificate below before certificates named families and tasks."""


def add_task(store: Store, number: int) -> Task:
    pull = records.make_pull_request(number)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    task = records.make_task(verification, candidate)
    store.add_mined_changes((pull, candidate, 0.0))
    store.add(environment, verification, task)
    return task


def make_certificate(task: Task, family: str = "a", **changes: Any) -> Certificate:
    return records.make_certificate(task, **{"exploits": {"stray-file": 0.0}, "environment_family": family} | changes)


def store_result(store: Store, certificate: Certificate) -> None:
    result = StageResult(stage=Stage.CERTIFY, result=certificate, source="git:greet", name="x", seconds=1.0)
    store.add_stage_results(result)


def make_reference(task: Task) -> ExploitReference:
    return ExploitReference(task=task.id, name=task.name)


def test_the_first_certificate_of_a_family_is_relied_on(db: str) -> None:
    with Store.open(db) as store:
        first, second, third = (add_task(store, number) for number in (1, 2, 4))
        reader = HistoryReader(store)
        assert reader.find(first.repo).exploited_families == {}
        store_result(store, make_certificate(first))
        assert reader.find(first.repo).exploited_families == {"a": make_reference(first)}
        store_result(store, make_certificate(second))
        store_result(store, make_certificate(third, "b"))
        expected = {"a": make_reference(first), "b": make_reference(third)}
        assert reader.find(first.repo).exploited_families == expected
        # A run that is resumed, and the worker of another node, begin with what is stored.
        assert HistoryReader(store).find(first.repo).exploited_families == expected
        assert reader.find("ada/other").exploited_families == {}


def test_gradings_of_gold_are_those_of_the_first_task_that_has_all_of_its_own(db: str) -> None:
    with Store.open(db) as store:
        first, second, third = (add_task(store, number) for number in (1, 2, 4))
        reader = HistoryReader(store)
        graded = {"gold_tree": "t", "conditions": ("as always", "at noon", "at night"), "exploits": {}}
        store_result(store, make_certificate(second, **graded, gold_of=make_reference(first)))
        store_result(store, make_certificate(third, conditions=graded["conditions"]))
        assert reader.find(first.repo).gold_gradings == {}
        store_result(store, make_certificate(first, **graded))
        expected = GoldGradings(task=first.id, name=first.name, values=(1.0, 1.0), conditions=("at noon", "at night"))
        assert reader.find(first.repo).gold_gradings == {"t": expected}
        assert HistoryReader(store).find(first.repo).gold_gradings == {"t": expected}


def test_nothing_relies_on_a_certificate_without_exploits_or_on_one_of_a_bundle(db: str) -> None:
    with Store.open(db) as store:
        relying, bundled, old = (add_task(store, number) for number in (1, 2, 4))
        absent = ExploitReference(task="0" * 64, name="of another database")
        store_result(store, make_certificate(relying, exploits={}, exploits_of=absent))
        store_result(store, make_certificate(old, ""))
        store.add(make_certificate(bundled))
        assert HistoryReader(store).find(relying.repo).exploited_families == {}
        (stored,) = store.get_many(
            Certificate, [make_certificate(relying, exploits={}, exploits_of=absent).id]
        ).values()
        assert stored.exploits_of == absent


def test_a_certificate_of_an_earlier_version_keeps_its_id() -> None:
    fields = {"parent": "0" * 64, "name": "a", "gold": [1.0], "noop": 0.0, "image_digest": "", "seconds": 1.0}
    assert Certificate.model_validate(fields).id == OLD_ID


def test_a_repository_is_steady_until_a_test_of_it_was_flaky(db: str) -> None:
    with Store.open(db) as store:
        tasks = [add_task(store, number) for number in (1, 2)]
        assert HistoryReader(store).find(tasks[0].repo).is_steady
        assert not RepositoryHistory().is_steady
        reader = HistoryReader(store)
        assert reader.find(tasks[0].repo).is_steady
        other = records.make_rejection(tasks[0], Stage.CERTIFY, "noop-passes")
        store.add(other)
        assert reader.find(tasks[0].repo).is_steady
        store.add(records.make_rejection(tasks[1], Stage.CERTIFY, "gold-fails"))
        assert not reader.find(tasks[0].repo).is_steady
        assert reader.find("ada/other").is_steady


def test_an_excluded_test_and_a_rejection_are_seen(db: str) -> None:
    with Store.open(db) as store:
        task = add_task(store, 1)
        verification = store.get(Verification, task.parent)
        environment = store.get(Environment, verification.parent)
        flaky = FlakyTest(test="a", counts={RunVariant.GOLD: {"passed": 2, "failed": 1}})
        assert HistoryReader(store).find(task.repo).is_steady
        store.add(records.make_verification(environment, PASS_TO_PASS=(), flaky_tests=(flaky,)))
        assert not HistoryReader(store).find(task.repo).is_steady


def test_a_change_that_was_rejected_as_flaky_is_seen(db: str) -> None:
    with Store.open(db) as store:
        task = add_task(store, 1)
        verification = store.get(Verification, task.parent)
        environment = store.get(Environment, verification.parent)
        store.add(records.make_rejection(environment, Stage.VERIFY, "no-report"))
        assert HistoryReader(store).find(task.repo).is_steady
        store.add(records.make_rejection(environment, Stage.VERIFY, "flaky"))
        assert not HistoryReader(store).find(task.repo).is_steady
