"""Statement variants of a verified change: which become tasks, what certifies them, and which the rules reject."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from backends.llm.client import ChatModel
from backends.services import Services
from core.settings.group import replace_values
from mergemill.pipeline.kinds import derive
from taskdb.records import Certificate, Kind, Rejection, Task, Verification
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import Verdict
from tests.backends.llm.server import ModelServer, ScriptedAnswer, run_model_server
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.short_certificates import certify_shortly
from tests.verifiers.no_controls import verify_without_controls
from tests.verifiers.shop import HIDDEN, SHOP, SHOP_RIGHT, TESTS
from verifiers.judge import judge

pytestmark = pytest.mark.docker

STATEMENT = """Totals are too small

The first price of a list is never counted, so `total([1])` gives 0. It should be 1.

I have seen this in every version since the beginning, and on all of the machines that I could try it on. Other people
whom I asked about it have the same problem, and none of them has found a way around it that does not need much work.
"""
PRICED = HIDDEN + '\n\ndef test_tag():\n    assert label(total([12.5])) == "EUR 12.5"\n'


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Services:
    return make_services(tmp_path_factory.mktemp("variants"), repeats=1, certify_exploits="off")


@pytest.fixture(scope="module")
def lineage(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Lineage:
    repo = TinyRepo(tmp_path_factory.mktemp("repo"))
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS})
    merge = repo.commit("Count the first", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": PRICED})
    made = make_lineage(repo, services, base, merge)
    verification = verify_without_controls(made, services)
    assert isinstance(verification, Verification), verification
    return restate(made.with_record(verification), STATEMENT, services)


def restate(lineage: Lineage, statement: str, services: Services) -> Lineage:
    changed = replace(lineage, candidate=lineage.candidate.model_copy(update={"problem_statement": statement}))
    verdict = judge(changed, services)
    assert isinstance(verdict, Verdict), verdict
    return changed.with_record(verdict)


def derive_one(lineage: Lineage, kind: Kind, services: Services) -> Task | Rejection:
    made = derive(replace(lineage, kinds=(kind,)), services)
    return made if isinstance(made, Rejection) else made[0]


def test_variants_differ_in_the_statement_alone_and_are_derived_without_a_run(
    lineage: Lineage, services: Services
) -> None:
    original = derive_one(lineage, Kind.BUGFIX, services)
    assert isinstance(original, Task)
    idle = replace(services, sandbox=replace_pools(services))
    for kind in (Kind.TERSE, Kind.USER_STORY, Kind.TRACEBACK):
        task = derive_one(lineage, kind, idle)
        assert isinstance(task, Task), task
        assert (task.kind, task.name) == (kind, f"{original.name}.{kind}")
        assert (task.variant_of, task.family) == (original.name, original.family)
        same = {"kind", "name", "problem_statement", "variant_of"}
        assert task.model_dump(exclude=same) == original.model_dump(exclude=same)
        assert "test_" not in task.problem_statement
    assert isinstance(certify_shortly(lineage.with_record(task), services), Certificate)
    assert "variant_of" not in original.model_fields_set


def replace_pools(services: Services) -> object:
    """Return the sandbox without the ability to run anything."""

    class Idle:
        images = services.sandbox.images

    return Idle()


def test_the_traceback_shows_what_the_checks_report(lineage: Lineage, services: Services) -> None:
    task = derive_one(lineage, Kind.TRACEBACK, services)
    assert isinstance(task, Task)
    assert "where 39 = total([34, 39])" in task.problem_statement
    assert "never counted" not in task.problem_statement


def test_a_variant_without_what_the_tests_need_is_rejected(lineage: Lineage, services: Services) -> None:
    filler = "We sell many things in many places and write many labels for them every day of the year. " * 3
    hidden_detail = f"Totals are too small\n\n{filler}\n\nOne price must give EUR 12.5, for example.\n"
    derived = derive_one(restate(lineage, hidden_detail, services), Kind.TERSE, services)
    assert isinstance(derived, Rejection), derived
    assert (derived.reason, derived.kind) == ("loses-detail", Kind.TERSE)
    assert "12.5" in derived.detail


def test_a_short_statement_gives_no_terse_one(lineage: Lineage, services: Services) -> None:
    derived = derive_one(restate(lineage, "Totals are too small, one is missing.", services), Kind.TERSE, services)
    assert isinstance(derived, Rejection)
    assert derived.reason == "not-shorter"


# ---------------------------------------------------------------------------------------------- written by a model


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with run_model_server() as server:
        yield server


@contextmanager
def ask_model(services: Services, server: ModelServer, store: Path) -> Iterator[Services]:
    """Yield services whose model is the scripted one, with `--variants model`."""
    update = {"variants": "model", "llm": server.url, "model": "scripted", "store": store}
    settings = replace_values(services.settings, update)
    model = ChatModel(settings.llm, settings.host, first_pause=0.01)
    try:
        yield replace(services, settings=settings, model=model)
    finally:
        model.close()


def answer(text: str) -> ScriptedAnswer:
    return ScriptedAnswer(text=json.dumps({"text": text}))


def test_a_models_statement_takes_the_place_of_the_rules(
    lineage: Lineage, services: Services, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.set_answers(answer("`total([1])` is 0 and should be 1: the first price is not counted."))
    with ask_model(services, model_server, tmp_path) as asking:
        task = derive_one(lineage, Kind.TERSE, asking)
        again = derive_one(lineage, Kind.TERSE, asking)
    assert isinstance(task, Task), task
    assert task.problem_statement == "`total([1])` is 0 and should be 1: the first price is not counted.\n"
    assert task.variant_of == f"{lineage.candidate.name}.bugfix"
    assert again == task
    (request,) = model_server.requests  # the second answer is the stored one
    prompt = "".join(message["content"] for message in request["messages"])
    assert "one to three sentences" in prompt
    assert STATEMENT.strip() in prompt


def test_a_models_statement_is_checked_as_one_by_rules_is(
    lineage: Lineage, services: Services, model_server: ModelServer, tmp_path: Path
) -> None:
    detailed = restate(lineage, STATEMENT + "\nOne price must give EUR 12.5, for example.\n", services)
    scripts = {
        "loses-detail": answer("Totals are too small: the first price of a list is never counted."),
        "not-shorter": answer(STATEMENT + "\nOne price must give EUR 12.5, for example. Please."),
        "no-answer": answer("Too short."),
    }
    for number, (reason, script) in enumerate(scripts.items()):
        model_server.set_answers(script)
        with ask_model(services, model_server, tmp_path / str(number)) as asking:
            derived = derive_one(detailed, Kind.TERSE, asking)
        assert isinstance(derived, Rejection), derived
        assert derived.reason == reason, derived
    model_server.set_answers(answer("As a seller, I want totals of EUR 12.5 counted in full, so that I am paid."))
    with ask_model(services, model_server, tmp_path / "story") as asking:
        story = derive_one(detailed, Kind.USER_STORY, asking)
    assert isinstance(story, Task), story
    assert "user story" in "".join(message["content"] for message in model_server.requests[-1]["messages"])


def test_without_a_model_there_is_no_statement_of_one(lineage: Lineage, services: Services) -> None:
    settings = replace_values(services.settings, {"variants": "model"})
    derived = derive_one(lineage, Kind.TERSE, replace(services, settings=settings))
    assert isinstance(derived, Rejection)
    assert derived.reason == "no-model"
