"""How bundles come to lie in their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import exporters
from exporters import manifest
from exporters.tree import read_tree
from mergemill.errors import InputError, UsageError
from taskdb.oracles import Review
from taskdb.records import Kind, Task
from tests.boxes import make_services
from tests.exporters.tasks import make_certificate, make_task


def test_an_unknown_format_is_a_usage_error_that_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'nonsense'") as caught:
        exporters.export("nonsense", [], {}, tmp_path / "out", make_services(tmp_path))
    assert "swebench, harbor" in caught.value.advice


def test_nothing_to_export_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tasks"):
        exporters.export("harbor", [], {}, tmp_path / "out", make_services(tmp_path))


@pytest.mark.parametrize("format_name", exporters.FORMATS)
def test_the_same_tasks_make_the_same_bundle_and_leave_one_that_is_there_alone(
    format_name: str, tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    one, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    certificates = {one.id: make_certificate(one)}
    first = exporters.export(format_name, [one, two], certificates, tmp_path / "a", services)
    other = exporters.export(format_name, [two, one], certificates, tmp_path / "deep" / "b", services)
    assert (first.id, first.manifest_sha256) == (other.id, other.manifest_sha256)
    assert manifest.check(tmp_path / "a") == []
    inode = (tmp_path / "a").stat().st_ino
    again = exporters.export(format_name, [one, two], certificates, tmp_path / "a", services)
    assert again.id == first.id
    assert (tmp_path / "a").stat().st_ino == inode
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_the_manifest_tells_where_a_task_came_from_and_what_certifies_it(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    certificate = make_certificate(task)
    exporters.export("swebench", [task], {task.id: certificate}, tmp_path / "out", services)
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["format"] == "swebench"
    assert told["tasks"][0] | {
        "name": task.name, "id": task.id, "image": task.image, "image_digest": task.image_digest,
        "certificate": certificate.id, "eval_script": task.eval_script,
    } == told["tasks"][0]  # fmt: skip


def test_a_bundle_of_ours_is_replaced_by_another(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    one, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    exporters.export("harbor", [one], {}, tmp_path / "out", services)
    exporters.export("harbor", [two], {}, tmp_path / "out", services)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["ada__words-2.bugfix"]
    assert manifest.check(tmp_path / "out") == []


def test_what_somebody_else_left_in_a_bundle_is_not_deleted(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    one, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    exporters.export("harbor", [one], {}, tmp_path / "out", services)
    (tmp_path / "out" / "results.txt").write_text("mine")
    exporters.export("harbor", [one], {}, tmp_path / "out", services)
    with pytest.raises(InputError, match=r"results\.txt"):
        exporters.export("harbor", [two], {}, tmp_path / "out", services)
    assert (tmp_path / "out" / "results.txt").read_text() == "mine"


@pytest.mark.parametrize("what", ["a file", "a folder with files"])
def test_anything_else_in_the_way_is_an_input_error(what: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    out = tmp_path / "out"
    if what == "a file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="is not"):
        exporters.export("harbor", [task], {}, out, services)
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_the_check_names_files_that_are_missing_changed_or_foreign(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    exporters.export("swebench", [make_task(services, tmp_path)], {}, tmp_path / "out", services)
    (tmp_path / "out" / "tasks.jsonl").write_text("")
    (tmp_path / "out" / "predictions.noop.jsonl").unlink()
    (tmp_path / "out" / "new").write_text("")
    assert manifest.check(tmp_path / "out") == [
        "missing: predictions.noop.jsonl", "changed: tasks.jsonl", "not of the bundle: new",
    ]  # fmt: skip
    assert manifest.check(tmp_path / "nowhere") != []


def test_what_a_killed_export_left_is_cleared_away(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    (tmp_path / ".out.half").mkdir()
    (tmp_path / ".out.half" / "torn").write_text("")
    exporters.export("harbor", [make_task(services, tmp_path)], {}, tmp_path / "out", services)
    assert manifest.check(tmp_path / "out") == []
    assert not (tmp_path / ".out.half").exists()


def test_what_is_graded_by_more_than_lists_of_tests_stays_here(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    form = Review(target="clean", files=services.artifacts.put_text("{}"), diff=None, defects=())
    other = Task(**task.model_dump() | {"kind": Kind.REVIEW, "oracle": form, "name": "ada__words-1.review-1"})
    bundle = exporters.export("swebench", [task, other], {}, tmp_path / "out", services)
    assert bundle.tasks == (task.id,)
    with pytest.raises(InputError, match="holds no tasks of kind review"):
        exporters.export("swebench", [other], {}, tmp_path / "none", services)


def test_the_tree_of_a_task_with_a_setup_patch_is_the_patched_one(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    setup = b"diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# words\n+# Words\n"
    begun = Task(**task.model_dump() | {"setup_patch": services.artifacts.put(setup)})
    exporters.export("harbor", [begun], {}, tmp_path / "out", services)
    (packed,) = (tmp_path / "out").rglob("tree.tar.gz")
    assert dict(read_tree(packed))["README.md"] == b"# Words\n"
