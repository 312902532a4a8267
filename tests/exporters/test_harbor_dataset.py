"""Data-set files of Harbor bundles."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import exporters
from core.errors import UsageError
from mergemill.bundles.contents import check_bundle
from tests.containers import make_services
from tests.exporters.tasks import make_task


def compute_harbor_digest(folder: Path) -> str:
    """Return the digest as Harbor's publisher computes it (0.24)."""
    digest = hashlib.sha256()
    for name in sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{name}\0{hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def test_registry_and_data_set_name_every_task_with_its_digest(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    tasks = [make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")]
    exporters.export_tasks("harbor", tasks, {}, tmp_path / "out", services)
    dataset = tomllib.loads((tmp_path / "out/dataset.toml").read_text())
    (registry,) = json.loads((tmp_path / "out/registry.json").read_text())
    names = ["ada__words-1.bugfix", "ada__words-2.bugfix"]
    assert [(row["name"], row["path"]) for row in registry["tasks"]] == [(f"mergemill/{name}", name) for name in names]
    assert [(row["name"], row["digest"]) for row in dataset["tasks"]] == [
        (f"mergemill/{name}", f"sha256:{compute_harbor_digest(tmp_path / 'out' / name)}") for name in names
    ]
    assert registry["version"] == dataset["dataset"]["version"]
    assert not (tmp_path / "out/data").exists()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harbor")
    services = make_services(folder)
    tasks = [make_task(services, folder), make_task(services, folder, name="ada__words-2")]
    exporters.export_tasks("harbor", tasks, {}, folder / "out", services)
    assert check_bundle(folder / "out").problems == []
    return folder / "out"


FIRST = '{"name": "mergemill/ada__words-1.bugfix", "path": "ada__words-1.bugfix"}'


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("dataset.toml", 'digest = "sha256:', 'digest = "sha256:00', "the digest of mergemill/ada__words-1.bugfix is"),
        ("dataset.toml", "ada__words-1", "ada__words-3", "'mergemill/ada__words-3.bugfix' is no task of the manifest"),
        ("dataset.toml", "ada__words-1", "ada__words-3", "mergemill/ada__words-1.bugfix is missing"),
        (
            "dataset.toml",
            "ada__words-1",
            "ada__words-2",
            "'mergemill/ada__words-2.bugfix' is no task of the manifest, or",
        ),
        ("dataset.toml", "digest = ", "digest = = ", "it cannot be read: 'Invalid value"),
        ("registry.json", f"{FIRST},", "", "mergemill/ada__words-1.bugfix is missing"),
        ("registry.json", '"path": "ada', '"path": "../ada', "is '../ada__words-1.bugfix', not 'ada__words-1.bugfix'"),
        ("registry.json", '"path": "ada', '"path": "/ada', "is '/ada__words-1.bugfix', not"),
        ("registry.json", FIRST, "17", "'None' is no task of the manifest"),
        ("registry.json", FIRST, f'{{"name": "{"x" * 9000}"}}', "x' is no task of the manifest"),
        ("registry.json", '"tasks": [', '"works": [', "it cannot be read: \"'tasks'\""),
        ("registry.json", "[\n {", "[0, {", "it cannot be read: 'too many values"),
        ("registry.json", "[\n {", "[" * 100_000, "it cannot be read: "),
        ("registry.json", "[\n {", "\udcff[{", "it cannot be read: "),
    ],
)
def test_a_file_of_the_data_set_that_differs_from_the_tasks_is_a_problem(
    bundle: Path, tmp_path: Path, file: str, old: str, new: str, problem: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    content = (copy / file).read_text()
    assert old in content
    (copy / file).write_bytes(content.replace(old, new, 1).encode(errors="surrogateescape"))
    listed = json.loads((copy / "manifest.json").read_bytes())
    listed["files"][file] = hashlib.sha256((copy / file).read_bytes()).hexdigest()
    (copy / "manifest.json").write_text(json.dumps(listed))
    check = check_bundle(copy)
    assert not check.ok
    assert any(line.startswith(f"{file}: ") and problem in line for line in check.problems), check.problems
    assert max(map(len, check.problems)) < 400


def test_a_bundle_without_a_registry_is_a_problem(bundle: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    listed = json.loads((copy / "manifest.json").read_bytes())
    del listed["files"]["registry.json"]
    (copy / "manifest.json").write_text(json.dumps(listed))
    (copy / "registry.json").unlink()
    [problem] = check_bundle(copy).problems
    assert problem.startswith("registry.json: it cannot be read: ")


def test_parquet_holds_the_folders_of_the_tasks_by_split(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    first, two = make_task(services, tmp_path), make_task(services, tmp_path, name="ada__words-2")
    facts = {two.id: {"split": "test"}}
    exporters.export_tasks("harbor", [first, two], {}, tmp_path / "out", services, facts=facts, with_parquet=True)
    for name, split in (("ada__words-1.bugfix", "train"), ("ada__words-2.bugfix", "test")):
        (row,) = pq.read_table(tmp_path / f"out/data/{split}-00000-of-00001.parquet").to_pylist()
        assert row["path"] == name
        with tarfile.open(fileobj=io.BytesIO(row["task_binary"])) as tar:
            tar.extractall(tmp_path / "unpacked" / name)  # noqa: S202 - packed above
        assert compute_harbor_digest(tmp_path / "unpacked" / name) == compute_harbor_digest(tmp_path / "out" / name)


def test_only_harbor_has_the_parquet_option(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    with pytest.raises(UsageError, match="no parquet option"):
        exporters.export_tasks(
            "swebench", [make_task(services, tmp_path)], {}, tmp_path / "out", services, with_parquet=True
        )
