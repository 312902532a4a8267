"""Images go to a registry and come back from it: by digest, with docker's own credentials, and never as other bytes."""

from __future__ import annotations

import threading
import time
import uuid

import pytest

from backends.sandbox.docker import DockerSandbox
from mergemill.errors import InputError, Transient
from tests.registry import Registry, tiny_image

pytestmark = pytest.mark.docker


@pytest.fixture
def image(sandbox):
    """A tiny image, which is removed afterwards."""
    name = tiny_image(sandbox)
    yield name
    sandbox.remove_image(name)


@pytest.fixture
def locked(tmp_path):
    """A registry that asks for a password."""
    made = Registry(tmp_path / "locked", locked=True)
    made.start()
    yield made
    made.stop()


def pushed(sandbox: DockerSandbox, registry: Registry, image: str) -> str:
    """Push an image; the reference by digest under which it can be had."""
    target = f"{registry.host}/ada/env:{image.rpartition(':')[2]}"
    return f"{target.rpartition(':')[0]}@{sandbox.push(image, target)}"


def names_of(sandbox: DockerSandbox, digest: str) -> list[str]:
    """All names that the engine has for an image."""
    found = next((entry for entry in sandbox._client().images() if entry["Id"] == digest), {})
    return sorted([*(found.get("RepoTags") or []), *(found.get("RepoDigests") or [])])


def test_what_was_pushed_comes_back_as_the_same_image_under_its_own_name_alone(sandbox, registry, image):
    before = sandbox.image(image)
    reference = pushed(sandbox, registry, image)
    assert registry.manifest(reference)["config"]["digest"] == before.digest
    assert names_of(sandbox, before.digest) == [image]
    assert sandbox.registry_has(reference)

    sandbox.remove_image(image)
    assert sandbox.image(before.digest) is None
    assert sandbox.fetch(reference, image) == before
    assert names_of(sandbox, before.digest) == [image]


def test_an_image_that_somebody_has_under_the_registrys_name_keeps_that_name(sandbox, registry, image):
    digest = sandbox.image(image).digest
    reference = pushed(sandbox, registry, image)
    sandbox.remove_image(image)
    repository, _, manifest = reference.partition("@")
    list(sandbox._client().pull(repository, manifest, stream=True))
    assert sandbox.fetch(reference, image).digest == digest
    assert reference in names_of(sandbox, digest)
    sandbox.remove_image(reference)


def test_what_the_registry_does_not_have_is_none(sandbox, registry, image):
    reference = pushed(sandbox, registry, image)
    sandbox.remove_image(image)
    for absent in (reference[:-4] + "0000", reference.replace("/env@", "/other@")):
        assert not sandbox.registry_has(absent)
        assert sandbox.fetch(absent, image) is None
    registry.delete(reference)
    assert not sandbox.registry_has(reference)
    assert sandbox.fetch(reference, image) is None


@pytest.mark.parametrize("part", ["layer", "manifest"])
def test_other_bytes_under_the_digest_are_refused(sandbox, registry, image, part):
    reference, other = pushed(sandbox, registry, image), tiny_image(sandbox)
    others = registry.blob(pushed(sandbox, registry, other).partition("@")[2]).read_bytes()
    for name in (image, other):
        sandbox.remove_image(name)
    if part == "layer":
        file = registry.blob(registry.manifest(reference)["layers"][0]["digest"])
        file.write_bytes(file.read_bytes()[:-9] + b"tampered!")
    else:
        registry.blob(reference.partition("@")[2]).write_bytes(others)
    with pytest.raises(InputError, match="verification failed"):
        sandbox.fetch(reference, image)
    assert sandbox.image(image) is None


def test_a_registry_that_does_not_answer_is_transient(sandbox, tmp_path, image):
    registry = Registry(tmp_path / "short-lived")
    registry.start()
    reference = pushed(sandbox, registry, image)
    registry.stop()
    for use in (
        lambda: sandbox.push(image, f"{registry.host}/ada/env:one"),
        lambda: sandbox.fetch(reference, f"mergemill-test/absent:{uuid.uuid4().hex}"),
        lambda: sandbox.registry_has(reference),
    ):
        with pytest.raises(Transient, match="does not answer"):
            use()
    assert names_of(sandbox, sandbox.image(image).digest) == [image]


def test_dockers_own_credentials_open_a_registry_and_without_them_it_stays_shut(sandbox, locked, image, monkeypatch):
    with pytest.raises(InputError, match="does not let us in") as raised:
        pushed(sandbox, locked, image)
    assert raised.value.advice == f"docker login {locked.host}"

    monkeypatch.setenv("DOCKER_CONFIG", str(locked.home))
    knowing = DockerSandbox()
    reference = pushed(knowing, locked, image)
    knowing.remove_image(image)
    monkeypatch.delenv("DOCKER_CONFIG")
    for shut in (sandbox.registry_has, lambda it: sandbox.fetch(it, image)):
        with pytest.raises(InputError, match="does not let us in"):
            shut(reference)
    monkeypatch.setenv("DOCKER_CONFIG", str(locked.home))
    assert knowing.registry_has(reference)
    assert knowing.fetch(reference, image) is not None


def test_threads_that_need_one_image_fetch_it_once(sandbox, registry, image):
    digest = sandbox.image(image).digest
    reference = pushed(sandbox, registry, image)
    sandbox.remove_image(image)
    found = []
    threads = [threading.Thread(target=lambda: found.append(DockerSandbox().fetch(reference, image))) for _ in range(4)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.digest for one in found] == [digest] * 4
    assert names_of(sandbox, digest) == [image]
    assert time.monotonic() - started < 20
