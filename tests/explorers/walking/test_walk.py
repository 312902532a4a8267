"""Walks: the loop with the tools, wrong calls, ends that come too early, and facts with verbatim quotes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from backends.llm.meter import UsageMeter
from core.settings.explore import ExploreSettings
from explorers.corpora.corpus import CorpusReader
from explorers.model_requests import RequestFailedError
from explorers.walking.loop import GO_ON, LAST_TURN
from explorers.walking.walk import FinishedWalk, Walker
from tests.explorers.corpus import open_pages
from tests.explorers.gates.subjects import FOUNDED, PAGES, WROTE
from tests.explorers.models import ScriptedRoles, open_models
from tests.samplers.scripted_model import Call, ModelRequest, Turn

FACTS = [
    {"subject": "Ada Moravec", "relation": "founded", "object": "the club", "page": "u:club", "quote": FOUNDED},
    {"subject": "Ada Moravec", "relation": "wrote", "object": "A Book of Glass", "page": "book", "quote": WROTE},
]
CALLS = (
    Call("search", {"queries": ["rowing club", "书"]}),
    Call("browse", {"url": "u:club", "query": "founded"}),
    Call("browse", {"url": "book", "query": "written"}),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusReader:
    return open_pages(PAGES, tmp_path_factory.mktemp("walks"))


def walk(
    corpus: CorpusReader, folder: Path, turns: list[Any], seed: str = "rowing club", **options: int
) -> tuple[FinishedWalk, list[ModelRequest]]:
    """Walk with a model whose n-th answer is the n-th turn, the last again and again; return the requests, too."""
    requests: list[ModelRequest] = []

    def reply(_given: Mapping[str, str], _number: int, request: ModelRequest) -> Any:
        requests.append(request)
        return turns[min(request.place, len(turns) - 1)]

    given = {"explore_min_calls": 3, "explore_min_facts": 2} | options
    with open_models(ScriptedRoles({"walk": reply}), folder) as models:
        walker = Walker(corpus=corpus, models=models, options=ExploreSettings(**given))
        return walker.walk(seed, "subject", UsageMeter()), requests


def test_a_walk_has_its_facts_pages_and_steps(corpus: CorpusReader, tmp_path: Path) -> None:
    finished, requests = walk(corpus, tmp_path, [Turn(calls=(call,)) for call in CALLS] + [{"facts": FACTS}])
    assert [fact.page for fact in finished.facts] == ["club", "book"]
    assert (finished.pages, finished.n_calls, len(requests)) == (("club", "book"), 3, 4)
    assert finished.steps.count(b"\n") == 3
    result = requests[1].body["messages"][-1]["content"]
    assert "query: rowing club\n1. club\n   url: u:club\n   " in result
    assert "query: 书\nno page" in result
    assert requests[0].tools == ["search", "browse"]


def test_wrong_calls_are_named_and_are_no_end(corpus: CorpusReader, tmp_path: Path) -> None:
    wrong = (
        Call("search", {"queries": "club"}),
        Call("search", '{"queries": ['),
        Call("browse", {"url": 3}),
        Call("fetch", {"url": "u:club"}),
        Call("browse", {"url": "nowhere", "query": ""}),
    )
    turns = [Turn(calls=wrong), Turn(calls=CALLS), {"facts": FACTS}]
    finished, requests = walk(corpus, tmp_path, turns)
    results = [message["content"] for message in requests[1].body["messages"] if message["role"] == "tool"]
    assert all(result.startswith("error: ") for result in results)
    assert "there is no tool fetch" in results[3]
    assert results[4] == "error: there is no page nowhere"
    assert finished.n_calls == 8


def test_a_walk_that_ends_early_is_sent_on(corpus: CorpusReader, tmp_path: Path) -> None:
    finished, requests = walk(corpus, tmp_path, [Turn(text="done"), Turn(calls=CALLS), {"facts": FACTS}])
    assert requests[1].body["messages"][-1]["content"] == GO_ON.format(calls=0, least=3)
    assert finished.n_calls == 3


def test_a_walk_ends_at_its_limit(corpus: CorpusReader, tmp_path: Path) -> None:
    turns = [Turn(calls=CALLS), Turn(calls=CALLS), {"facts": FACTS}]
    finished, requests = walk(corpus, tmp_path, turns, explore_max_calls=2)
    assert (requests[2].tools, requests[2].body["messages"][-1]["content"]) == ([], LAST_TURN)
    assert finished.n_calls == 6


def test_a_fact_with_a_wrong_quote_is_sent_back(corpus: CorpusReader, tmp_path: Path) -> None:
    wrong = [{**FACTS[0], "quote": FOUNDED.replace("1976", "1967")}, FACTS[1]]
    finished, requests = walk(corpus, tmp_path, [Turn(calls=CALLS), {"facts": wrong}, {"facts": FACTS}])
    assert "fact 1: its quote is not in the page u:club word for word" in requests[-1].body["messages"][-1]["content"]
    assert len(finished.facts) == 2


@pytest.mark.parametrize(
    ("turns", "seed", "reason"),
    [
        ([Turn(text="done")], "xyzzy", "unknown-seed"),
        ([Turn(text="done")], "不存在", "unknown-seed"),
        ([Turn(calls=CALLS[:2]), {"facts": FACTS}], "club", "short-walk"),
        ([{"facts": FACTS}], "club", "short-walk"),
        ([Turn(calls=CALLS), {"facts": FACTS[:1]}], "club", "few-facts"),
        ([Turn(calls=CALLS), {"facts": [FACTS[0], {**FACTS[1], "page": "ivo"}]}], "club", "few-facts"),
        ([Turn(calls=CALLS), Turn(text="no facts at all")], "club", "unusable-answer"),
    ],
)
def test_bad_walks_have_a_reason(
    corpus: CorpusReader, turns: list[Any], seed: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestFailedError) as failure:
        walk(corpus, tmp_path, turns, seed)
    assert failure.value.reason == reason
