"""`mergemill export`: images in the bundle, in a registry, or only on this engine."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pytest

from backends.sandbox.docker import DockerSandbox
from exporters.manifest import check_manifest
from tests.cli import run_mergemill
from tests.registry import LocalRegistry
from tests.sample import make_sample

pytestmark = pytest.mark.docker


def test_an_export_holds_the_images_names_their_copies_or_counts_them(registry: LocalRegistry, tmp_path: Path) -> None:
    make_sample(tmp_path / "greet")
    done = run_mergemill("run", "git:greet", "--limit", "1", "--json", cwd=tmp_path)
    assert done.lines[-1]["certified"] == 1, done.stderr

    def export(*words: str) -> str:
        exported = run_mergemill("export", "--format", "harbor", "--out", words[0], *words[1:], cwd=tmp_path)
        assert exported.exit_code == 0, exported.stderr
        return exported.stderr

    assert "1 of 1 images exist only on this engine" in export("plain")
    assert "only on this engine" not in export("whole", "--with-images")
    (entry,) = json.loads((tmp_path / "whole/images/index.json").read_text())["manifests"]
    row = json.loads((tmp_path / "whole/manifest.json").read_text())["tasks"][0]
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == row["image"]
    assert check_manifest(tmp_path / "whole") == []
    assert "only on this engine" not in export("pushed", "--push", f"{registry.host}/ada/")
    reference = json.loads((tmp_path / "pushed/manifest.json").read_text())["tasks"][0]["registry"]
    assert registry.fetch_manifest(reference)["config"]["digest"] == row["image_digest"]
    assert reference in next((tmp_path / "pushed").glob("*/task.toml")).read_text()
    wrong = run_mergemill("export", "--format", "harbor", "--out", "no", "--push", "ada", cwd=tmp_path)
    assert wrong.exit_code == 2
    assert not (tmp_path / "no").exists()


def test_an_engine_without_the_image_gets_it_from_the_bundle_on_import(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    other.mkdir()
    make_sample(home / "greet", {"unique.txt": uuid.uuid4().hex})
    done = run_mergemill("run", "git:greet", "--limit", "1", "--repeats", "1", "--json", cwd=home)
    assert done.lines[-1]["certified"] == 1, done.stderr
    for name, options in (("whole", ["--with-images"]), ("plain", [])):
        assert run_mergemill("export", "--format", "swebench", "--out", name, *options, cwd=home).exit_code == 0
    row = json.loads((home / "whole/manifest.json").read_text())["tasks"][0]
    images = DockerSandbox().images
    shutil.copytree(home / "whole", other / "whole")
    images.remove(row["image"])
    try:
        assert images.inspect(row["image"]) is None
        lacking = run_mergemill("bundle", "import", str(home / "plain"), "--json", cwd=other)
        assert (lacking.exit_code, lacking.json["image"]) == (0, "missing")
        (line,) = lacking.stderr.splitlines()
        assert "the image of 1 task is missing" in line
        unscored = run_mergemill("grade", row["name"], "--gold", cwd=other)
        assert (unscored.exit_code, len(unscored.stderr.splitlines())) == (3, 1)
        loaded = run_mergemill("bundle", "import", "whole", cwd=other)
        assert (loaded.exit_code, loaded.stdout) == (0, "1 task in whole, 0 new\n"), loaded.stderr
        assert "images of 1 task were loaded" in loaded.stderr
        info = images.inspect(row["image"])
        assert info is not None
        assert info.digest == row["image_digest"]
        assert run_mergemill("grade", row["name"], "--gold", "--json", cwd=other).json["value"] == 1.0
    finally:
        images.remove(row["image"])
