"""Questions over mined changes of a built history: a program decides on clues, uniqueness is a query, SQL agrees."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from explorers.corpora.changes import ChangeMaterial, make_pages
from taskdb.records.discussion import (
    AuthorKind,
    Comment,
    Discussion,
    IssueLink,
    LinkedIssue,
    LinkOrigin,
    ReviewThread,
)
from taskdb.store import Store
from tests import records
from tests.cli import run_mergemill
from tests.explorers.scripted import find_role, make_search, read_sections, write_turn
from tests.mergemill.explore.running import FAST
from tests.samplers import scripted_model
from tests.samplers.scripted_model import Call, ModelRequest, ScriptedModel, Turn

AUTHORS = ("Ada", "Bela", "Carl", "Dora", "Emil", "Frida")
WORDS = ("apples", "boats", "coins", "dogs", "ears", "forks", "goats", "hats", "inks", "jars")
MONTHS = ("January", "February", "March", "April")
N_CHANGES = 26
AMBIGUOUS = 2
"""Changes at the end that share author and month with the first ones."""


@dataclass(frozen=True)
class BuiltChange:
    """A change of the history."""

    number: int

    @property
    def author(self) -> str:
        return AUTHORS[self.position % 6]

    @property
    def position(self) -> int:
        return self.number - 24 if self.number >= 24 else self.number

    @property
    def month(self) -> int:
        return 1 + self.position // 6

    @property
    def merged_at(self) -> str:
        return f"2024-{self.month:02}-{3 + self.number:02}T12:00:00+00:00"

    @property
    def title(self) -> str:
        return f"Repair {WORDS[self.number % 10]} of shelf {self.number}"


CHANGES = [BuiltChange(number) for number in range(N_CHANGES)]
BY_TITLE = {change.title: change for change in CHANGES}
ASKED = CHANGES[AMBIGUOUS:22] + CHANGES[:AMBIGUOUS]
"""Changes that are seeds: 20 that author and month single out, and two that share both with another."""


def build_history(folder: Path) -> None:
    pulls = [
        records.make_pull_request(
            change.number + 1, title=change.title, author=change.author, merged_at=change.merged_at
        )
        for change in CHANGES
    ]
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        store.add_mined_changes(*((pull, records.make_candidate(pull), 0.1) for pull in pulls))


def write_text(change: BuiltChange) -> str:
    return f"Which pull request of {change.author} was merged in {MONTHS[change.month - 1]} 2024?"


def make_scripted_answer(known: Mapping[tuple[str, str], str]) -> Callable[[ModelRequest], Turn]:
    """Return a model whose solver has the results of SQL: author and month -> title."""

    def answer_walk(request: ModelRequest) -> Turn:
        change = BY_TITLE[read_sections(request)["Seed"]]
        page = f"pull:ada__greet-{change.number + 1}"
        calls = [make_search(change.title), Call("browse", {"url": page, "query": "author merged title"})]
        if request.place == 0:
            return Turn(calls=(*calls, make_search(change.author)))
        facts = [("author", change.author), ("merged", change.merged_at[:10])]
        return write_turn(
            {
                "facts": [
                    {
                        "subject": change.title,
                        "relation": name,
                        "object": value,
                        "page": page,
                        "quote": f"{name.capitalize()}: {value}",
                    }
                    for name, value in facts
                ]
            }
        )

    def answer_write(request: ModelRequest) -> Turn:
        change = BY_TITLE[read_sections(request)["Seed"]]
        month = f"{MONTHS[change.month - 1]} 2024"
        clues = [
            {"text": f"its author is {change.author}", "fact": 1, "entity": change.author},
            {
                "text": f"it was merged in {month}",
                "fact": 2,
                "operation": "blur",
                "entity": change.merged_at[:10],
                "value": month,
            },
        ]
        return write_turn(
            {
                "question": write_text(change),
                "answer": change.title,
                "answer_type": "title",
                "answer_page": f"pull:ada__greet-{change.number + 1}",
                "clues": clues,
            }
        )

    def answer_solve(request: ModelRequest) -> Turn:
        words = read_sections(request)["Question"].split()
        author, month = words[4], MONTHS.index(words[8]) + 1
        title = known[author, f"2024-{month:02}"]
        page = f"pull:ada__greet-{BY_TITLE[title].number + 1}"
        if request.place == 0:
            return Turn(calls=(Call("browse", {"url": page, "query": "author"}),))
        return write_turn({"answer": title, "quotes": [{"page": page, "quote": f"Author: {author}"}]})

    roles = {"walk": answer_walk, "write": answer_write, "solve": answer_solve}
    return lambda request: roles[find_role(request)](request)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[str]]:
    """A folder with 22 questions over the history, and the number of requests by role."""
    folder = tmp_path_factory.mktemp("changes")
    build_history(folder)
    (folder / "seeds.txt").write_text("".join(f"{change.title}\n" for change in ASKED))
    done = run_mergemill("explore", "corpus", "history", "changes", "--json", cwd=folder)
    assert done.exit_code == 0, done.stderr
    options = {"MERGEMILL_EXPLORE_MIN_CALLS": "3", "MERGEMILL_EXPLORE_MIN_FACTS": "2"}
    no_ranks = {"MERGEMILL_EXPLORE_QUESTION_RANK": "0", "MERGEMILL_EXPLORE_CLUE_RANK": "0"}
    # Before the run, which writes to the database.
    known = {(change.author, change.merged_at[:7]): look_up(folder, change)[0] for change in CHANGES}
    words = ("--corpus", "history", "--seeds", "seeds.txt", "--rounds", "0", "--model", "scripted", "--json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scripted_model, "PIECE_TOKENS", 1000)
        with ScriptedModel(make_scripted_answer(known)) as model:
            done = run_mergemill("explore", "run", *words, "--llm", model.url, cwd=folder, **FAST | options | no_ranks)
            assert done.exit_code == 0, done.stderr
            return folder, Counter(find_role(request) for request in model.requests)


def look_up(folder: Path, change: BuiltChange) -> list[str]:
    """Return the titles of the pull requests of its author and month, by SQL over the miner's own table."""
    connection = sqlite3.connect(folder / "mergemill.db")
    query = "SELECT title FROM pull_request WHERE author = ? AND substr(merged_at, 1, 7) = ? ORDER BY seq"
    titles = [row[0] for row in connection.execute(query, (change.author, change.merged_at[:7]))]
    connection.close()
    return titles


