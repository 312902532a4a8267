"""Additions to a statement, over real HTTP: taken only when rules say that they mend it and tell no solution."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mergemill.errors import Transient
from taskdb.verdicts import Completion, Finding, Place, Quoted, completed
from tests.llm.server import Fails, ModelServer, Says
from tests.verifiers.judge.change import CASE, DEMANDED, STATEMENT
from tests.verifiers.judge.conftest import Asked
from verifiers.judge.case import Case
from verifiers.judge.completion import complete
from verifiers.judge.completion.interfaces import interfaces

MESSAGE = "whom shall I greet"
GOOD = (
    f'The message of the ValueError is "{MESSAGE}?". A new function `shout_all(names: list[str], *, end: str = "!")` '
    "returns the loud greetings of several people, each with `end` behind it."
)
MISSED = Finding(rule="message-not-stated", quote=DEMANDED, detail=f"`{MESSAGE}` is told nowhere", place=Place.TESTS)


def findings(statement: str) -> list[Finding]:
    """What a rule misses: the message."""
    return [] if MESSAGE in statement else [MISSED]


def wrote(addition: str) -> Says:
    return Says(text=json.dumps({"addition": addition}))


def completion(case: Case, asking: Asked, **settings: object) -> Completion:
    made = complete(case, asking(**settings), findings)
    assert made is not None
    return made


def test_an_addition_that_mends_is_taken_and_the_original_stays(server: ModelServer, asking: Asked) -> None:
    server.says(wrote(f"\n{GOOD}\n"))
    made = completion(CASE, asking)
    assert (made.addition, made.refused, made.model, made.prompt) == (GOOD, (), "scripted", "complete-1")
    assert made.tokens == 110
    assert completed(STATEMENT, made.addition) == f"{STATEMENT}\n\n{GOOD}"
    assert completed(STATEMENT, "") == STATEMENT
    prompt = "\n".join(message["content"] for message in server.asked[0]["messages"])
    assert f"- `{MESSAGE}` is told nowhere: {DEMANDED}\n" in prompt
    assert '- def shout_all(names: list[str], *, end: str = "!") -> list[str] (greet.py)\n' in prompt


def test_nothing_is_asked_where_nothing_is_missing(server: ModelServer, asking: Asked) -> None:
    assert complete(replace(CASE, statement=f"{STATEMENT}{MESSAGE}"), asking(), findings) is None
    assert server.asked == []


def test_what_models_miss_is_written_too(server: ModelServer, asking: Asked) -> None:
    server.says(wrote(GOOD))
    missing = [Quoted(claim="what end does", quote="end=", place=Place.TESTS)]
    made = complete(replace(CASE, statement=f"{STATEMENT}{MESSAGE}"), asking(), findings, missing)
    assert made is not None
    assert made.addition == GOOD
    assert "- what end does: end=" in server.asked[0]["messages"][1]["content"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (f"{GOOD}\n\n    return said.upper() if loud else said", "a line of the gold patch, `return said.upper()"),
        (f"{GOOD} See https://github.com/ada/greet/pull/7.", "a link to a change of the repository"),
        (f"{GOOD}\n\n    return [greet(name,   loud=True) + end\n  for name in names]", "a line of the gold patch"),
        (GOOD.replace(MESSAGE, "who is it"), f"still does not tell what is missing: `{MESSAGE}` is told nowhere"),
        (f'The message of the ValueError is "{MESSAGE}?".', "it does not name shout_all, names, end"),
        (GOOD.replace("names: list[str], *, ", ""), "it does not name names: the tests need `def shout_all("),
        (f"{STATEMENT}\n{GOOD}", "writes the statement anew"),
        (f"{' '.join(STATEMENT.split())} {GOOD}", "writes the statement anew"),
        (f"{GOOD}\n    {DEMANDED}", "copies a line of the tests"),
        (f"{GOOD} This is what test_empty asserts.", "speaks of the hidden tests (test_empty)"),
        (f"{GOOD} See tests/test_greet.py.", "speaks of the hidden tests (tests/test_greet.py)"),
        (GOOD + " Thank you." * 200, "characters; 20 to 2000 are allowed"),
        ("", "it has 0 characters"),
    ],
    ids=lambda text: text[-24:],
)  # fmt: skip
def test_an_addition_that_is_turned_down_is_written_again_with_the_reason(
    server: ModelServer, asking: Asked, bad: str, why: str
) -> None:
    server.says(wrote(bad), wrote(GOOD))
    made = completion(CASE, asking)
    assert why in made.refused[0]
    assert (made.addition, len(made.refused)) == (GOOD, 1)
    roles = [message["role"] for message in server.asked[1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert why in server.asked[1]["messages"][-1]["content"]


def test_there_is_none_when_none_can_be_taken(server: ModelServer, asking: Asked) -> None:
    server.says(wrote("Please do it as the tests want it."))
    made = completion(CASE, asking)
    assert made.addition == ""
    assert len(made.refused) == len(server.asked) == 3


def test_lines_that_the_old_tree_has_are_no_solution(server: ModelServer, asking: Asked) -> None:
    old = replace(CASE, mentions=lambda texts: {text for text in texts if "upper" in text})
    told = f"{GOOD} As in `return said.upper() if loud else said`."
    server.says(wrote(told))
    assert completion(old, asking).addition == told


@pytest.mark.parametrize("nonsense", ["Here you are.", '{"statement": "all new"}', '{"addition": 3}'])
def test_nonsense_is_no_addition(server: ModelServer, asking: Asked, nonsense: str) -> None:
    server.says(Says(text=nonsense))
    made = completion(CASE, asking)
    assert made.addition == ""
    assert made.refused[0].startswith("no usable answer: ")
    assert len(server.asked) == 2


def test_a_spent_budget_ends_it(server: ModelServer, asking: Asked) -> None:
    server.says(wrote("Please do it as the tests want it."))
    made = completion(CASE, asking, budget_tokens=200)
    assert made.addition == ""
    assert made.refused[-1] == "no more was asked for: 220 tokens used, 200 allowed"
    assert len(server.asked) == 2


def test_an_endpoint_that_fails_gives_neither_an_addition_nor_none(server: ModelServer, asking: Asked) -> None:
    server.says(wrote("Please do it as the tests want it."), Fails(status=503))
    with pytest.raises(Transient):
        completion(CASE, asking)


def test_what_was_written_is_not_asked_for_again(server: ModelServer, asking: Asked) -> None:
    server.says(wrote("Please do it as the tests want it."), wrote(GOOD))
    first, again = completion(CASE, asking), completion(CASE, asking)
    assert len(server.asked) == 2
    assert (again.addition, again.refused, again.tokens) == (first.addition, first.refused, 0)


# ---------------------------------------------------------------------------------------------------------- interfaces


def patched(path: str, *lines: str) -> str:
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,0 +1,{len(lines)} @@\n"
    return head + "".join(f"+{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("path", "lines", "signature", "parameters"),
    [
        ("a.py", ("def total(self, a, *, b: int = 1, _c=None, **kwargs) -> int:",),
         "def total(self, a, *, b: int = 1, _c=None, **kwargs) -> int", ("a", "b")),
        ("a.py", ("async def total(", "    a: dict[str, int],", "    b=(1, 2),", "):"),
         "async def total( a: dict[str, int], b=(1, 2), )", ("a", "b")),
        ("a.py", ("def total(a): return a + 1",), "def total(a)", ("a",)),
        ("a.py", ("class total(Base):",), "class total(Base)", ()),
        ("a.js", ("const total = async (a, b = 2) => a + b;",), "const total = async (a, b = 2)", ("a", "b")),
        ("a.ts", ("export function total(a: Map<string, number>, b?: number): number {",),
         "export function total(a: Map<string, number>, b?: number): number", ("a", "b")),
        ("a.js", ("function total({", "  a, b = 1,", "}, c) {"), "function total({ a, b = 1, }, c)",
         ("a", "b", "c")),
        ("a.rs", ("pub fn total<R>(", "    a: R,", ") -> R", "where R: Ord {"), "pub fn total<R>( a: R, ) -> R",
         ("a",)),
        ("a.go", ("func (s *Shop) total(a, b int) (int, error) {",), "func (s *Shop) total(a, b int) (int, error)",
         ("a", "b")),
        ("a.rs", ("pub fn total(&mut self, mut a: Vec<u8>) -> usize {",),
         "pub fn total(&mut self, mut a: Vec<u8>) -> usize", ("a",)),
        ("A.java", ("  public static Map<String, Integer> total(final List<Integer> a, int b) {",),
         "public static Map<String, Integer> total(final List<Integer> a, int b)", ("a", "b")),
        ("a.rb", ("  def total(a, b = 1)",), "def total(a, b = 1)", ("a", "b")),
        ("a.kt", ("fun total(a: Int) = a + 1",), "fun total(a: Int)", ("a",)),
    ],
)  # fmt: skip
def test_the_signature_of_what_tests_call_is_read_off_the_patch(
    path: str, lines: tuple[str, ...], signature: str, parameters: tuple[str, ...]
) -> None:
    test = patched(f"tests/test_{path}", "assert shop.total(1) == 2")
    (found,) = interfaces(replace(CASE, gold=patched(path, *lines), tests=test, fail_to_pass=()))
    assert (found.name, found.signature, found.parameters) == ("total", signature, parameters)


def test_what_the_tests_define_themselves_is_no_interface() -> None:
    gold, test = patched("a.py", "def total(a):"), patched("tests/test_a.py", "def total(b):", "    assert total(1)")
    assert interfaces(replace(CASE, gold=gold, tests=test, fail_to_pass=())) == ()


def test_what_tests_do_not_call_or_the_old_tree_has_is_no_interface() -> None:
    gold = patched("a.py", "def helper(a):", "def total(a):") + " # total was here\n"
    gold = gold.replace("+1,2 @@", "+1,3 @@ def total():")
    test = patched("tests/test_a.py", "assert total(1) == 2")
    assert interfaces(replace(CASE, gold=gold, tests=test, fail_to_pass=())) == ()
