"""`mergemill audit` on bundles and on words that mean nothing, as people type it; sound tasks: test_whole.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import exporters
from tests.boxes import make_services
from tests.cli import mergemill
from tests.exporters.tasks import make_task, make_task_with_image

FORMATS = list(exporters.FORMATS)


def bundle(folder: Path, form: str) -> Path:
    """A bundle of one task of which there is no image."""
    services = make_services(folder)
    task = make_task(services, folder, image="mergemill-test/nowhere:1")
    exporters.export(form, [task], {}, folder / "out", services)
    return folder / "out"


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a-changed-file": (lambda out: _append(next(out.rglob("eval.sh"))), "changed"),
    "a-missing-file": (lambda out: next(out.rglob("gold.patch")).unlink(), "missing"),
    "a-file-more": (lambda out: (out / "extra.txt").write_text("x"), "not of the bundle"),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_bundle_that_is_not_what_its_manifest_says_is_refused(name: str, form: str, tmp_path: Path) -> None:
    fault, what = FAULTS[name]
    fault(bundle(tmp_path, form))
    done = mergemill("audit", "out", "--json", cwd=tmp_path, DOCKER_HOST="unix:///nowhere")
    assert done.code == 3
    assert (done.json["clean"], done.json["tasks"], done.json["format"]) == (False, 1, form)
    assert [(row["kind"], row["what"]) for row in done.json["findings"]] == [("file", what)]
    assert "1 findings" in done.err
    assert what in mergemill("audit", "out", cwd=tmp_path).out


def test_a_record_that_the_manifest_does_not_name_is_found_though_its_hash_was_corrected(tmp_path: Path) -> None:
    out = bundle(tmp_path, "harbor")
    record = next(out.rglob("record.json"))
    record.write_text(record.read_text().replace("ada/words", "eve/words"))
    told = json.loads((out / "manifest.json").read_text())
    told["files"][record.relative_to(out).as_posix()] = exporters.manifest.file_sha256(record)
    (out / "manifest.json").write_text(json.dumps(told))
    done = mergemill("audit", "out", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "is not the task of which the manifest has the id" in done.err


@pytest.mark.docker
@pytest.mark.parametrize("form", FORMATS)
def test_a_task_whose_image_is_elsewhere_is_named_and_left_alone(form: str, tmp_path: Path) -> None:
    bundle(tmp_path, form)
    files, task = mergemill("audit", "out", "--json", cwd=tmp_path).lines
    assert (files["clean"], task["task"], task["clean"], task["probes"]) == (True, "ada__words-1.bugfix", False, [])
    assert task["skipped"] == "the image mergemill-test/nowhere:1 is not here"
    assert mergemill("audit", "out/manifest.json", cwd=tmp_path).code == 0


@pytest.mark.docker
def test_a_bundle_needs_neither_database_nor_clone(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path / "clone")
    exporters.export("swebench", [task], {}, tmp_path / "out", services)
    (tmp_path / "clone" / "ada__words-1").rename(tmp_path / "gone")
    done = mergemill("audit", "out", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    told = done.lines[1]
    assert (told["clean"], told["findings"], told["strength"]["share"]) == (True, [], 1.0)
    assert {row["name"]: row["value"] for row in told["probes"]}["source-forges"] == 0.0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nothing-like-it"], "there is no database"),
        (["./nowhere"], "there is no folder nowhere (audit takes a task or the folder of a bundle)"),
        (["empty"], "empty holds no manifest.json of mergemill's"),
        (["torn"], "torn holds no manifest.json of mergemill's"),
    ],
)
def test_a_word_that_means_nothing_gives_one_line(words: list[str], line: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "manifest.json").write_text('{"kind": "mergemill-bundle", "files": [')
    done = mergemill("audit", *words, cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert line in done.err
