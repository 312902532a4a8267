"""Push and pull by digest, with docker's own credentials, rejecting other bytes."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from backends.sandbox.docker import DockerSandbox
from core.errors import InputError, Transient
from tests.registry import LocalRegistry, make_tiny_image

pytestmark = pytest.mark.docker


@pytest.fixture
def locked(tmp_path):
    """A registry that requires a password."""
    made = LocalRegistry(tmp_path / "locked", locked=True)
    made.start()
    yield made
    made.stop()


def push_image(sandbox: DockerSandbox, registry: LocalRegistry, image: str) -> str:
    """Push an image and return its reference by digest."""
    target = f"{registry.host}/ada/env:{image.rpartition(':')[2]}"
    return f"{target.rpartition(':')[0]}@{sandbox.images.push(image, target)}"


def list_names(sandbox: DockerSandbox, digest: str) -> list[str]:
    """Return all names of an image in the engine."""
    entry = next((entry for entry in sandbox.engine.get_client().images() if entry["Id"] == digest), {})
    return sorted([*(entry.get("RepoTags") or []), *(entry.get("RepoDigests") or [])])


def test_a_pushed_image_is_pulled_as_the_same_image_under_its_own_name_alone(sandbox, registry, image):
    before = sandbox.images.inspect(image)
    reference = push_image(sandbox, registry, image)
    assert registry.fetch_manifest(reference)["config"]["digest"] == before.digest
    assert list_names(sandbox, before.digest) == [image]
    assert sandbox.images.has_remote(reference)

    sandbox.images.remove(image)
    assert sandbox.images.inspect(before.digest) is None
    assert sandbox.images.pull_by_digest(reference, image) == before
    assert list_names(sandbox, before.digest) == [image]


def test_an_image_that_has_the_registrys_name_already_keeps_it(sandbox, registry, image):
    digest = sandbox.images.inspect(image).digest
    reference = push_image(sandbox, registry, image)
    sandbox.images.remove(image)
    repository, _, manifest = reference.partition("@")
    list(sandbox.engine.get_client().pull(repository, manifest, stream=True))
    assert sandbox.images.pull_by_digest(reference, image).digest == digest
    assert reference in list_names(sandbox, digest)
    sandbox.images.remove(reference)


def test_pulling_a_missing_image_returns_none(sandbox, registry, image):
    reference = push_image(sandbox, registry, image)
    sandbox.images.remove(image)
    for absent in (reference[:-4] + "0000", reference.replace("/env@", "/other@")):
        assert not sandbox.images.has_remote(absent)
        assert sandbox.images.pull_by_digest(absent, image) is None
    registry.delete_manifest(reference)
    assert not sandbox.images.has_remote(reference)
    assert sandbox.images.pull_by_digest(reference, image) is None


@pytest.mark.parametrize("part", ["layer", "manifest"])
def test_other_bytes_under_the_digest_are_rejected(sandbox, registry, image, part):
    reference, other = push_image(sandbox, registry, image), make_tiny_image(sandbox)
    others = registry.blob_path(push_image(sandbox, registry, other).partition("@")[2]).read_bytes()
    for name in (image, other):
        sandbox.images.remove(name)
    if part == "layer":
        file = registry.blob_path(registry.fetch_manifest(reference)["layers"][0]["digest"])
        file.write_bytes(file.read_bytes()[:-9] + b"tampered!")
    else:
        registry.blob_path(reference.partition("@")[2]).write_bytes(others)
    with pytest.raises(InputError, match="verification failed"):
        sandbox.images.pull_by_digest(reference, image)
    assert sandbox.images.inspect(image) is None


def test_a_registry_that_does_not_answer_is_transient(sandbox, tmp_path, image):
    registry = LocalRegistry(tmp_path / "short-lived")
    registry.start()
    reference = push_image(sandbox, registry, image)
    registry.stop()
    for use in (
        lambda: sandbox.images.push(image, f"{registry.host}/ada/env:one"),
        lambda: sandbox.images.pull_by_digest(reference, f"mergemill-test/absent:{uuid.uuid4().hex}"),
        lambda: sandbox.images.has_remote(reference),
    ):
        with pytest.raises(Transient, match="does not answer"):
            use()
    assert list_names(sandbox, sandbox.images.inspect(image).digest) == [image]


def test_dockers_own_credentials_are_used_and_required(sandbox, locked, image, monkeypatch):
    with pytest.raises(InputError, match="denies access") as raised:
        push_image(sandbox, locked, image)
    assert raised.value.advice == f"docker login {locked.host}"

    monkeypatch.setenv("DOCKER_CONFIG", str(locked.home))
    knowing = DockerSandbox()
    reference = push_image(knowing, locked, image)
    knowing.images.remove(image)
    monkeypatch.delenv("DOCKER_CONFIG")
    for shut in (sandbox.images.has_remote, lambda it: sandbox.images.pull_by_digest(it, image)):
        with pytest.raises(InputError, match="denies access"):
            shut(reference)
    monkeypatch.setenv("DOCKER_CONFIG", str(locked.home))
    assert knowing.images.has_remote(reference)
    assert knowing.images.pull_by_digest(reference, image) is not None


def test_threads_that_need_one_image_pull_it_once(sandbox, registry, image):
    digest = sandbox.images.inspect(image).digest
    reference = push_image(sandbox, registry, image)
    sandbox.images.remove(image)
    images = []
    threads = [
        threading.Thread(target=lambda: images.append(DockerSandbox().images.pull_by_digest(reference, image)))
        for _ in range(4)
    ]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [info.digest for info in images] == [digest] * 4
    assert list_names(sandbox, digest) == [image]
    assert time.monotonic() - started < 20
