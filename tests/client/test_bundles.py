"""The client on real bundles: every format, folders of splits, and parquet files without a manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import mergemill_client
import pytest

import exporters
from exporters.manifest import MANIFEST_NAME
from tests.containers import make_services
from tests.exporters.tasks import make_task
from tests.taskdb.listing import make_row


def export(out: Path, format_name: str, folder: Path) -> dict[str, Any]:
    """Write a bundle of one task and return the task's row."""
    services = make_services(folder / "store")
    task = make_task(services, folder)
    row = make_row(8, id=task.id, name=task.name, repo=task.repo, difficulty='{"m/s": {"c": 1, "n": 4}}')
    exporters.export_tasks(format_name, [task], {}, out, services, facts={task.id: row})
    return row


@pytest.mark.parametrize("format_name", exporters.FORMATS)
def test_a_bundle_of_any_format_has_the_rows_of_its_tasks(format_name: str, tmp_path: Path) -> None:
    row = export(tmp_path / "out", format_name, tmp_path)
    with mergemill_client.open(tmp_path / "out") as bundle:
        (selected,) = bundle.tasks(repo="ADA/words", changed_lines=(16, 16), difficulty="m/s:0.2:0.3")
        assert bundle.count(difficulty="m/s:0.3:") == 0
    assert selected == row | {"difficulty": {"m/s": {"c": 1, "n": 4}}, "added_at": None}


def test_tasks_of_an_earlier_bundle_have_tests_of_people(tmp_path: Path) -> None:
    row = export(tmp_path / "out", "swebench", tmp_path)
    manifest = json.loads((tmp_path / "out" / MANIFEST_NAME).read_text())
    for task in manifest["tasks"]:
        del task["row"]["tests"]
    (tmp_path / "out" / MANIFEST_NAME).write_text(json.dumps(manifest))
    with mergemill_client.open(tmp_path / "out") as bundle:
        assert [(task["name"], task["tests"]) for task in bundle.tasks()] == [(row["name"], "human")]


def test_a_folder_of_splits_is_read_as_one(tmp_path: Path) -> None:
    names = {export(tmp_path / "out" / side, "swebench", tmp_path / side)["name"] for side in ("train", "test")}
    with mergemill_client.open(tmp_path / "out") as bundle:
        assert {row["name"] for row in bundle.tasks()} == names
        assert bundle.count() == 2


def test_parquet_files_without_a_manifest_and_duckdb_give_the_same(tmp_path: Path) -> None:
    row = export(tmp_path / "out", "huggingface", tmp_path)
    (tmp_path / "out" / MANIFEST_NAME).unlink()
    with mergemill_client.open(tmp_path / "out") as data:
        (selected,) = data.tasks(language="python", strength=(0, 1))
    assert (selected["name"], selected["strength"], selected["family"]) == (row["name"], row["strength"], row["family"])
    files = str(tmp_path / "out" / "**" / "*.parquet")
    counted = duckdb.sql(f"SELECT instance_id, strength FROM read_parquet('{files}')").fetchall()  # noqa: S608
    assert counted == [(row["name"], row["strength"])]


def test_a_bundle_without_rows_is_named(tmp_path: Path) -> None:
    manifest = {"kind": "mergemill-bundle", "tasks": [{"name": "a", "id": "b"}], "files": {}}
    (tmp_path / MANIFEST_NAME).write_text(json.dumps(manifest))
    with pytest.raises(mergemill_client.ClientError, match="has no rows of tasks"):
        mergemill_client.open(tmp_path)
    (tmp_path / MANIFEST_NAME).write_text("{}")
    with pytest.raises(mergemill_client.ClientError, match="is not mergemill's"):
        mergemill_client.open(tmp_path)
