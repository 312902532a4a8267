"""Answers that are rejected before anything runs, and changes that are not mirrored at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backends.git import GitRepository
from backends.llm.client import ChatModel
from backends.sandbox.base import ContainerPool
from backends.services import Services
from backends.tree import CommitTree
from derivers.base import KindRejection, get_next_number
from derivers.mirrored import MirroredTaskBuilder, derive_mirrored
from derivers.mirrored.answer import MirrorAnswer
from derivers.mirrored.gates import AnswerProgress, MirrorObjection, Reason
from derivers.mirrored.matching import ChangeModel, MirrorPlace
from derivers.mirrored.trial import MirrorBase, MirrorTrial, join_licenses
from derivers.mirrored.writer import MirrorWriter, ModelBudget, ProjectView
from mergemill.pipeline.mirrored import MIRROR_GATES
from taskdb.records import Kind, MirrorOrigin, Task, WrittenTests
from taskdb.records.lineage import Lineage
from tests import records
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure
from tests.containers import make_services
from tests.derivers.injected.test_tasks import CART, LABEL, TEST_CART, TEST_LABEL
from tests.derivers.mirrored.answers import GOLD, GOOD, STATEMENT, TESTS, UNREAD, answer, make_donor
from tests.helpers import TinyRepo

SOURCES = {"cart/cart.py": CART.encode(), "cart/label.py": LABEL.encode()}


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> TinyRepo:
    repo = TinyRepo(tmp_path_factory.mktemp("cart"))
    repo.commit("Start", {**SOURCES, "tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL})
    return repo


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return make_services(tmp_path)


@pytest.fixture
def base(repo: TinyRepo, services: Services) -> MirrorBase:
    commit = repo.git("rev-parse", "HEAD")
    candidate = records.make_candidate(records.make_pull_request(repo="ada/cart"), base_commit=commit)
    environment = records.make_environment(candidate)
    repository = GitRepository(repo.path)
    return MirrorBase(
        lineage=Lineage(candidate=candidate, environment=environment),
        services=services,
        repository=repository,
        tree=CommitTree(repository, commit),
        sources=SOURCES,
        passing=frozenset({"tests/test_label.py::test_short"}),
        hideable=frozenset({"tests/test_cart.py", "tests/test_label.py"}),
        files=(),
    )


@pytest.fixture
def place(services: Services) -> MirrorPlace:
    model = ChangeModel(candidate=make_donor(services.artifacts), gold_patch=GOLD.decode(), test_patch=TESTS.decode())
    return MirrorPlace(model=model, paths=("cart/label.py", "cart/cart.py"), similarity=0.5)


def try_answer(base: MirrorBase, place: MirrorPlace, fields: Mapping[str, Any]) -> MirrorObjection:
    trial = MirrorTrial(
        base=base,
        pool=cast("ContainerPool", None),
        gates=MIRROR_GATES,
        place=place,
        answer=MirrorAnswer.model_validate({**GOOD, **fields}),
    )
    result = trial.run(1, "scripted", 1, ())
    assert isinstance(result, MirrorObjection), result
    return result


@pytest.mark.parametrize("wrong", UNREAD)
def test_each_wrong_answer_has_a_reason_of_its_own(wrong: str, base: MirrorBase, place: MirrorPlace) -> None:
    reason, fields = UNREAD[wrong]
    objection = try_answer(base, place, fields)
    assert objection.reason == reason, objection
    assert objection.is_final == (reason == "no-counterpart")


def test_a_word_that_the_project_uses_itself_does_not_name_the_other(base: MirrorBase, place: MirrorPlace) -> None:
    other = place.model.candidate.model_copy(update={"repo": "eve/label", "problem_statement": STATEMENT})
    same_word = replace(place, model=replace(place.model, candidate=other))
    # The next check is the first run, for which there are no containers here.
    with pytest.raises(AttributeError):
        try_answer(base, same_word, {})


# ---------------------------------------------------------------------------------------------- the conversation


@pytest.fixture
def writer(base: MirrorBase, place: MirrorPlace, client: Callable[..., ChatModel], tmp_path: Path) -> MirrorWriter:
    model = client(store=tmp_path / "store")
    project = ProjectView(
        repo="ada/cart",
        plan=records.PLAN,
        sources=SOURCES,
        test_files=["tests/test_label.py"],
        example=("tests/test_label.py", TEST_LABEL),
    )
    return MirrorWriter(place=place, project=project, budget=ModelBudget.start(model, base.services))


def test_the_model_is_shown_the_change_and_the_files(server: ModelServer, writer: MirrorWriter) -> None:
    server.set_answers(answer())
    written = writer.write()
    assert isinstance(written, MirrorAnswer)
    assert written == MirrorAnswer.model_validate(GOOD)
    system, question = (message["content"] for message in server.requests[0]["messages"])
    assert "`eve/till`" in question
    for text in (STATEMENT, GOLD.decode(), TESTS.decode(), CART, LABEL, TEST_LABEL):
        assert text.strip() in question
    assert question.index("`cart/label.py`") < question.index("`cart/cart.py`")
    mark = question.splitlines()[2]
    assert system.count(mark) == 1
    assert question.count(mark) == 14


@pytest.mark.parametrize("text", ["I would cut the labels later.", "", '{"edits": [], "title": 3}', "[]"])
def test_prose_and_other_json_are_no_answer(text: str, server: ModelServer, writer: MirrorWriter) -> None:
    server.set_answers(ScriptedAnswer(text=text))
    objection = writer.write()
    assert isinstance(objection, MirrorObjection)
    assert (objection.reason, objection.is_final) == (Reason.NO_ANSWER, True)
    assert len(server.requests) == 2


def test_a_prompt_that_is_too_long_is_shortened(server: ModelServer, writer: MirrorWriter) -> None:
    too_long = ScriptedFailure(status=400, code="context_length_exceeded", message="maximum context length")
    server.set_answers(too_long, answer())
    assert isinstance(writer.write(), MirrorAnswer)


def test_an_objection_is_sent_back(server: ModelServer, writer: MirrorWriter) -> None:
    server.set_answers(answer(text="short"), answer())
    assert isinstance(writer.write(), MirrorAnswer)
    detail = "the text has 5 characters"
    writer.object(MirrorObjection(reason="statement-length", detail=detail, progress=AnswerProgress.STATEMENT_READ))
    assert isinstance(writer.write(), MirrorAnswer)
    first, again = (message["content"] for message in server.requests[1]["messages"][2:])
    assert '"text": "short"' in first
    assert "statement-length" in again
    assert detail in again


# ------------------------------------------------------------------------------------------ what is not mirrored


def make_task(base: MirrorBase, number: int, mirrored: str) -> Task:
    candidate = base.lineage.candidate
    verification = records.make_verification(records.make_environment(candidate))
    written = WrittenTests(
        patch="", files=(), model="m", prompt="p", attempt=1, transcript="", faults=0, faults_detected=0, variants=0
    )
    mirror = MirrorOrigin(candidate=mirrored, name="eve__till-7", repo="eve/till", license="MIT", written_tests=written)
    task = records.make_task(verification, candidate)
    fields = {"kind": Kind.MIRRORED, "name": f"ada__cart-1.mirrored-{number}", "mirror": mirror}
    return Task(**task.model_dump() | fields)


def test_without_a_model_mirrored_is_refused_in_a_line(base: MirrorBase, services: Services) -> None:
    result = derive_mirrored(base.lineage, services)
    assert result == KindRejection(Reason.NO_MODEL, "mirrored needs --llm")


def test_what_is_wanted_follows_from_the_existing_tasks(
    base: MirrorBase, services: Services, client: Callable[..., ChatModel]
) -> None:
    donor = make_donor(services.artifacts)
    model = client()
    task = make_task(base, 1, donor.id)

    def derive(per_environment: int, *, searched: bool = True, existing: tuple[Task, ...] = (task,)) -> object:
        settings = services.settings.model_copy(
            update={"derive": services.settings.derive.model_copy(update={"per_environment": per_environment})}
        )
        similar = (donor,) if searched else None
        lineage = replace(base.lineage, similar=similar, existing=existing)
        return derive_mirrored(lineage, replace(services, settings=settings, model=model))

    assert derive(2, searched=False) == []
    assert derive(1) == []
    exhausted = derive(2)
    assert isinstance(exhausted, KindRejection)
    assert exhausted.reason == Reason.NO_SIMILAR_CHANGE
    assert isinstance(nothing := derive(0, searched=True), KindRejection)
    assert nothing.reason == Reason.NO_SIMILAR_CHANGE


def test_numbers_follow_those_of_existing_tasks(base: MirrorBase) -> None:
    tasks = tuple(make_task(base, number, "c") for number in (1, 12))
    assert get_next_number(base.lineage) == 1
    assert get_next_number(replace(base.lineage, existing=tasks)) == 13


@pytest.mark.parametrize(
    ("results", "wanted", "made", "tried"),
    [
        ("bbbb", 1, [], 3),
        ("bg", 1, [2], 2),
        ("bgbbg", 2, [2, 5], 5),
        ("gggg", 2, [1, 2], 2),
        ("b", 2, [], 1),
        ("bbbbbbb", 2, [], 6),
    ],
)
def test_as_many_changes_are_tried_as_tasks_are_wanted(
    results: str,
    wanted: int,
    made: list[int],
    tried: int,
    base: MirrorBase,
    place: MirrorPlace,
    client: Callable[..., ChatModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = [replace(place, similarity=float(number)) for number in range(1, len(results) + 1)]
    seen: list[float] = []

    def try_place(_: object, at: MirrorPlace, number: int, __: ModelBudget) -> Task | MirrorObjection:
        seen.append(at.similarity)
        if results[int(at.similarity) - 1] == "g":
            return make_task(base, number, str(int(at.similarity)))
        return MirrorObjection(reason=Reason.NO_ANSWER, detail="", progress=AnswerProgress.ANSWERED)

    monkeypatch.setattr(MirroredTaskBuilder, "_try_place", try_place)
    pool = cast("ContainerPool", None)
    builder = MirroredTaskBuilder(base=base, pool=pool, gates=MIRROR_GATES, model=client())
    tasks = builder.build_tasks(places, wanted)
    assert [task.name for task in tasks] == [f"ada__cart-1.mirrored-{number}" for number in range(1, len(made) + 1)]
    assert [task.mirror.candidate for task in tasks if task.mirror] == [str(place) for place in made]
    assert len(seen) == tried


def test_the_mirrored_change_is_of_the_tasks_family_and_of_its_identity(base: MirrorBase) -> None:
    first, other = make_task(base, 1, "c1"), make_task(base, 1, "c2")
    assert first.family == {base.lineage.candidate.id, "c1"}
    assert first.id != other.id
    plain = Task(**{name: value for name, value in first.model_dump().items() if name != "mirror"})
    assert plain.id == Task(**plain.model_dump() | {"mirror": None}).id


@pytest.mark.parametrize(
    ("own", "other", "joined"),
    [
        ("MIT", "MIT", "MIT"),
        ("MIT", "GPL-3.0-only", "MIT AND GPL-3.0-only"),
        ("MIT OR Apache-2.0", "MIT", "(MIT OR Apache-2.0) AND MIT"),
        ("MIT", "NOASSERTION", "NOASSERTION"),
        ("NOASSERTION", "NOASSERTION", "NOASSERTION"),
    ],
)
def test_a_task_is_under_both_licences(own: str, other: str, joined: str) -> None:
    assert join_licenses(own, other) == joined
