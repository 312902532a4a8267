"""Folders of bundles: card, manifest, what is replaced and what is not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from core.errors import InputError
from tests.worlds.bundles.making import bundle_world, write_examples
from tests.worlds.programs import make_scenario, make_world
from worlds.bundles.formats import FORMATS
from worlds.bundles.writer import write_bundle


@pytest.mark.parametrize("name", FORMATS)
def test_the_card_counts_worlds_models_gates_and_licences(name: str, tmp_path: Path) -> None:
    counts = write_examples(name, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    front = yaml.safe_load(text.split("---")[1])
    assert (front["environment"], front["license"]) == ("synthetic", "apache-2.0")
    body = text.split("---", 2)[2]
    assert "\nenvironment: synthetic\n" in body
    assert f"{counts.rows} " in body
    assert "of 6 scenarios in 3 worlds" in body
    assert "| `library_loans` | 2 | 16 | 6 | 2 | written | - | Apache-2.0 | the tests |" in body
    assert "| oracle | - | 6 |" in body
    assert "| `library_loans` | queries 0, changes 1 |" in body
    assert "Licences: Apache-2.0 (3)." in body
    if FORMATS[name].data_files:
        assert (tmp_path / "out" / front["configs"][0]["data_files"][0]["path"]).is_file()


def test_what_is_not_certified_and_what_is_left_out_is_on_the_card(tmp_path: Path) -> None:
    unsolved = replace(make_scenario(solution=None), name="store.second")
    world = bundle_world(make_world(), [make_scenario(), unsolved], certified=False, license_id="NOASSERTION")
    out = tmp_path / "out"
    counts = write_bundle([world], out, FORMATS["sharegpt"], left_out={"checks-blind": 2}, files={"a.txt": b"a"})
    assert (counts.rows, counts.scenarios) == (1, 1)
    assert dict(counts.left_out) == {"checks-blind": 2, "no solution is known": 1}
    text = (out / "README.md").read_text()
    assert "| `store` | 2 | 6 | 2 | 1 | written | - | NOASSERTION | **no** |" in text
    assert "Not certified, and exported because that was asked for: store." in text
    assert "- 2 scenarios left out: checks-blind\n- 1 scenario left out: no solution is known\n" in text
    assert json.loads((out / "train.jsonl").read_text())["certified"] is False
    envscaler = write_bundle([world], tmp_path / "e", FORMATS["envscaler"], left_out={}, files={})
    assert envscaler.scenarios == 2
    assert len(json.loads((tmp_path / "e" / "trajectories.json").read_text())) == 1


def test_the_manifest_has_the_hash_of_every_file(tmp_path: Path) -> None:
    write_examples("harbor", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {"manifest.json", *manifest["files"]}
    for path, digest in manifest["files"].items():
        assert hashlib.sha256((tmp_path / "out" / path).read_bytes()).hexdigest() == digest
    assert (manifest["format"], manifest["environment"], manifest["scenarios"]) == ("harbor", "synthetic", 6)
    assert [world["name"] for world in manifest["worlds"]] == ["clinic_rota", "library_loans", "parcel_depot"]


def test_a_bundle_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_examples("alpaca", out)
    first = (out / "manifest.json").read_bytes()
    write_examples("alpaca", out)
    assert (out / "manifest.json").read_bytes() == first
    write_examples("messages", out)
    assert not (out / "llamafactory.yaml").exists()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no bundle of worlds"):
        write_examples("alpaca", out)
    assert (out / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        write_examples("alpaca", tmp_path / "file")
