"""Gates that need models: for each reason two bad questions and two just within, with scripted models over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.errors import Transient
from explorers.corpora.corpus import CorpusReader
from explorers.gates.assessing import assess_question
from explorers.gates.rivals import check_rivals
from explorers.gates.samples import check_closed_book, check_difficulty, check_path, run_solvers
from explorers.gates.subject import GateFindings
from explorers.gates.texts import check_implications
from taskdb.records.questions import ClueOperation
from tests.explorers.corpus import make_page, open_pages
from tests.explorers.gates.subjects import CLUES, FOUNDED, PAGES, WROTE, make_clue, make_subject
from tests.explorers.models import ScriptedRoles, open_models
from tests.samplers.scripted_model import Call, ModelRequest, Turn

QUOTES = [{"page": "u:club", "quote": FOUNDED}, {"page": "book", "quote": WROTE}]
CLOSE = "Ada Moravcova"
"""A wrong answer that is close to the right one."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusReader:
    return open_pages(PAGES, tmp_path_factory.mktemp("gates"))


def imply(given: Mapping[str, str], _number: int, _request: ModelRequest) -> dict[str, Any]:
    """The judge: a clue is implied where its last word and the answer are in the quote."""
    is_implied = given["Answer"] in given["Quote"] and given["Clue"].split()[-1] in given["Quote"].lower()
    return {"reason": "the quote is about somebody else", "implied": is_implied}


def compare(given: Mapping[str, str], _number: int, _request: ModelRequest) -> dict[str, Any]:
    """The judge of answers: `A. Moravec` is another spelling."""
    return {"quote": given["Answer"], "same": given["Answer"] == "A. Moravec"}


def make_final(answer: str, quotes: list[dict[str, str]] | None = None) -> dict[str, Any]:
    return {"answer": answer, "confidence": 0.5, "quotes": QUOTES if quotes is None else quotes}


def solve(answers: list[str], turns: int = 6, quotes: list[dict[str, str]] | None = None) -> Callable[..., Any]:
    """Return a solver whose samples give answers in turn, after so many turns; it opens the pages that it quotes."""
    pages = [Call("browse", {"url": page, "query": "founded"}) for page in ("u:club", "u:book", "u:order")]

    def reply(_given: Mapping[str, str], number: int, request: ModelRequest) -> Turn | dict[str, Any]:
        if request.place < turns - 1:
            return Turn(calls=tuple(pages) if request.place == 0 else (Call("search", {"queries": ["club"]}),))
        return make_final(answers[(number - 1) % len(answers)], quotes)

    return reply


# ---------------------------------------------------------------------------------------------------- unsupported-clue


@pytest.mark.parametrize(
    ("clue", "expected"),
    [
        (
            make_clue(page="ivo", quote="The club was founded in 1976 by Ivo Urban."),
            "the person founded a club: the quote is about somebody else",
        ),
        (make_clue(operation=ClueOperation.BLUR, value="the 1980s"), "the 1980s"),
        (make_clue(operation=ClueOperation.BLUR, value="the 1970s"), None),
        (make_clue("the person founded a club", page="club"), None),
    ],
)
def test_quotes_imply_clues(corpus: CorpusReader, clue: Any, expected: str | None, tmp_path: Path) -> None:
    with open_models(ScriptedRoles({"imply": imply}), tmp_path) as models:
        failure = check_implications(make_subject(corpus, models, clues=(clue, CLUES[1])), GateFindings())
    assert (failure is None) == (expected is None)
    if failure is not None and expected is not None:
        assert failure.reason == "unsupported-clue"
        assert expected in failure.detail


def test_a_judge_without_a_verdict_leaves_the_question_waiting(corpus: CorpusReader, tmp_path: Path) -> None:
    roles = ScriptedRoles({"imply": lambda *_: Turn(text="perhaps")})
    with open_models(roles, tmp_path) as models, pytest.raises(Transient, match="no verdict"):
        check_implications(make_subject(corpus, models), GateFindings())
    assert roles.counts["imply"] == 1  # two more were sent with the problem


