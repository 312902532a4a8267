"""Tasks' images in a registry: pushed, remembered, fetched where they lack, named by exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.services import Services
from mergemill.errors import InputError, Transient, UsageError
from mergemill.images.copies import checked_registry, copies_of, push, wanted
from mergemill.images.fetching import fetching
from taskdb import queries
from taskdb.chains import Finished
from taskdb.image_queries import copies
from taskdb.images import ImageCopy
from taskdb.lineage import Lineage
from taskdb.records import Certificate, Stage, Task
from taskdb.store import Store
from tests import records
from tests.boxes import make_services
from tests.cli import mergemill
from tests.mergemill.engine import TinyEngine
from tests.registry import Registry, tiny_image
from tests.sample import make_sample
from verifiers import certify


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(tmp_path)
    yield engine
    engine.close()


def certified(engine: TinyEngine, store: Store, number: int) -> Task:
    """A certified task whose image is a tiny one of this engine."""
    image = engine.image("env", f"greet{number}")
    info = engine.sandbox.image(image)
    assert info is not None
    pull = records.pull_request(number)
    candidate = records.candidate(pull)
    environment = records.environment(candidate, image=image, image_digest=info.digest)
    verification = records.verification(environment)
    task = records.task(verification, candidate, image=image, image_digest=info.digest)
    store.mined((pull, candidate, 0.1))
    made = {
        Stage.BUILD: environment, Stage.VERIFY: verification, Stage.DERIVE: task,
        Stage.CERTIFY: records.certificate(task, image_digest=info.digest),
    }  # fmt: skip
    for stage, record in made.items():
        store.finish(Finished(stage=stage, result=record, source=pull.source, name=pull.name, seconds=1.0))  # type: ignore[arg-type]
    return task


def services_of(engine: TinyEngine, store: Store) -> Services:
    services = make_services(engine.folder)
    return fetching(services, store)


def push_all(engine: TinyEngine, store: Store, registry: Registry) -> None:
    images = wanted(queries.load_tasks(store, queries.Filters(status="certified")))
    for _, copy in push(engine.sandbox, images, f"{registry.host}/ada", lambda: "2024-05-01T12:00:00+00:00"):
        store.add(copy)  # type: ignore[arg-type]


@pytest.mark.docker
def test_images_are_pushed_remembered_and_pulled_by_the_command_line(
    engine: TinyEngine, registry: Registry, tmp_path: Path
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        one, two = certified(engine, store, 1), certified(engine, store, 2)
        engine.sandbox.remove_image(two.image)
        said = mergemill("images", "push", "--registry", f"{registry.host}/ada/tasks/", "--json", cwd=tmp_path)
        rows = {row["image"]: row for row in said.lines}
        assert said.code == 3  # the second is not here; the first is pushed all the same
        assert (rows[one.image]["status"], rows[one.image]["tasks"]) == ("pushed", [one.name])
        assert (rows[two.image]["status"], rows[two.image]["registry"]) == ("failed", None)
        reference = rows[one.image]["registry"]
        assert registry.manifest(reference)["config"]["digest"] == one.image_digest
        assert reference.startswith(f"{registry.host}/ada/tasks/env@sha256:")
        assert {image: found[0].reference for image, found in copies(store).items()} == {one.image: reference}

        assert "no registry has it" in mergemill("grade", two.name, "--noop", cwd=tmp_path).err

        engine.sandbox.remove_image(one.image)
        said = mergemill("images", "pull", "--json", cwd=tmp_path)
        assert [row["status"] for row in said.lines] == ["pulled", "failed"]
        assert engine.sandbox.image(one.image).digest == one.image_digest  # type: ignore[union-attr]


@pytest.mark.docker
def test_an_image_that_is_not_the_one_certified_is_pushed_only_when_that_is_asked_for(
    engine: TinyEngine, registry: Registry
) -> None:
    with Store.open(f"sqlite:///{engine.folder}/mergemill.db") as store:
        task = certified(engine, store, 1)
        engine.sandbox.remove_image(task.image)
        tiny_image(engine.sandbox, task.image)
        images = wanted(queries.load_tasks(store, queries.Filters()))
        [(moved, error)] = push(engine.sandbox, images, f"{registry.host}/ada", lambda: "")
        [(all_the_same, copy)] = push(engine.sandbox, images, f"{registry.host}/ada", lambda: "", rebuilt=True)
        chosen = queries.load_tasks(store, queries.Filters())
    assert moved.status == "failed"
    assert isinstance(error, InputError)
    assert "not the one certified" in str(error)
    assert all_the_same.status == "pushed"
    assert isinstance(copy, ImageCopy)
    certificates = {one.id: certificate for one, certificate in chosen if certificate}
    assert copies_of([task], certificates, {task.image: (copy,)}) == {}  # no export names it


@pytest.mark.docker
def test_an_image_that_lacks_is_fetched_when_it_is_asked_for(engine: TinyEngine, registry: Registry) -> None:
    with Store.open(f"sqlite:///{engine.folder}/mergemill.db") as store:
        tasks = [certified(engine, store, number) for number in (1, 2)]
        push_all(engine, store, registry)
        services = services_of(engine, store)
    for task in tasks:
        engine.sandbox.remove_image(task.image)
    assert services.sandbox.image(tasks[0].image).digest == tasks[0].image_digest  # type: ignore[union-attr]
    with services.sandbox.layers(tasks[1].image) as layers:
        assert len(list(layers)) == 1
    assert services.sandbox.image("mergemill/env:of-nobody") is None


@pytest.mark.docker
def test_a_registry_that_does_not_answer_gives_no_verdict_on_a_task(engine: TinyEngine, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "short-lived")
    registry.start()
    with Store.open(f"sqlite:///{engine.folder}/mergemill.db") as store:
        task = certified(engine, store, 1)
        push_all(engine, store, registry)
        services = services_of(engine, store)
    registry.stop()
    engine.sandbox.remove_image(task.image)
    candidate = records.candidate(records.pull_request(1))
    with pytest.raises(Transient, match="does not answer"):
        certify(Lineage(candidate=candidate, task=task), services)


def test_exports_name_the_copy_of_the_very_image_that_was_certified() -> None:
    pull = records.pull_request()
    task = records.task(records.verification(records.environment(records.candidate(pull))), records.candidate(pull))
    certificate: Certificate = records.certificate(task, image_digest="sha256:proved")

    def copy(digest: str, reference: str) -> ImageCopy:
        return ImageCopy(image=task.image, image_digest=digest, reference=reference, at="")

    known = {task.image: (copy("sha256:rebuilt", "r/env@sha256:2"), copy("sha256:proved", "r/env@sha256:1"))}
    assert copies_of([task], {task.id: certificate}, known) == {task.image: "r/env@sha256:1"}
    assert copies_of([task], {}, known) == {}


@pytest.mark.parametrize("word", ["localhost:5000", "localhost/ada", "registry.example.org/a/b-c", "host:443/x/"])
def test_a_registry_is_a_host_and_perhaps_a_prefix(word: str) -> None:
    assert checked_registry(word) == word.rstrip("/")


@pytest.mark.parametrize(
    "word", ["", "ada", "ada/tasks", "https://r.example.org/a", "r.example.org/Ada", "r.example.org/a:b"]
)
def test_what_is_no_registry_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        checked_registry(word)


@pytest.mark.docker
@pytest.mark.slow
def test_a_task_is_graded_certified_and_exported_where_it_was_never_built(registry: Registry, tmp_path: Path) -> None:
    make_sample(tmp_path / "greet", {"ORIGIN": str(tmp_path)})  # so no other test has the same image
    said = mergemill("run", "git:greet", "--limit", "1", "--json", cwd=tmp_path)
    assert said.lines[-1]["certified"] == 1, said.err
    pushed = mergemill("images", "push", "--registry", f"{registry.host}/ada", "--json", cwd=tmp_path).lines
    engine = TinyEngine(tmp_path)
    engine.sandbox.remove_image(pushed[0]["image"])
    assert engine.sandbox.image(pushed[0]["image"]) is None
    graded = mergemill("grade", pushed[0]["tasks"][0], "--gold", "--json", cwd=tmp_path)
    assert graded.json["value"] == 1.0, graded.err
    assert mergemill("export", "--format", "harbor", "--out", "bundle", cwd=tmp_path).code == 0
    manifest = json.loads((tmp_path / "bundle/manifest.json").read_text())
    assert manifest["tasks"][0]["registry"] == pushed[0]["registry"]
    assert pushed[0]["registry"] in next((tmp_path / "bundle").glob("*/task.toml")).read_text()
    engine.sandbox.remove_image(pushed[0]["image"])
    audited = mergemill("audit", "bundle", "--json", cwd=tmp_path)
    assert [row.get("skipped") for row in audited.lines[1:]] == [None], audited.err
    engine.sandbox.remove_image(pushed[0]["image"])
