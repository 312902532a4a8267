"""Exports hold one task at a time, in every format, and one that ends early leaves the old bundle."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import exporters
from core.errors import InputError
from exporters import manifest
from exporters.item import ExportItem
from taskdb.records import Task
from tests.containers import make_services
from tests.exporters.tasks import make_certificate, make_task

NUMBER = 9
MOST_ALIVE = 2
"""Tasks: of the item that is written, and of the one before it."""


@pytest.mark.parametrize("with_parquet", [False, True])
@pytest.mark.parametrize("format_name", exporters.FORMATS)
def test_no_format_keeps_the_items_that_it_has_written(format_name: str, with_parquet: bool, tmp_path: Path) -> None:
    if with_parquet and exporters.FORMATS[format_name].write_parquet is None:
        return
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    references: list[weakref.ref[Task]] = []
    alive: list[int] = []

    def make_items() -> Iterator[ExportItem]:
        for number in range(1, NUMBER + 1):
            named = task.model_copy(update={"name": f"ada__words-{number}.bugfix"})
            references.append(weakref.ref(named))  # formats get copies of the item that hold the same task
            item = ExportItem(task=named, certificate=make_certificate(named))
            del named
            yield item
            del item
            alive.append(sum(reference() is not None for reference in references))

    out = tmp_path / "out"
    items = exporters.export_items(
        format_name, make_items(), out, services, with_parquet=with_parquet, load_lineage=lambda _: []
    )
    assert len(references) == len(items.bundle.tasks) == NUMBER
    assert max(alive) <= MOST_ALIVE
    content = manifest.read_manifest(out)
    assert content is not None
    assert [row["name"] for row in content["tasks"]] == [f"ada__words-{n}.bugfix" for n in range(1, NUMBER + 1)]
    assert manifest.check_manifest(out) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError("a record is damaged")], ids=["interrupt", "error"])
@pytest.mark.parametrize("format_name", exporters.FORMATS)
def test_an_export_that_ends_early_leaves_the_old_bundle_whole(
    format_name: str, error: type[BaseException] | BaseException, tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    out = tmp_path / "deep" / "out"
    old = exporters.export_tasks(format_name, [task], {}, out, services)

    def make_items() -> Iterator[ExportItem]:
        yield ExportItem(task=task, certificate=None)
        yield ExportItem(task=task.model_copy(update={"name": "ada__words-2.bugfix"}), certificate=None)
        raise error

    with pytest.raises(type(error) if isinstance(error, BaseException) else error):
        exporters.export_items(format_name, make_items(), out, services)
    assert manifest.check_manifest(out) == []
    assert manifest.hash_file(out / "manifest.json") == old.manifest_sha256
    assert [path.name for path in out.parent.iterdir()] == ["out"]
