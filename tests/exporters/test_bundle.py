"""Writing, replacing and checking bundles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import exporters
from core.errors import InputError, UsageError
from exporters import manifest
from exporters.tree import read_tree
from taskdb.records import Kind, Task
from taskdb.records.oracles import ReviewOracle
from tests.containers import make_services
from tests.exporters.tasks import make_certificate, make_task


def test_an_unknown_format_is_a_usage_error_that_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'nonsense'") as caught:
        exporters.export_tasks("nonsense", [], {}, tmp_path / "out", make_services(tmp_path))
    assert ", ".join(exporters.FORMATS) in caught.value.advice


def test_nothing_to_export_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tasks"):
        exporters.export_tasks("harbor", [], {}, tmp_path / "out", make_services(tmp_path))


@pytest.mark.parametrize("format_name", exporters.FORMATS)
def test_equal_tasks_give_an_equal_bundle_and_do_not_rewrite_an_existing_one(format_name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    certificates = {task.id: make_certificate(task)}
    first = exporters.export_tasks(format_name, [task, two], certificates, tmp_path / "a", services)
    other = exporters.export_tasks(format_name, [two, task], certificates, tmp_path / "deep" / "b", services)
    assert (first.id, first.manifest_sha256) == (other.id, other.manifest_sha256)
    assert manifest.check_manifest(tmp_path / "a") == []
    inode = (tmp_path / "a").stat().st_ino
    again = exporters.export_tasks(format_name, [task, two], certificates, tmp_path / "a", services)
    assert again.id == first.id
    assert (tmp_path / "a").stat().st_ino == inode
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_the_manifest_has_source_and_certificate_of_a_task(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    certificate = make_certificate(task)
    exporters.export_tasks("swebench", [task], {task.id: certificate}, tmp_path / "out", services)
    manifest_content = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest_content["format"] == "swebench"
    assert (
        manifest_content["tasks"][0]
        | {
            "name": task.name,
            "id": task.id,
            "source": task.source,
            "license": "MIT",
            "image": task.image,
            "image_digest": task.image_digest,
            "certificate": certificate.id,
            "eval_script": task.eval_script,
        }
        == manifest_content["tasks"][0]
    )


def test_an_existing_bundle_is_replaced_by_another(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    first, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    exporters.export_tasks("harbor", [first], {}, tmp_path / "out", services)
    exporters.export_tasks("harbor", [two], {}, tmp_path / "out", services)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["ada__words-2.bugfix"]
    assert manifest.check_manifest(tmp_path / "out") == []


def test_files_that_are_not_part_of_the_bundle_are_not_deleted(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    first, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    exporters.export_tasks("harbor", [first], {}, tmp_path / "out", services)
    (tmp_path / "out" / "results.txt").write_text("mine")
    exporters.export_tasks("harbor", [first], {}, tmp_path / "out", services)
    with pytest.raises(InputError, match=r"results\.txt"):
        exporters.export_tasks("harbor", [two], {}, tmp_path / "out", services)
    assert (tmp_path / "out" / "results.txt").read_text() == "mine"


@pytest.mark.parametrize("what", ["a file", "a folder with files"])
def test_other_files_in_the_target_folder_are_an_input_error(what: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    out = tmp_path / "out"
    if what == "a file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="is not"):
        exporters.export_tasks("harbor", [task], {}, out, services)
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_the_check_names_files_that_are_missing_changed_or_foreign(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    exporters.export_tasks("swebench", [make_task(services, tmp_path)], {}, tmp_path / "out", services)
    (tmp_path / "out" / "tasks.jsonl").write_text("")
    (tmp_path / "out" / "predictions.noop.jsonl").unlink()
    (tmp_path / "out" / "new").write_text("")
    assert manifest.check_manifest(tmp_path / "out") == [
        "missing: predictions.noop.jsonl",
        "changed: tasks.jsonl",
        "not part of the bundle: new",
    ]
    assert manifest.check_manifest(tmp_path / "nowhere") != []


def test_leftovers_of_a_killed_export_are_removed(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    (tmp_path / ".out.partial").mkdir()
    (tmp_path / ".out.partial" / "incomplete").write_text("")
    exporters.export_tasks("harbor", [make_task(services, tmp_path)], {}, tmp_path / "out", services)
    assert manifest.check_manifest(tmp_path / "out") == []
    assert not (tmp_path / ".out.partial").exists()


def test_tasks_that_are_not_graded_by_lists_of_tests_alone_are_not_exported(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    form = ReviewOracle(target="clean", files=services.artifacts.put_text("{}"), diff=None, defects=())
    other = Task(**task.model_dump() | {"kind": Kind.REVIEW, "oracle": form, "name": "ada__words-1.review-1"})
    bundle = exporters.export_tasks("swebench", [task, other], {}, tmp_path / "out", services)
    assert bundle.tasks == (task.id,)
    with pytest.raises(InputError, match="review is not graded by lists of tests"):
        exporters.export_tasks("swebench", [other], {}, tmp_path / "none", services)


def test_the_tree_of_a_task_with_a_setup_patch_is_the_patched_one(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    setup = b"diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# words\n+# Words\n"
    begun = Task(**task.model_dump() | {"setup_patch": services.artifacts.put(setup)})
    exporters.export_tasks("harbor", [begun], {}, tmp_path / "out", services)
    (packed,) = (tmp_path / "out").rglob("tree.tar.gz")
    assert dict(read_tree(packed))["README.md"] == b"# Words\n"
