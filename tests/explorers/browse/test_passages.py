"""Passages are verbatim, cover the page, and those that fit a query come in the order of the page."""

from __future__ import annotations

from pathlib import Path

from explorers.browse.passages import PASSAGE_CHARS, split_passages
from tests.explorers.corpus import make_page, open_pages

LONG = " ".join(f"Sentence number {number} has some words." for number in range(60))
TEXT = f"Title\n\nThe club was founded in 1976.\n\n{LONG}\n\n第一句话。第二句话。\n\nThe end."


def test_passages_are_verbatim_and_cover_the_text() -> None:
    passages = split_passages(TEXT)
    assert all(TEXT[passage.start :].startswith(passage.text) for passage in passages)
    assert "".join("".join(passage.text.split()) for passage in passages) == "".join(TEXT.split())
    assert max(len(passage.text) for passage in passages) <= PASSAGE_CHARS
    assert [passage.text for passage in passages[:2]] == ["Title", "The club was founded in 1976."]


def test_a_sentence_longer_than_a_passage_stays_whole() -> None:
    text = "word " * 400
    assert [passage.text for passage in split_passages(text)] == [text.strip()]


def test_the_best_passages_come_in_the_order_of_the_page(tmp_path: Path) -> None:
    page = make_page("a", TEXT)
    corpus = open_pages([page, make_page("b", "The end of other words.")], tmp_path)
    assert corpus.find_passages(page, "when was the club founded", 1) == ["The club was founded in 1976."]
    assert corpus.find_passages(page, "第二句話 founded", 2) == [
        "The club was founded in 1976.",
        "第一句话。第二句话。",
    ]
    assert corpus.find_passages(page, "nothing-of-it", 2) == ["Title", "The club was founded in 1976."]
    [hit, *_] = corpus.search("founded club", 1)
    assert hit.snippet == "The club was founded in 1976."
