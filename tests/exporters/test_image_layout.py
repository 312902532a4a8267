"""Images in a bundle: an OCI layout with every layer once, which the engine loads again."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from core.errors import InputError
from exporters.image_layout import write_image_layout
from tests.mergemill.engine import TinyEngine

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[TinyEngine]:
    engine = TinyEngine(tmp_path)
    yield engine
    engine.close()


def find_digests(sandbox: DockerSandbox, *names: str) -> dict[str, str]:
    """Return name -> id of images."""
    images = {name: sandbox.images.inspect(name) for name in names}
    return {name: info.digest for name, info in images.items() if info is not None}


def test_images_are_written_once_per_layer_and_loaded_again(engine: TinyEngine, tmp_path: Path) -> None:
    below = engine.image("base", "below")
    first, two = engine.image("env", "one", under=below), engine.image("env", "two", under=below)
    images = find_digests(engine.sandbox, first, two)
    write_image_layout(images, tmp_path / "images", engine.sandbox.images)
    write_image_layout(images, tmp_path / "again", engine.sandbox.images)
    blobs = sorted((tmp_path / "images/blobs/sha256").iterdir())
    assert [hashlib.sha256(blob.read_bytes()).hexdigest() for blob in blobs] == [blob.name for blob in blobs]
    assert len(blobs) == 3 + 2 + 2  # layers, configurations, manifests
    index = json.loads((tmp_path / "images/index.json").read_text())
    refs = [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in index["manifests"]]
    assert refs == sorted([first, two])
    for path in (tmp_path / "images").rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(tmp_path / "images")).read_bytes() == path.read_bytes()
    for name in (first, two, below):
        engine.sandbox.images.remove(name)
    assert find_digests(engine.sandbox, first, two) == {}
    command = ["bash", "-c", 'tar -C "$1" -c . | docker load', "bash", tmp_path / "images"]
    subprocess.run(command, check=True, capture_output=True)
    assert find_digests(engine.sandbox, first, two) == images


def test_only_the_certified_image_is_written(engine: TinyEngine, tmp_path: Path) -> None:
    name = engine.image("env", "one")
    with pytest.raises(InputError, match="is not the certified image"):
        write_image_layout({name: "sha256:" + "0" * 64}, tmp_path / "images", engine.sandbox.images)
    with pytest.raises(InputError, match="is not here"):
        write_image_layout({"mergemill/env:nobody": "sha256:0"}, tmp_path / "images", engine.sandbox.images)