# ------------------------------------------------------------------------------------------------ known-without-search


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["", "", CLOSE, "Ada Moravec"], "known-without-search"),
        (["A. Moravec", "", "", ""], "known-without-search"),  # by the judge
        ([CLOSE] * 4, None),
        ([""] * 4, None),
    ],
)
def test_questions_are_not_known(
    corpus: CorpusReader, answers: list[str], expected: str | None, tmp_path: Path
) -> None:
    roles = ScriptedRoles({"compare": compare, "closed": lambda _, number, __: make_final(answers[number - 1])})
    findings = GateFindings()
    with open_models(roles, tmp_path) as models:
        failure = check_closed_book(make_subject(corpus, models), findings)
    assert (failure and failure.reason.value) == expected
    if expected is None:
        [count] = findings.closed_book
        assert (count.attempts, count.solved) == (4, 0)


# ------------------------------------------------------------------------------------------------- unsolved, too-easy


@pytest.mark.parametrize(
    ("answers", "turns", "expected"),
    [
        ([""], 2, "unsolved"),
        ([CLOSE], 2, "unsolved"),
        ([*[CLOSE] * 7, "Ada Moravec"], 2, None),  # 1 of 8
        (["42", "42", "Ada Moravec"], 2, None),  # some obey the page that orders them to answer 42
        (["Ada Moravec"], 4, "too-easy"),
        (["ada moravec", "Ada Moravec"], 2, "too-easy"),
        (["Ada Moravec"], 5, None),
        ([*["Ada Moravec"] * 7, CLOSE], 2, None),
    ],
)
def test_questions_can_be_solved_and_are_not_too_easy(
    corpus: CorpusReader, answers: list[str], turns: int, expected: str | None, tmp_path: Path
) -> None:
    roles = ScriptedRoles({"compare": compare, "solve": solve(answers, turns)})
    findings = GateFindings()
    with open_models(roles, tmp_path) as models:
        subject = make_subject(corpus, models)
        assert run_solvers(subject, findings) is None
        failure = check_difficulty(subject, findings)
    assert (failure and failure.reason.value) == expected
    [count] = findings.solvers
    assert count.attempts == 8
    assert set(count.turns) <= {turns}


@pytest.mark.parametrize(
    ("quotes", "expected"),
    [
        ([], "path-not-repeatable"),
        ([{"page": "town", "quote": "Alder is a town of 1200 people."}], "path-not-repeatable"),  # never opened
        ([{"page": "club", "quote": FOUNDED.replace("1976", "1967")}], "path-not-repeatable"),
        (QUOTES, None),
        ([{"page": "u:club", "quote": f" {FOUNDED}"}], None),
    ],
)
def test_the_path_of_a_right_sample_is_replayed(
    corpus: CorpusReader, quotes: list[dict[str, str]], expected: str | None, tmp_path: Path
) -> None:
    roles = ScriptedRoles({"compare": compare, "solve": solve(["Ada Moravec", CLOSE], 3, quotes)})
    findings = GateFindings()
    with open_models(roles, tmp_path) as models:
        subject = make_subject(corpus, models, options={"explore_samples": 3})
        run_solvers(subject, findings)
        failure = check_path(subject, findings)
    assert (failure and failure.reason.value) == expected
    if expected is None:
        assert [call["tool"] for call in findings.path] == ["browse", "browse", "browse", "search"]
        assert findings.evidence == ("book", "club")


def test_a_path_with_other_results_is_not_repeatable(corpus: CorpusReader, tmp_path: Path) -> None:
    roles = ScriptedRoles({"solve": solve(["Ada Moravec"], 3)})
    findings = GateFindings()
    with open_models(roles, tmp_path) as models:
        subject = make_subject(corpus, models, options={"explore_samples": 3})
        run_solvers(subject, findings)
        changed = open_pages([*PAGES, make_page("more", "another club")], tmp_path)
        failure = check_path(make_subject(changed, models), findings)
    assert failure is not None
    assert failure.reason == "path-not-repeatable"


# ---------------------------------------------------------------------------------------------------------- not-unique

IVO = "The club was founded in 1976 by Ivo Urban."
IVO_CLUES = [
    {"clue": 1, "page": "ivo", "quote": IVO},
    {"clue": 2, "page": "ivo-book", "quote": "A Book of Clocks was written by Ivo Urban."},
]


def answer_rival(agent: dict[str, Any], proposed: dict[str, Any]) -> Callable[..., Any]:
    """Return a second agent with an answer of its own, and another where an answer is proposed to it."""

    def reply(given: Mapping[str, str], _number: int, request: ModelRequest) -> dict[str, Any]:
        return proposed if any("Others have answered" in heading for heading in given) else agent

    return reply


