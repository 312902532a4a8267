"""Additions to a statement, over real HTTP: accepted only if they repair it and contain no solution."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from core.errors import Transient
from taskdb.records.verdicts import Completion, Finding, QuotedClaim, QuoteSource, append_addition
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure
from tests.verifiers.judge.change import CASE, DEMANDED, STATEMENT
from tests.verifiers.judge.conftest import Asked
from verifiers.judge.case import JudgeCase
from verifiers.judge.completion import complete
from verifiers.judge.completion.interfaces import find_interfaces

MESSAGE = "whom shall I greet"
GOOD = (
    f'The message of the ValueError is "{MESSAGE}?". A new function `shout_all(names: list[str], *, end: str = "!")` '
    "returns the loud greetings of several people, each with `end` behind it."
)
MISSED = Finding(
    rule="message-not-stated", quote=DEMANDED, detail=f"`{MESSAGE}` is told nowhere", quote_source=QuoteSource.TESTS
)


def find_unstated_message(statement: str) -> list[Finding]:
    """Report the missing message."""
    return [] if MESSAGE in statement else [MISSED]


def make_reply(addition: str) -> ScriptedAnswer:
    return ScriptedAnswer(text=json.dumps({"addition": addition}))


def complete_case(case: JudgeCase, make_client: Asked, **settings: object) -> Completion:
    completion = complete(case, make_client(**settings), find_unstated_message)
    assert completion is not None
    return completion


def test_a_sufficient_addition_is_accepted_and_the_original_statement_is_kept(
    server: ModelServer, make_client: Asked
) -> None:
    server.set_answers(make_reply(f"\n{GOOD}\n"))
    completion = complete_case(CASE, make_client)
    assert (completion.addition, completion.rejected, completion.model, completion.prompt) == (
        GOOD,
        (),
        "scripted",
        "complete-2",
    )
    assert completion.tokens == 110
    assert append_addition(STATEMENT, completion.addition) == f"{STATEMENT}\n\n{GOOD}"
    assert append_addition(STATEMENT, "") == STATEMENT
    prompt = "\n".join(message["content"] for message in server.requests[0]["messages"])
    assert f"- `{MESSAGE}` is told nowhere: {DEMANDED}\n" in prompt
    assert '- def shout_all(names: list[str], *, end: str = "!") -> list[str] (greet.py)\n' in prompt


def test_no_request_is_sent_when_nothing_is_missing(server: ModelServer, make_client: Asked) -> None:
    assert complete(replace(CASE, statement=f"{STATEMENT}{MESSAGE}"), make_client(), find_unstated_message) is None
    assert server.requests == []


def test_information_that_models_miss_is_added(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(make_reply(GOOD))
    missing = [QuotedClaim(claim="what end does", quote="end=", quote_source=QuoteSource.TESTS)]
    completion = complete(
        replace(CASE, statement=f"{STATEMENT}{MESSAGE}"), make_client(), find_unstated_message, missing
    )
    assert completion is not None
    assert completion.addition == GOOD
    assert "- what end does: end=" in server.requests[0]["messages"][1]["content"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (f"{GOOD}\n\n    return said.upper() if loud else said", "a line of the gold patch, `return said.upper()"),
        (f"{GOOD} See https://github.com/ada/greet/pull/7.", "a link to a change of the repository"),
        (f"{GOOD}\n\n    return [greet(name,   loud=True) + end\n  for name in names]", "a line of the gold patch"),
        (GOOD.replace(MESSAGE, "who is it"), f"still does not contain what is missing: `{MESSAGE}` is told nowhere"),
        (f'The message of the ValueError is "{MESSAGE}?".', "it does not name shout_all, names, end"),
        (GOOD.replace("names: list[str], *, ", ""), "it does not name names: the tests need `def shout_all("),
        (f"{STATEMENT}\n{GOOD}", "repeats the statement"),
        (f"{' '.join(STATEMENT.split())} {GOOD}", "repeats the statement"),
        (f"{GOOD}\n    {DEMANDED}", "copies a line of the tests"),
        (f"{GOOD} This is what test_empty asserts.", "mentions the hidden tests (test_empty)"),
        (f"{GOOD} See tests/test_greet.py.", "mentions the hidden tests (tests/test_greet.py)"),
        (GOOD + " Thank you." * 200, "characters; 20 to 2000 are allowed"),
        ("", "it has 0 characters"),
    ],
    ids=lambda text: text[-24:],
)
def test_a_rejected_addition_is_requested_again_with_the_objection(
    server: ModelServer, make_client: Asked, bad: str, why: str
) -> None:
    server.set_answers(make_reply(bad), make_reply(GOOD))
    completion = complete_case(CASE, make_client)
    assert why in completion.rejected[0]
    assert (completion.addition, len(completion.rejected)) == (GOOD, 1)
    roles = [message["role"] for message in server.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert why in server.requests[1]["messages"][-1]["content"]


def test_there_is_no_addition_after_too_many_rejections(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(make_reply("Please do it as the tests want it."))
    completion = complete_case(CASE, make_client)
    assert completion.addition == ""
    assert len(completion.rejected) == len(server.requests) == 3


def test_lines_of_the_base_tree_are_no_solution(server: ModelServer, make_client: Asked) -> None:
    old = replace(CASE, find_in_base_tree=lambda texts: {text for text in texts if "upper" in text})
    text = f"{GOOD} As in `return said.upper() if loud else said`."
    server.set_answers(make_reply(text))
    assert complete_case(old, make_client).addition == text


@pytest.mark.parametrize("nonsense", ["Here you are.", '{"statement": "all new"}', '{"addition": 3}'])
def test_an_unusable_answer_is_no_addition(server: ModelServer, make_client: Asked, nonsense: str) -> None:
    server.set_answers(ScriptedAnswer(text=nonsense))
    completion = complete_case(CASE, make_client)
    assert completion.addition == ""
    assert completion.rejected[0].startswith("no usable answer: ")
    assert len(server.requests) == 2


def test_an_exceeded_budget_ends_the_completion(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(make_reply("Please do it as the tests want it."))
    completion = complete_case(CASE, make_client, budget_tokens=200)
    assert completion.addition == ""
    assert completion.rejected[-1] == "no further attempt: 220 tokens used, 200 allowed"
    assert len(server.requests) == 2


def test_a_failing_endpoint_raises_instead_of_completing(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(make_reply("Please do it as the tests want it."), ScriptedFailure(status=503))
    with pytest.raises(Transient):
        complete_case(CASE, make_client)


def test_a_cached_addition_is_not_requested_again(server: ModelServer, make_client: Asked) -> None:
    server.set_answers(make_reply("Please do it as the tests want it."), make_reply(GOOD))
    first, again = complete_case(CASE, make_client), complete_case(CASE, make_client)
    assert len(server.requests) == 2
    assert (again.addition, again.rejected, again.tokens) == (first.addition, first.rejected, 0)


# ---------------------------------------------------------------------------------------------------------- interfaces


def make_patch(path: str, *lines: str) -> str:
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("path", "lines", "signature", "parameters"),
    [
        (
            "a.py",
            ("def total(self, a, *, b: int = 1, _c=None, **kwargs) -> int:",),
            "def total(self, a, *, b: int = 1, _c=None, **kwargs) -> int",
            ("a", "b"),
        ),
        (
            "a.py",
            ("async def total(", "    a: dict[str, int],", "    b=(1, 2),", "):"),
            "async def total( a: dict[str, int], b=(1, 2), )",
            ("a", "b"),
        ),
        ("a.py", ("def total(a): return a + 1",), "def total(a)", ("a",)),
        ("a.py", ("class total(Base):",), "class total(Base)", ()),
        ("a.js", ("const total = async (a, b = 2) => a + b;",), "const total = async (a, b = 2)", ("a", "b")),
        (
            "a.ts",
            ("export function total(a: Map<string, number>, b?: number): number {",),
            "export function total(a: Map<string, number>, b?: number): number",
            ("a", "b"),
        ),
        ("a.js", ("function total({", "  a, b = 1,", "}, c) {"), "function total({ a, b = 1, }, c)", ("a", "b", "c")),
        (
            "a.rs",
            ("pub fn total<R>(", "    a: R,", ") -> R", "where R: Ord {"),
            "pub fn total<R>( a: R, ) -> R",
            ("a",),
        ),
        (
            "a.go",
            ("func (s *Shop) total(a, b int) (int, error) {",),
            "func (s *Shop) total(a, b int) (int, error)",
            ("a", "b"),
        ),
        (
            "a.rs",
            ("pub fn total(&mut self, mut a: Vec<u8>) -> usize {",),
            "pub fn total(&mut self, mut a: Vec<u8>) -> usize",
            ("a",),
        ),
        (
            "A.java",
            ("  public static Map<String, Integer> total(final List<Integer> a, int b) {",),
            "public static Map<String, Integer> total(final List<Integer> a, int b)",
            ("a", "b"),
        ),
        ("a.rb", ("  def total(a, b = 1)",), "def total(a, b = 1)", ("a", "b")),
        ("a.kt", ("fun total(a: Int) = a + 1",), "fun total(a: Int)", ("a",)),
    ],
)
def test_signatures_of_called_definitions_are_parsed_from_the_patch(
    path: str, lines: tuple[str, ...], signature: str, parameters: tuple[str, ...]
) -> None:
    test = make_patch(f"tests/test_{path}", "assert shop.total(1) == 2")
    (interface,) = find_interfaces(replace(CASE, gold_patch=make_patch(path, *lines), test_patch=test, fail_to_pass=()))
    assert (interface.name, interface.signature, interface.parameters) == ("total", signature, parameters)


def test_definitions_of_the_tests_are_no_interfaces() -> None:
    gold, test = (
        make_patch("a.py", "def total(a):"),
        make_patch("tests/test_a.py", "def total(b):", "    assert total(1)"),
    )
    assert find_interfaces(replace(CASE, gold_patch=gold, test_patch=test, fail_to_pass=())) == ()


def test_uncalled_or_old_definitions_are_no_interfaces() -> None:
    gold = make_patch("a.py", "def helper(a):", "def total(a):") + " # total was here\n"
    gold = gold.replace("+1,2 @@", "+1,3 @@ def total():")
    test = make_patch("tests/test_a.py", "assert total(1) == 2")
    assert find_interfaces(replace(CASE, gold_patch=gold, test_patch=test, fail_to_pass=())) == ()
