"""`mergemill export`: images in the bundle, in a registry, or only on this engine."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from exporters.manifest import check_manifest
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.containers import make_services
from tests.exporters.bundles import add_tasks
from tests.registry import LocalRegistry, make_tiny_image
from tests.sample import make_sample
from tests.taskdb.lineages import make_url

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder with the database of a certified task, whose image no other database has."""
    folder = tmp_path_factory.mktemp("home")
    make_sample(folder / "greet", {"unique.txt": uuid.uuid4().hex})
    done = run_mergemill("run", "git:greet", "--limit", "1", "--repeats", "1", "--json", cwd=folder)
    assert done.lines[-1]["certified"] == 1, done.stderr
    yield folder
    for line in run_mergemill("tasks", "list", "--columns", "image", "--json", cwd=folder).lines:
        DockerSandbox().images.remove(line["image"])


@pytest.fixture(scope="module")
def whole(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle with the image."""
    bundle = tmp_path_factory.mktemp("bundles") / "whole"
    exported = run_mergemill("export", "--format", "swebench", "--out", str(bundle), "--with-images", cwd=home)
    assert exported.exit_code == 0, exported.stderr
    assert "only on this engine" not in exported.stderr
    return bundle


def test_an_export_holds_the_images_or_counts_them(home: Path, whole: Path, tmp_path: Path) -> None:
    words = ("--format", "harbor", "--out", str(tmp_path / "plain"))
    exported = run_mergemill("export", *words, cwd=home)
    assert exported.exit_code == 0, exported.stderr
    assert "1 of 1 images exist only on this engine" in exported.stderr
    (entry,) = json.loads((whole / "images/index.json").read_text())["manifests"]
    row = json.loads((whole / "manifest.json").read_text())["tasks"][0]
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == row["image"]
    assert check_manifest(whole) == []


def test_an_export_names_the_copies_that_it_pushes(registry: LocalRegistry, tmp_path: Path) -> None:
    # Of a few bytes: the engine compresses what it pushes, which takes 15 seconds for the image of a real task.
    sandbox, services = DockerSandbox(), make_services(tmp_path)
    image = make_tiny_image(sandbox)
    info = sandbox.images.inspect(image)
    assert info is not None
    with Store.open(make_url(tmp_path)) as store:
        add_tasks(store, services, tmp_path, count=1, image=image, image_digest=info.digest)
    places = ("--db", make_url(tmp_path), "--store", "store", "--artifacts", "artifacts")

    def export(*words: str) -> CommandResult:
        return run_mergemill("export", "--format", "harbor", "--out", *words, *places, cwd=tmp_path)

    assert "1 of 1 images exist only on this engine" in export("plain").stderr
    done = export("pushed", "--push", f"{registry.host}/ada/")
    assert done.exit_code == 0, done.stderr
    assert "only on this engine" not in done.stderr
    row = json.loads((tmp_path / "pushed/manifest.json").read_text())["tasks"][0]
    assert registry.fetch_manifest(row["registry"])["config"]["digest"] == row["image_digest"] == info.digest
    assert row["registry"] in next((tmp_path / "pushed").glob("*/task.toml")).read_text()
    wrong = export("no", "--push", "ada")
    assert wrong.exit_code == 2
    assert not (tmp_path / "no").exists()
    sandbox.images.remove(image)


def test_an_engine_without_the_image_gets_it_from_the_bundle_to_certify_and_to_import(
    home: Path, whole: Path, tmp_path: Path
) -> None:
    words = ("--format", "swebench", "--out", str(tmp_path / "plain"))
    assert run_mergemill("export", *words, cwd=home).exit_code == 0
    row = json.loads((whole / "manifest.json").read_text())["tasks"][0]
    images = DockerSandbox().images
    images.remove(row["image"])
    assert images.inspect(row["image"]) is None
    lacking = run_mergemill("bundle", "import", "plain", "--json", cwd=tmp_path)
    assert (lacking.exit_code, lacking.json["image"]) == (0, "missing")
    (line,) = lacking.stderr.splitlines()
    assert "the image of 1 task is missing" in line
    unscored = run_mergemill("grade", row["name"], "--gold", cwd=tmp_path)
    assert (unscored.exit_code, len(unscored.stderr.splitlines())) == (3, 1)
    certified = run_mergemill("bundle", "certify", str(whole), "--json", cwd=tmp_path)
    assert certified.exit_code == 0, certified.stderr
    assert (certified.json["gold"], certified.json["noop"], certified.json["problems"]) == (
        [1.0, 1.0, 1.0],
        0.0,
        [],
    )
    assert "the image that was verified" in certified.json["conditions"]
    assert [line for line in certified.json["conditions"] if "MB of /dev/shm" in line]
    images.remove(row["image"])
    loaded = run_mergemill("bundle", "import", str(whole), cwd=tmp_path)
    assert (loaded.exit_code, loaded.stdout) == (0, f"1 task in {whole}, 0 new\n"), loaded.stderr
    assert "images of 1 task were loaded" in loaded.stderr
    info = images.inspect(row["image"])
    assert info is not None
    assert info.digest == row["image_digest"]
    assert run_mergemill("grade", row["name"], "--gold", "--json", cwd=tmp_path).json["value"] == 1.0
