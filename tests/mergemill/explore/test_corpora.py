"""Commands on corpora: what is indexed, how it is found, and that another index is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.explorers.planted import N_PAGES, make_pages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    rows = [json.dumps(page.to_json()) for page in make_pages()]
    (folder / "pages.jsonl").write_text("\n".join([*rows, rows[0], "{"]) + "\n")
    done = run_mergemill("explore", "corpus", "planted", "pages.jsonl", "--json", cwd=folder)
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines() == [
        "mergemill: club-0: a duplicate id: its first page is kept",
        "mergemill: pages.jsonl:302: no JSON",
    ]
    (folder / "corpus.json").write_text(done.stdout)
    return folder


def test_the_record_has_counts_licences_and_hashes(folder: Path) -> None:
    corpus = json.loads((folder / "corpus.json").read_text())
    assert (corpus["pages"], corpus["left_out"], corpus["licenses"]) == (N_PAGES, 2, {"CC0-1.0": N_PAGES})
    again = run_mergemill("explore", "corpus", "planted", "pages.jsonl", "--json", cwd=folder).json
    assert again == corpus
    [row] = run_mergemill("sql", "SELECT name, n_pages, n_left_out FROM corpora", "--json", cwd=folder).lines
    assert row == {"name": "planted", "n_pages": N_PAGES, "n_left_out": 2}


def test_pages_are_found_and_read(folder: Path) -> None:
    [hit] = run_mergemill("explore", "search", "planted", "划船俱樂部創立", "--limit", "1", "--json", cwd=folder).lines
    assert hit["id"] == "club-2"
    page = run_mergemill(
        "explore", "browse", "planted", hit["url"], "创立", "--passages", "1", "--json", cwd=folder
    ).json
    assert page["passages"] == ["安溪镇划船俱乐部由林清远于1958年创立。"]
    whole = run_mergemill("explore", "browse", "planted", "club-2", cwd=folder)
    assert whole.stdout.startswith("title    安溪镇划船俱乐部\n")
    assert run_mergemill("explore", "browse", "planted", "nowhere", cwd=folder).exit_code == 3
    assert run_mergemill("explore", "search", "other", "x", cwd=folder).exit_code == 3
    nothing = run_mergemill("explore", "search", "planted", "xyzzy", cwd=folder)
    assert (nothing.exit_code, nothing.stdout) == (0, "")


def test_bad_input_is_named(folder: Path) -> None:
    unknown = run_mergemill("explore", "corpus", "x", "pages.jsonl", "--language", "klingon", cwd=folder)
    assert (unknown.exit_code, "klingon is unknown" in unknown.stderr) == (2, True)
    missing = run_mergemill("explore", "corpus", "x", "nowhere", cwd=folder)
    assert (missing.exit_code, "no folder" in missing.stderr) == (3, True)
    empty = run_mergemill("explore", "corpus", "x", "changes", cwd=folder)
    assert (empty.exit_code, "has no changes" in empty.stderr) == (3, True)


def test_another_index_is_refused(folder: Path) -> None:
    [index] = (folder / "mergemill-store" / "corpora").glob("*/index/params.index.json")
    text = index.read_text()
    index.write_text(text.replace("0.75", "0.5"))
    done = run_mergemill("explore", "search", "planted", "club", cwd=folder)
    index.write_text(text)
    assert (done.exit_code, "not that of the corpus" in done.stderr) == (3, True)
