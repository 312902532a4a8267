"""Gates that programs decide: for each reason two bad questions and two just within."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.settings.explore import ExploreSettings
from explorers.corpora.corpus import CorpusReader
from explorers.gates import texts
from explorers.gates.benchmarks import Benchmarks, hash_pair, read_benchmarks
from explorers.gates.subject import GateFindings, GateSubject
from tests.explorers.corpus import make_page, open_pages
from tests.explorers.gates.subjects import PAGES, make_clue, make_subject


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusReader:
    return open_pages(PAGES, tmp_path_factory.mktemp("gates"))


def check(gate: Any, subject: GateSubject) -> str | None:
    failure = gate(subject, GateFindings())
    return None if failure is None else failure.reason.value


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": "Bela Nadasdy"}, "unsupported-answer"),
        ({"aliases": ("Countess Ada",)}, "unsupported-answer"),
        ({"answer": "林清远", "answer_page": "zh"}, None),  # the page has the traditional characters
        ({"answer": "1,200", "answer_page": "town"}, None),  # the page has 1200
    ],
)
def test_answers_are_in_quoted_pages(corpus: CorpusReader, changes: dict[str, Any], expected: str | None) -> None:
    assert check(texts.check_answer_support, make_subject(corpus, **changes)) == expected


@pytest.mark.parametrize(
    ("quote", "page", "expected"),
    [
        ("The club was founded in 1975 by Ada Moravec.", "club", "unsupported-clue"),
        ("The club was founded in 1976 by Ada Moravec.", "book", "unsupported-clue"),
        ("The club  was founded\nin 1976 by Ada Moravec.", "club", None),
        ("國家隊由林清遠", "zh", None),
    ],
)
def test_quotes_are_verbatim(corpus: CorpusReader, quote: str, page: str, expected: str | None) -> None:
    subject = make_subject(corpus, clues=(make_clue("a clue", page=page, quote=quote),))
    assert check(texts.check_quotes, subject) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": "Ada Morava"}, "answer-changed"),
        ({"answer": "Alder", "first_answer": "Alder"}, "answer-changed"),  # no fact of the walk is about it
        ({"answer": "the ADA MORAVEC", "first_answer": "Ada Moravec"}, None),
        ({"answer": "3 May 1976", "first_answer": "1976-05-03", "objects": ("May 3, 1976",)}, None),
    ],
)
def test_the_answer_is_that_of_the_walk(corpus: CorpusReader, changes: dict[str, Any], expected: str | None) -> None:
    assert check(texts.check_answer_kept, make_subject(corpus, **changes)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who currently chairs the club?", "time-dependent"),
        ("目前谁领导这个俱乐部？", "time-dependent"),
        ("Who, as of March 2020, currently chaired the club?", None),
        ("Who measured the current of the river and the electric current?", None),
    ],
)
def test_questions_do_not_depend_on_the_day(corpus: CorpusReader, text: str, expected: str | None) -> None:
    assert check(texts.check_time, make_subject(corpus, text=text)) == expected


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("Who is 林清遠?", {"answer": "林清远"}, "leak"),  # in traditional characters
        ("Who won two Heron Prizes?", {"hidden": ("Heron Prize", "an award")}, "leak"),  # by a plural
        ("Who, like ada  moravec, rowed?", {}, "leak"),
        ("Who rowed on 3 May 1976?", {"hidden": ("1976", "the 1970s")}, "leak"),
        ("Which alderman rowed?", {"hidden": ("Alder", "a town")}, None),
        ("Who rowed in the 1970s, one of 19760 people?", {"hidden": ("1976", "the 1970s")}, None),
        ("谁在20世纪70年代划船？", {"hidden": ("70", "数十")}, None),
    ],
)
def test_hidden_names_are_not_in_the_question(
    corpus: CorpusReader, text: str, changes: dict[str, Any], expected: str | None
) -> None:
    assert check(texts.check_leaks, make_subject(corpus, text=text, **changes)) == expected


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> CorpusReader:
    """300 pages, of which z1 to z6 have falling ranks for `zebra`: the limits are 3, 1 % of the pages."""
    pages = [make_page(f"z{rank}", "zebra " * (20 - rank) + "other " * rank) for rank in range(1, 7)]
    pages += [make_page(f"p{number}", f"filler number {number}") for number in range(294)]
    return open_pages(pages, tmp_path_factory.mktemp("ranked"))


@pytest.mark.parametrize(
    ("page", "text", "clue", "expected"),
    [
        ("z3", "zebra", "nothing here", "direct-hit"),
        ("z3", "nothing here", "zebra", "direct-hit"),
        ("z4", "zebra", "zebra", None),
        ("p7", "zebra", "zebra", None),
    ],
)
def test_no_search_leads_straight_to_the_answer(
    ranked: CorpusReader, page: str, text: str, clue: str, expected: str | None
) -> None:
    findings = GateFindings()
    subject = make_subject(ranked, answer_page=page, text=text, clues=(make_clue(clue, page=page, quote="zebra"),))
    failure = texts.check_ranks(subject, findings)
    assert (failure and failure.reason.value) == expected
    if expected is None:
        assert findings.entry_rank == (4 if page == "z4" else None)


WORDS = "which founder of a club in a small town by a river wrote a book about glass and won two prizes for it"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (WORDS.upper(), "near-duplicate"),
        (WORDS.replace("two prizes", "three prizes"), "near-duplicate"),  # 17 of 23 runs
        (WORDS.replace("town", "city").replace("two prizes", "three prizes"), None),  # 14 of 26
        ("which founder of a club wrote a book", None),
    ],
)
def test_questions_differ_from_those_of_other_walks(corpus: CorpusReader, other: str, expected: str | None) -> None:
    subject = make_subject(corpus, text=WORDS, others=[("other.0", other)])
    assert check(texts.check_duplicates, subject) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"question": "so " + " ".join(WORDS.split()[2:15]) + " it is"}, "contaminated"),
        ({"sha256": hash_pair(WORDS, "Ada Moravec")}, "contaminated"),
        ({"question": "so " + " ".join(WORDS.split()[2:14]) + " it is"}, None),  # 12 words
        ({"sha256": hash_pair(WORDS, "Ada Morava")}, None),
    ],
)
def test_questions_share_nothing_with_benchmarks(
    corpus: CorpusReader, row: dict[str, str], expected: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "benchmarks.jsonl"
    path.write_text(json.dumps(row) + "\n")
    benchmarks = read_benchmarks(path, corpus.tokenizer)
    subject = make_subject(corpus, text=WORDS, benchmarks=benchmarks)
    assert check(texts.check_benchmarks, subject) == expected


@pytest.mark.parametrize("line", ["{", '{"answer": "x"}', '{"question": "x", "answer": 3}', "[]"])
def test_a_bad_row_of_a_benchmark_is_named(corpus: CorpusReader, line: str, tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(InputError, match=r"benchmarks\.jsonl:2: "):
        read_benchmarks(path, corpus.tokenizer)


def test_defaults_are_those_of_the_page() -> None:
    options = ExploreSettings()
    assert (options.rounds, options.samples, options.closed_samples, options.easy_turns) == (5, 8, 4, 5)
    assert (options.question_rank, options.clue_rank, Benchmarks().pairs) == (10, 3, frozenset())
