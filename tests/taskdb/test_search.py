"""Search over tasks finds the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from taskdb.queries import tasks as queries
from taskdb.queries.tasks import TaskFilters
from taskdb.records import Stage
from taskdb.schema import search
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url

STATEMENTS = {
    1: "The parser drops snake_case names; see https://example.org/a/b.html and foo@bar.org",
    2: "GRÖSSE wird nicht gespeichert: naïve café, 1e5 and -3.25",
    3: "Parsing of `a.b.c()` raises ValueError('it''s \\ broken'); SELECT * FROM x; -- 100 %",
    4: "parse parse parse, nothing but parse",
    5: "The word 日本語 is kept, 2 times" + " and more words follow" * 60,
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database of each kind with the statements, which the tests only read."""
    is_sqlite = request.param == "sqlite"
    url = (
        make_url(tmp_path_factory.mktemp("search"))
        if is_sqlite
        else request.getfixturevalue("server").create_database(request.getfixturevalue("opened"))
    )
    with Store.open(url) as store:
        for number, statement in STATEMENTS.items():
            add_lineage(store, number, problem_statement=statement, to=Stage.DERIVE if number == 4 else Stage.CERTIFY)
    return str(url)


@pytest.fixture
def store(url: str) -> Store:
    return Store.open(url)


def find(store: Store, *words: str, **filters: str) -> list[int]:
    rows = queries.search_tasks(store, words, TaskFilters(**filters))
    return [int(row["name"].removeprefix("ada__greet-").removesuffix(".bugfix")) for row in rows]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["parser"], [1]),
        (["PARS"], [1, 3, 4]),
        (["snake_case"], [1]),
        (["case"], [1]),
        (["example.org"], [1]),
        (["größe"], []),
        (["grösse"], [2]),
        (["cafe"], []),
        (["1e5", "3.25"], [2]),
        (["a.b.c()", "raises"], [3]),
        (["it's"], [3]),
        (['"; ( )'], []),
        (["%", "_", "'"], []),
        (["日本"], [5]),
        (["parse", "nothing"], [4]),
        (["parse", "absent"], []),
        (["greet", "word"], [5]),
        (["NOT", "parse"], [4]),
    ],
)
def test_words_are_beginnings_and_all_must_match(store: Store, words: list[str], expected: list[int]) -> None:
    with store:
        assert sorted(find(store, *words)) == expected


def test_the_best_match_is_first_and_filters_apply(store: Store) -> None:
    with store:
        assert find(store, "pars")[0] == 4
        assert find(store, "pars", status="derived") == [4]
        assert find(store, "2") == [2, 5]  # the words of a name before those of a newer statement
        (row,) = queries.search_tasks(store, ["follow"], TaskFilters())
        assert row["snippet"].startswith("The word 日本語 is kept, 2 times and more words follow")
        assert row["snippet"].endswith("...")
        assert len(queries.search_tasks(store, ["ada"], TaskFilters(), 2)) == 2


@pytest.mark.parametrize(
    ("statement", "words", "start"),
    [
        ("unparsed, reparse, Parse", ["parse"], 19),
        ("an_parser and Parser", ["parser"], 3),
        ("parse", ["parse"], 0),
        ("a b parse", ["nothing", "PARSE", "b"], 2),
        ("\u0130\u0130 \u0130stanbul, PARSE", ["parse"], 13),
        ("x-y parse-it", ["Parse-It"], 4),
        ("unparse", ["parse"], None),
        ("a", [], None),
    ],
)
def test_the_first_match_is_the_beginning_of_a_word(statement: str, words: list[str], start: int | None) -> None:
    before = "-" * 200
    at = 0 if start is None else len(before) + start
    shown = f"{before}{statement}"[max(0, at - 60) : at + 120]
    expected = f"{'...' if at else ''}{shown}{'' if at else '...'}"
    assert search.make_snippet(f"{before}{statement}", words) == expected


def test_a_snippet_is_around_the_first_match() -> None:
    snippet = search.make_snippet("x" * 100 + "\n\nhere is the Needle, and\nthen some", ["needl"])
    assert "here is the Needle, and then some" in snippet
    assert snippet.startswith("...")
