"""Images of a bundle: loaded from its own layout, and only the one that was certified."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path

import pytest

import exporters
from core.errors import InputError
from exporters.bundle_reader import read_bundle
from exporters.image_archive import check_layout, open_image_archive
from exporters.image_layout import LAYOUT_FOLDER
from exporters.manifest import hash_file
from mergemill.bundles.contents import check_bundle, fetch_image
from taskdb.records import Task
from tests.containers import make_environment_image, make_services
from tests.exporters.bundles import seal
from tests.exporters.tasks import BASE, make_certificate, make_task


@pytest.mark.docker
def test_an_image_is_loaded_from_the_bundle_and_no_other_image_is(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    image = make_environment_image(services, {**BASE, "unique.txt": uuid.uuid4().hex})
    info = services.images.inspect(image)
    assert info is not None
    name = f"mergemill/env:bundle-test-{uuid.uuid4().hex[:12]}"
    services.images.build(image, ["true"], name, limits=services.build_limits(), network=False)
    info = services.images.inspect(name)
    assert info is not None
    made = make_task(services, tmp_path, image=name)
    task = Task(**made.model_dump() | {"image_digest": info.digest})
    out = tmp_path / "out"
    try:
        exporters.export_tasks("swebench", [task], {task.id: make_certificate(task)}, out, services, with_images=True)
        assert check_bundle(out).problems == []
        services.images.remove(name)
        assert services.images.inspect(name) is None
        (bundled,) = read_bundle(out)
        assert fetch_image(bundled, out, services)
        loaded = services.images.inspect(name)
        assert loaded is not None
        assert loaded.digest == info.digest
        with pytest.raises(InputError, match="another image"):
            open_image_archive(out, name, "sha256:" + "0" * 64)
        assert open_image_archive(out, "python:3.11", info.digest) is None
        path = out / LAYOUT_FOLDER / "manifest.json"
        (entry,) = json.loads(path.read_text())
        path.write_text(json.dumps([entry | {"Layers": ["../../../../etc/passwd"]}]))
        seal(out)
        with pytest.raises(InputError, match="another image"):
            open_image_archive(out, name, info.digest)
    finally:
        services.images.remove(name)
        services.images.remove(image)


@pytest.mark.parametrize("attack", ["other-content", "link"])
def test_a_blob_that_is_not_what_its_name_says_makes_a_bundle_unsound(tmp_path: Path, attack: str) -> None:
    blobs = tmp_path / LAYOUT_FOLDER / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    name = hashlib.sha256(b"certified").hexdigest()
    if attack == "link":
        (tmp_path / "real").write_bytes(b"certified")
        (blobs / name).symlink_to(tmp_path / "real")
    else:
        (blobs / name).write_bytes(b"another image")
    path = f"{LAYOUT_FOLDER}/blobs/sha256/{name}"
    (problem,) = check_layout(tmp_path, {path: hash_file(blobs / name)})
    assert path in problem
    (blobs / name).unlink()
    (blobs / name).write_bytes(b"certified")
    assert list(check_layout(tmp_path, {path: hash_file(blobs / name)})) == []
