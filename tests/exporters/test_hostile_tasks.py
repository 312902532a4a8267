"""Names, statements and patches of a hostile repository in bundles, and a disk that is full in mid-export."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

import exporters
from core.errors import InputError, Transient
from exporters import manifest
from exporters.item import make_folder_name
from taskdb.records import Task
from tests.containers import make_services
from tests.exporters.tasks import make_task

NAMES = ("../../etc/passwd", "a/../b", "..", "-rf", "CON:x", "a\u2028RUN evil", "\u202ex", "x" * 5000, "a..b")
UNUSABLE_NAMES = ("", "a\nRUN evil", "a\0b", "\x1b[31m")
STATEMENT = (
    "<script>alert(1)</script>\n```\n\"\"\"\n'''\n---\n[verifier]\ntimeout_sec = 1\n\x1b[31m\x07\0\u202e\u2028"
    "\nEND_OF_PATCH\nEND_OF_SOLUTION\n{{ 7 * 7 }} ${HOME} $(id) `id`\n"
)


@pytest.mark.parametrize("format_name", exporters.FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_and_statements_stay_data(format_name: str, name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    fields = {"name": name, "problem_statement": STATEMENT, "repo": f"a/{STATEMENT}", "license": STATEMENT}
    task = Task(**make_task(services, tmp_path).model_dump() | fields | {"created_at": STATEMENT})
    out = tmp_path / "deep" / "out"
    exporters.export_tasks(format_name, [task], {}, out, services)
    assert manifest.check_manifest(out) == []
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert not any(path.is_symlink() for path in out.rglob("*"))
    assert json.loads((out / "manifest.json").read_text())["tasks"][0]["name"] == name
    for dockerfile in out.rglob("Dockerfile"):
        assert [line for line in dockerfile.read_text().split("\n") if line.startswith("RUN evil")] == []
    if format_name == "harbor":
        (config,) = (tomllib.loads(path.read_text()) for path in out.glob("*/task.toml"))
        assert config["verifier"]["timeout_sec"] > 1
        assert config["metadata"]["license"] == STATEMENT
        (instruction,) = (path.read_text() for path in out.glob("*/instruction.md"))
        assert STATEMENT.strip() in instruction
        (row,) = tomllib.loads((out / "dataset.toml").read_text())["tasks"]
        ((listed,),) = (registry["tasks"] for registry in json.loads((out / "registry.json").read_text()))
        assert row["name"] == listed["name"] == f"mergemill/{listed['path']}" == config["task"]["name"]
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", listed["path"])
        assert (out / listed["path"]).is_dir()


@pytest.mark.parametrize("name", UNUSABLE_NAMES)
def test_names_with_control_characters_are_not_exported(name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = Task(**make_task(services, tmp_path).model_dump() | {"name": name})
    with pytest.raises(InputError, match="no bundle can hold"):
        exporters.export_tasks("harbor", [task], {}, tmp_path / "out", services)
    assert not (tmp_path / "out").exists()


def test_folder_names_are_distinct_short_and_plain() -> None:
    folders = [make_folder_name(name) for name in (*NAMES, *UNUSABLE_NAMES)]
    assert all(folder and ".." not in folder and len(folder) <= 200 and folder[0] not in "-." for folder in folders)
    assert make_folder_name("x" * 5000) != make_folder_name("x" * 5001)


@pytest.mark.parametrize("name", ["images", "data", "manifest.json"])
def test_a_task_cannot_take_the_place_of_another_part_of_the_bundle(name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = Task(**make_task(services, tmp_path).model_dump() | {"name": name})
    with pytest.raises(InputError, match="no task can be named"):
        exporters.export_tasks("harbor", [task], {}, tmp_path / "out", services)


@pytest.mark.parametrize(
    "text",
    [
        "![x](https://example.org/seen.png)",
        "[MIT](javascript:alert(1))",
        "<script>alert(1)</script>",
        "<img src=https://example.org/seen.png>",
        "a | b | c",
        "MIT |\n\n# Owned\n\n---\nlicense: mit\n---\n",
        "`` ` ``<b>x</b>",
        "www.example.org",
        "\x1b[2J\u202e\u2028\0",
        " ",
        "x" * 10_000,
        "mit\ngated: true",
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_the_card_of_a_data_set_shows_hostile_text_as_text(text: str, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    fields = {"license": text, "language": text, "repo": f"a/{text}", "problem_statement": text}
    task = Task(**make_task(services, tmp_path).model_dump() | fields)
    exporters.export_tasks("huggingface", [task], {}, tmp_path / "out", services)
    _, front, card = (tmp_path / "out" / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(front) == yaml.safe_load(front) | {"license": "other", "language": ["en"]}
    assert "gated" not in yaml.safe_load(front)
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(card)
    assert not {"a", "img", "script", "b"} & set(re.findall(r"<(\w+)", page))
    assert (page.count("<h1>"), page.count("<table>"), page.count("<hr")) == (1, 4, 0)
    assert len(card) < 5000
    assert not set(card) & set("\x1b\u202e\u2028\0")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=320k", "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user cannot mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("format_name", ["harbor", "swebench"])
def test_a_full_disk_in_mid_export_leaves_the_old_bundle_whole(
    format_name: str, small_disk: Path, tmp_path: Path
) -> None:
    services = make_services(tmp_path)
    tasks = [make_task(services, tmp_path, name=f"ada__words-{number}") for number in range(1, 9)]
    out = small_disk / "out"
    exporters.export_tasks(format_name, tasks[:1], {}, out, services)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(Transient, match="No space left"):
        exporters.export_tasks(format_name, tasks, {}, out, services)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert manifest.check_manifest(out) == []
    assert [path.name for path in small_disk.iterdir()] == ["out"]
