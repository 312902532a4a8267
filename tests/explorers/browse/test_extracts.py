"""Extracts of a model: with quotes that stand in the page, sent back otherwise, and passages where none is usable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backends.llm.meter import UsageMeter
from explorers.browse.extracts import ExtractedPages
from explorers.corpora.corpus import CorpusReader
from tests.cli import run_mergemill
from tests.explorers.corpus import open_pages
from tests.explorers.gates.subjects import FOUNDED, PAGES
from tests.explorers.models import ScriptedRoles, open_models
from tests.explorers.scripted import write_turn
from tests.samplers.scripted_model import ScriptedModel

GOOD = {"extract": "Ada Moravec founded it.", "quotes": [FOUNDED]}
WRONG = {"extract": "Ada Moravec founded it.", "quotes": [FOUNDED.replace("1976", "1967")]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusReader:
    return open_pages(PAGES, tmp_path_factory.mktemp("extracts"))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([GOOD], ["Ada Moravec founded it.", FOUNDED]),
        ([WRONG, GOOD], ["Ada Moravec founded it.", FOUNDED]),
        ([{"extract": "", "quotes": []}], ["the page has nothing about it"]),
        ([WRONG], [FOUNDED]),
        ([{"extract": "no quotes"}], [FOUNDED]),
    ],
)
def test_extracts_have_quotes_of_the_page(
    corpus: CorpusReader, answers: list[Any], expected: list[str], tmp_path: Path
) -> None:
    roles = ScriptedRoles({"extract": lambda _given, _number, request: answers[min(request.place, len(answers) - 1)]})
    page = corpus.find_page("club")
    assert page is not None
    with open_models(roles, tmp_path) as models:
        pages = ExtractedPages(corpus=corpus, models=models, meter=UsageMeter())
        assert pages.find_passages(page, "founded", 1) == expected


def test_the_command_extracts_with_a_model(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "club.txt").write_text(f"Club\n\n{FOUNDED}")
    assert run_mergemill("explore", "corpus", "c", "in", cwd=tmp_path).exit_code == 0
    words = ("explore", "browse", "c", "club.txt", "founded", "--json", "--model", "scripted", "--llm")
    with ScriptedModel(lambda _: write_turn(GOOD)) as model:
        done = run_mergemill(*words, model.url, cwd=tmp_path)
        assert done.json["passages"] == ["Ada Moravec founded it.", FOUNDED]
        assert run_mergemill(*words, model.url, cwd=tmp_path).json == done.json
        assert model.paid == 1
