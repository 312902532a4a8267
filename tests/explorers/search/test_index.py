"""BM25 as Lucene has it: the order of a reference of twenty lines, the same bytes in another process."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.errors import InputError
from explorers.corpora.corpus import INDEX_NAME, PAGES_NAME, CorpusReader, write_corpus
from explorers.search.tokens import Tokenizer
from tests.explorers.corpus import make_page, open_pages
from tests.explorers.planted import CHAINS, make_pages


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> CorpusReader:
    return open_pages(make_pages(), tmp_path_factory.mktemp("planted"))


class Reference:
    """BM25 with Lucene's idf, in the plainest way."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.counts = [Counter(tokenizer.tokenize(text)) for text in texts]
        self.mean = sum(count.total() for count in self.counts) / len(texts)
        self.pages = Counter(token for count in self.counts for token in count)

    def find_best(self, query: str, n: int) -> list[int]:
        scores = [self.score(self.tokenizer.tokenize(query), count) for count in self.counts]
        order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
        return [at for at in order if scores[at] > 0][:n]

    def score(self, query: Sequence[str], count: Counter[str]) -> float:
        total = 0.0
        for token in (token for token in query if token in self.pages):
            idf = math.log(1 + (len(self.counts) - self.pages[token] + 0.5) / (self.pages[token] + 0.5))
            total += idf * (count[token] / (1.2 * (1 - 0.75 + 0.75 * count.total() / self.mean) + count[token]))
        return total


def make_queries() -> list[str]:
    draw = random.Random(3)
    clues = [fact.clue for chain in CHAINS for fact in chain.facts]
    words = [word for page in make_pages() for word in page.text.split()]
    return draw.sample(clues, 25) + [" ".join(draw.sample(words, 4)) for _ in range(25)]


def test_the_order_is_that_of_the_reference_on_fifty_queries(planted: CorpusReader) -> None:
    pages = list(planted)
    reference = Reference([f"{page.title}\n{page.text}" for page in pages], planted.tokenizer)
    queries = make_queries()
    assert len(queries) == 50
    n_hits = 0
    for query in queries:
        hits = [planted.find_position(hit.id) for hit in planted.search(query, 20)]
        assert hits == reference.find_best(query, 20), query
        n_hits += len(hits)
    assert n_hits > 500
    for query in queries[:10]:
        order = reference.find_best(query, len(pages))
        for rank, position in enumerate(order[:25], 1):
            assert planted.find_rank(query, pages[position].id) == rank


def test_two_processes_give_the_same_bytes(planted: CorpusReader, tmp_path: Path) -> None:
    program = f"""
import json, sys
from pathlib import Path
from tests.explorers.corpus import open_pages
from tests.explorers.planted import make_pages
corpus = open_pages(make_pages(), Path({str(tmp_path)!r}))
print(json.dumps([[hit.to_json() for hit in corpus.search(query, 10)] for query in json.loads(sys.argv[1])]))
"""
    queries = make_queries()
    expected = json.dumps([[hit.to_json() for hit in planted.search(query, 10)] for query in queries])
    command = [sys.executable, "-c", program, json.dumps(queries)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "5"})
    assert done.stdout == expected + "\n"


def test_equal_pages_are_in_the_order_of_their_ids_whatever_the_limit(tmp_path: Path) -> None:
    corpus = open_pages([make_page(f"p{number:02}", "the same words") for number in range(30)], tmp_path)
    assert [hit.id for hit in corpus.search("words", 7)] == [f"p{number:02}" for number in range(7)]
    assert corpus.find_rank("words", "p06") == 7
    assert corpus.find_rank("absent", "p06") is None
    assert corpus.search("absent", 5) == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("巴西國家足球隊成立於1914年", "国家队"),
        ("《潮汐之书》", "潮汐之書"),
        ("Ｃａｆé ＡＢＣ", "café abc"),
        ("three books about running", "book run"),
        ("在北京的会议", "北京"),
    ],
)
def test_forms_that_mean_the_same_are_found(text: str, query: str, tmp_path: Path) -> None:
    corpus = open_pages([make_page("a", text), make_page("b", "other things, 其他")], tmp_path)
    assert [hit.id for hit in corpus.search(query, 1)] == ["a"]


def test_a_single_chinese_character_stands_for_itself_and_runs_are_pairs() -> None:
    assert Tokenizer().tokenize("我 v2.1 足球隊 snake_case") == ["我", "v2", "1", "足球", "球队", "snake", "case"]


def test_an_index_of_other_pages_is_refused(tmp_path: Path) -> None:
    first = write_corpus([make_page("a", "one page")], tmp_path, Tokenizer())
    second = write_corpus([make_page("a", "one page"), make_page("b", "two")], tmp_path, Tokenizer())
    named = {"language": "english", "pages_sha256": first.pages_sha256, "index_sha256": first.index_sha256}
    for path in (first.folder / INDEX_NAME).iterdir():
        path.write_bytes((second.folder / INDEX_NAME / path.name).read_bytes())
    with pytest.raises(InputError, match="not that of the corpus"):
        CorpusReader(tmp_path, **named)
    with pytest.raises(InputError, match="of other pages"):
        CorpusReader(tmp_path, **{**named, "index_sha256": second.index_sha256})
    (second.folder / PAGES_NAME).write_bytes((second.folder / PAGES_NAME).read_bytes().replace(b"two", b"tow"))
    with pytest.raises(InputError, match="have changed"):
        CorpusReader(tmp_path, language="english", pages_sha256=second.pages_sha256, index_sha256=second.index_sha256)