def test_sql_confirms_twenty_answers_and_no_judge_was_asked(explored: tuple[Path, Counter[str]]) -> None:
    folder, roles = explored
    assert set(roles) == {"walk", "write", "solve"}
    certified = run_mergemill("explore", "list", "--status", "certified", "--json", cwd=folder).lines
    assert len(certified) == 20
    for row in certified:
        question = run_mergemill("explore", "show", row["name"], "--json", cwd=folder).json
        change = BY_TITLE[question["seed"]]
        assert look_up(folder, change) == [question["answer"]]
        query = next(gate for gate in question["certificate"]["gates"] if gate["name"] == "entities")
        assert "a query over" in query["detail"]
    rejected = run_mergemill("explore", "list", "--status", "rejected", "--json", cwd=folder).lines
    assert [row["reason"] for row in rejected] == ["not-unique"] * AMBIGUOUS
    assert all(len(look_up(folder, change)) == 2 for change in CHANGES[:AMBIGUOUS])


def test_pages_of_a_change_are_linked() -> None:
    pull = records.make_pull_request(
        7,
        title="Strip the name",
        body="Names had blanks.",
        labels=("bug",),
        links=(
            IssueLink(issue="ada/greet#5", origin=LinkOrigin.BODY, quote="Fixes #5"),
            IssueLink(issue="ada/greet#6", origin=LinkOrigin.BODY, closes=False),
        ),
    )
    person = {"author_kind": AuthorKind.USER}
    comment = Comment(author="Carl", at="2024-03-01", text="I see it, too.", **person)
    issue = LinkedIssue(
        issue="ada/greet#5", title="Blanks", body="Hello  Ada", author="Bela", created_at="2024-02-01T00:00:00Z",
        labels=("good first issue",), before=(comment,), **person,
    )  # fmt: skip
    thread = ReviewThread(
        path="greet/__init__.py", side="right", line=3, start_line=None, original_line=3, original_start_line=None,
        commit=None, diff_hunk="", resolved=True, outdated=False,
        remarks=(Comment(author="Dora", at="2024-03-02", text="Use strip.", **person),),
    )  # fmt: skip
    candidate = records.make_candidate(pull, gold_files=("greet/__init__.py",), test_files=("tests/test_greet.py",))
    other = records.make_pull_request(8, title="Count words", links=(pull.links[0],))
    material = ChangeMaterial(pull=pull, candidate=candidate, discussion=Discussion(issues=(issue,), threads=(thread,)))
    pages = {page.id: page for page in make_pages([material, ChangeMaterial(pull=other)])}
    assert Counter(page.attributes["type"][0] for page in pages.values()) == {
        "pull request": 2,
        "commit": 2,
        "file": 2,
        "issue": 1,
        "discussion": 1,
    }
    own = pages["pull:ada__greet-7"]
    assert {"Author: Ada", "Label: bug", "Closes: issue:ada/greet#5", "Closes.author: Bela"} <= set(
        own.text.split("\n")
    )
    assert set(own.links) == {
        "issue:ada/greet#5",
        "file:ada/greet/greet/__init__.py",
        "file:ada/greet/tests/test_greet.py",
        f"commit:{pull.merge_commit}",
        "discussion:ada__greet-7",
    }
    assert own.license == candidate.license
    closed = pages["issue:ada/greet#5"]
    assert closed.attributes["closed by"] == ("pull:ada__greet-7", "pull:ada__greet-8")
    assert (closed.title, closed.attributes["commenter"]) == ("Blanks", ("Carl",))
    assert "Carl wrote: I see it, too." in closed.text
    assert pages["discussion:ada__greet-7"].attributes["reviewer"] == ("Dora",)
    assert pages[f"commit:{pull.merge_commit}"].attributes["pull request.author"] == ("Ada",)
    assert json.loads(own.format_line())["attributes"]["number"] == ["7"]