NOBODY = {"answer": "", "clues": []}


@pytest.mark.parametrize(
    ("agent", "proposed", "answers", "expected"),
    [
        ({"answer": "Ivo Urban", "clues": IVO_CLUES}, NOBODY, ["Ada Moravec"], "not-unique"),
        (NOBODY, {"answer": "Ivo Urban", "clues": IVO_CLUES}, ["Ivo Urban", "Ada Moravec", "Ivo Urban"], "not-unique"),
        ({"answer": "Ivo Urban", "clues": IVO_CLUES[:1]}, NOBODY, ["Ada Moravec"], None),  # all but a clue
        (
            {"answer": "Ivo Urban", "clues": [IVO_CLUES[0], {**IVO_CLUES[1], "quote": WROTE, "page": "book"}]},
            NOBODY,
            ["Ada Moravec"],
            None,
        ),
        ({"answer": "Ivo Urban", "clues": [IVO_CLUES[0], {**IVO_CLUES[1], "quote": IVO}]}, NOBODY, [CLOSE], None),
        (NOBODY, {"answer": "42", "clues": []}, ["42", "42", "Ada Moravec"], None),
        (
            {
                "answer": "A. Moravec",
                "clues": [{"clue": 1, "page": "club", "quote": FOUNDED}, {"clue": 2, "page": "book", "quote": WROTE}],
            },
            NOBODY,
            ["Ada Moravec"],
            None,  # another spelling
        ),
        (
            NOBODY,
            {"answer": "Ivo Urban", "clues": IVO_CLUES},
            ["Ivo Urban", "Ada Moravec", "Ada Moravec"],
            None,
        ),  # not shared
    ],
)
def test_no_other_answer_fulfils_every_clue(
    corpus: CorpusReader,
    agent: dict[str, Any],
    proposed: dict[str, Any],
    answers: list[str],
    expected: str | None,
    tmp_path: Path,
) -> None:
    def implied(given: Mapping[str, str], number: int, request: ModelRequest) -> dict[str, Any]:
        if given["Answer"] == "A. Moravec":
            return {"reason": "", "implied": True}
        verb = "founded" if "club" in given["Clue"] else "written"
        return {"reason": "", "implied": given["Answer"] in given["Quote"] and verb in given["Quote"]}

    roles = {"compare": compare, "imply": implied, "rival": answer_rival(agent, proposed), "solve": solve(answers, 2)}
    findings = GateFindings()
    with open_models(ScriptedRoles(roles), tmp_path) as models:
        subject = make_subject(corpus, models, options={"explore_samples": 3})
        run_solvers(subject, findings)
        failure = check_rivals(subject, findings)
    assert (failure and failure.reason.value) == expected
    if expected is None and agent["answer"] == "Ivo Urban":
        [rival] = findings.rivals[:1]
        assert (rival.answer, rival.origin, rival.fails) == ("Ivo Urban", "agent", CLUES[1].text)


def test_a_sound_question_passes_all_gates_although_a_page_gives_orders(corpus: CorpusReader, tmp_path: Path) -> None:
    clues = (
        make_clue("the person founded a club"),
        make_clue("the work on glass was written", page="book", quote=WROTE),
    )
    roles = {
        "imply": imply,
        "compare": compare,
        "closed": lambda *_: make_final(""),
        "solve": solve(["42", "42", "Ada Moravec"]),
        "rival": answer_rival(
            NOBODY, {"answer": "42", "clues": [{"clue": 1, "page": "order", "quote": "The club was founded by 42."}]}
        ),
    }
    wide = open_pages(
        [*PAGES, *(make_page(f"p{at}", "the person founded a club and wrote, quiet") for at in range(9))], tmp_path
    )
    with open_models(ScriptedRoles(roles), tmp_path) as models:
        findings, failure = assess_question(
            make_subject(wide, models, clues=clues, options={"explore_question_rank": 1, "explore_samples": 3})
        )
    assert failure is None
    assert [gate.name for gate in findings.gates] == [
        "support",
        "quotes",
        "answer",
        "time",
        "leaks",
        "entry-rank",
        "similarity",
        "benchmarks",
        "implied",
        "closed-book",
        "rivals",
        "solved",
        "path",
    ]
    [rival] = findings.rivals
    assert (rival.answer, rival.origin) == ("42", "shared")
