"""Tasks' images in a registry: pushed, remembered, fetched where they lack, named by exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox.image_registry import parse_registry
from backends.services import Services
from core.errors import InputError, Transient, UsageError
from mergemill.execution.images.copies import collect_images, find_certified_copy, push_images
from mergemill.execution.images.fetch import enable_fetching
from taskdb.queries import tasks as queries
from taskdb.queries.images import load_image_copies
from taskdb.records import Certificate, Stage, Task
from taskdb.records.images import ImageCopy
from taskdb.records.lineage import Lineage
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.cli import run_mergemill
from tests.containers import make_services
from tests.mergemill.engine import TinyEngine
from tests.registry import LocalRegistry, make_tiny_image
from tests.sample import make_sample
from verifiers import certify


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(tmp_path)
    yield engine
    engine.close()


def add_certified_task(engine: TinyEngine, store: Store, number: int) -> Task:
    """A certified task whose image is a tiny one of this engine."""
    image = engine.image("env", f"greet{number}")
    info = engine.sandbox.images.inspect(image)
    assert info is not None
    pull = records.make_pull_request(number)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate, image=image, image_digest=info.digest)
    verification = records.make_verification(environment)
    task = records.make_task(verification, candidate, image=image, image_digest=info.digest)
    store.add_mined_changes((pull, candidate, 0.1))
    made = {
        Stage.BUILD: environment,
        Stage.VERIFY: verification,
        Stage.DERIVE: task,
        Stage.CERTIFY: records.make_certificate(task, image_digest=info.digest),
    }
    for stage, record in made.items():
        store.add_stage_results(
            StageResult(stage=stage, result=record, source=pull.source, name=pull.name, seconds=1.0)
        )  # type: ignore[arg-type]
    return task


def make_fetching_services(engine: TinyEngine, store: Store) -> Services:
    services = make_services(engine.folder)
    return enable_fetching(services, store)


def push_all(engine: TinyEngine, store: Store, registry: LocalRegistry) -> None:
    images = collect_images(queries.load_tasks(store, queries.TaskFilters(status="certified")))
    for _, copy in push_images(
        engine.sandbox.images, images, f"{registry.host}/ada", lambda: "2024-05-01T12:00:00+00:00"
    ):
        store.add(copy)  # type: ignore[arg-type]


@pytest.mark.docker
def test_the_command_line_pushes_records_and_pulls_images(
    engine: TinyEngine, registry: LocalRegistry, tmp_path: Path
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        first, two = add_certified_task(engine, store, 1), add_certified_task(engine, store, 2)
        engine.sandbox.images.remove(two.image)
        done = run_mergemill("images", "push", "--registry", f"{registry.host}/ada/tasks/", "--json", cwd=tmp_path)
        rows = {row["image"]: row for row in done.lines}
        assert done.exit_code == 3  # the second is missing; the first is pushed anyway
        assert (rows[first.image]["status"], rows[first.image]["tasks"]) == ("pushed", [first.name])
        assert (rows[two.image]["status"], rows[two.image]["registry"]) == ("failed", None)
        reference = rows[first.image]["registry"]
        assert registry.fetch_manifest(reference)["config"]["digest"] == first.image_digest
        assert reference.startswith(f"{registry.host}/ada/tasks/env@sha256:")
        assert {image: copies[0].reference for image, copies in load_image_copies(store).items()} == {
            first.image: reference
        }

        assert "neither here nor in a registry" in run_mergemill("grade", two.name, "--noop", cwd=tmp_path).stderr

        engine.sandbox.images.remove(first.image)
        done = run_mergemill("images", "pull", "--json", cwd=tmp_path)
        assert [row["status"] for row in done.lines] == ["pulled", "failed"]
        assert engine.sandbox.images.inspect(first.image).digest == first.image_digest  # type: ignore[union-attr]


@pytest.mark.docker
def test_a_rebuilt_image_is_pushed_only_with_the_option(engine: TinyEngine, registry: LocalRegistry) -> None:
    with Store.open(f"sqlite:///{engine.folder}/mergemill.db") as store:
        task = add_certified_task(engine, store, 1)
        engine.sandbox.images.remove(task.image)
        make_tiny_image(engine.sandbox, task.image)
        images = collect_images(queries.load_tasks(store, queries.TaskFilters()))
        [(moved, error)] = push_images(engine.sandbox.images, images, f"{registry.host}/ada", lambda: "")
        [(all_the_same, copy)] = push_images(
            engine.sandbox.images, images, f"{registry.host}/ada", lambda: "", rebuilt=True
        )
        chosen = queries.load_tasks(store, queries.TaskFilters())
    assert moved.status == "failed"
    assert isinstance(error, InputError)
    assert "not the certified image" in str(error)
    assert all_the_same.status == "pushed"
    assert isinstance(copy, ImageCopy)
    certificates = {certified.id: certificate for certified, certificate in chosen}
    assert find_certified_copy(task, certificates[task.id], {task.image: (copy,)}) is None  # no export names it


@pytest.mark.docker
def test_a_missing_image_is_pulled_when_it_is_inspected(engine: TinyEngine, registry: LocalRegistry) -> None:
    with Store.open(f"sqlite:///{engine.folder}/mergemill.db") as store:
        tasks = [add_certified_task(engine, store, number) for number in (1, 2)]
        push_all(engine, store, registry)
        services = make_fetching_services(engine, store)
    for task in tasks:
        engine.sandbox.images.remove(task.image)
    assert services.images.inspect(tasks[0].image).digest == tasks[0].image_digest  # type: ignore[union-attr]
    with services.images.open_layers(tasks[1].image) as layers:
        assert len(list(layers)) == 1
    assert services.images.inspect("mergemill/env:of-nobody") is None


@pytest.mark.docker
def test_a_registry_that_does_not_answer_gives_no_verdict_on_a_task(engine: TinyEngine, tmp_path: Path) -> None:
    registry = LocalRegistry(tmp_path / "short-lived")
    registry.start()
    with Store.open(f"sqlite:///{engine.folder}/mergemill.db") as store:
        task = add_certified_task(engine, store, 1)
        push_all(engine, store, registry)
        services = make_fetching_services(engine, store)
    registry.stop()
    engine.sandbox.images.remove(task.image)
    candidate = records.make_candidate(records.make_pull_request(1))
    with pytest.raises(Transient, match="does not answer"):
        certify(Lineage(candidate=candidate, task=task), services)


def test_exports_reference_the_copy_of_the_certified_image() -> None:
    pull = records.make_pull_request()
    task = records.make_task(
        records.make_verification(records.make_environment(records.make_candidate(pull))), records.make_candidate(pull)
    )
    certificate: Certificate = records.make_certificate(task, image_digest="sha256:proved")

    def copy(digest: str, reference: str) -> ImageCopy:
        return ImageCopy(image=task.image, image_digest=digest, reference=reference, at="")

    known = {task.image: (copy("sha256:rebuilt", "r/env@sha256:2"), copy("sha256:proved", "r/env@sha256:1"))}
    assert find_certified_copy(task, certificate, known) == "r/env@sha256:1"
    assert find_certified_copy(task, None, known) is None


@pytest.mark.parametrize("word", ["localhost:5000", "localhost/ada", "registry.example.org/a/b-c", "host:443/x/"])
def test_a_registry_is_a_host_with_an_optional_prefix(word: str) -> None:
    assert parse_registry(word) == word.rstrip("/")


@pytest.mark.parametrize(
    "word", ["", "ada", "ada/tasks", "https://r.example.org/a", "r.example.org/Ada", "r.example.org/a:b"]
)
def test_an_invalid_registry_is_rejected(word: str) -> None:
    with pytest.raises(UsageError):
        parse_registry(word)


@pytest.mark.docker
@pytest.mark.slow
def test_a_task_is_graded_certified_and_exported_on_another_engine(registry: LocalRegistry, tmp_path: Path) -> None:
    make_sample(tmp_path / "greet", {"ORIGIN": str(tmp_path)})  # so no other test has the same image
    done = run_mergemill("run", "git:greet", "--limit", "1", "--json", cwd=tmp_path)
    assert done.lines[-1]["certified"] == 1, done.stderr
    pushed = run_mergemill("images", "push", "--registry", f"{registry.host}/ada", "--json", cwd=tmp_path).lines
    engine = TinyEngine(tmp_path)
    engine.sandbox.images.remove(pushed[0]["image"])
    assert engine.sandbox.images.inspect(pushed[0]["image"]) is None
    graded = run_mergemill("grade", pushed[0]["tasks"][0], "--gold", "--json", cwd=tmp_path)
    assert graded.json["value"] == 1.0, graded.stderr
    assert run_mergemill("export", "--format", "harbor", "--out", "bundle", cwd=tmp_path).exit_code == 0
    manifest = json.loads((tmp_path / "bundle/manifest.json").read_text())
    assert manifest["tasks"][0]["registry"] == pushed[0]["registry"]
    assert pushed[0]["registry"] in next((tmp_path / "bundle").glob("*/task.toml")).read_text()
    engine.sandbox.images.remove(pushed[0]["image"])
    audited = run_mergemill("audit", "bundle", "--json", cwd=tmp_path)
    assert [row.get("skipped") for row in audited.lines[1:]] == [None], audited.stderr
    engine.sandbox.images.remove(pushed[0]["image"])
