"""Controls of earlier versions, which rest on coins and copies; and the sites of tests that controls are made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from math import comb
from random import Random
from typing import Any

import pytest

from evaluation.controls.blocks import drop_plan, find_blocks, parse_test_file
from evaluation.controls.calls import silence_assertions
from evaluation.controls.planning import BOUND
from evaluation.controls.single import assign_words
from evaluation.controls.sites import Site, list_sites
from guest.controls import blind
from guest.controls.texts import apply_edits

TESTS = """\
def test_one():
    assert add(1, 1) == 2


class TestMore:
    def test_two(self):
        assert add(2, 2) == 4
"""
ONE, TWO = "tests/test_add.py::test_one", "tests/test_add.py::TestMore::test_two"
HONEST = {"add": lambda a, b: a + b}


def make_document(evaluations: int = 2, copies: int = 0, **changes: Any) -> dict[str, Any]:
    """Return the document of two tests with one form each."""
    blocks = []
    for test, old, new in ((ONE, "== 2", "== 3"), (TWO, "== 4", "== 7")):
        name = test.rpartition("::")[2]
        at, named = TESTS.index(old), TESTS.index(name)
        start = TESTS.rindex("def", 0, named)
        blocks.append(
            {
                "file": "tests/test_add.py",
                "span": [start, at + len(old)],
                "name": [named, named + len(name)],
                "blind": True,
                "required": True,
                "forms": [{"edits": [[at, at + len(old), new]], "fails": {test: "assertion"}}],
            }
        )
    return {
        "evaluations": evaluations,
        "copies": copies,
        "files": {"tests/test_add.py": TESTS},
        "blocks": blocks,
        **changes,
    }


def run_tests(content: bytes, functions: dict[str, Callable[..., object]]) -> dict[str, tuple[str, str]]:
    """Return test id -> (status, message) of a file of tests."""
    space: dict[str, Any] = dict(functions)
    exec(compile(content, "t.py", "exec"), space)  # noqa: S102 - our own text
    results = {}
    for name, value in list(space.items()):
        methods = {name: value} if name.startswith("test_") else {}
        if isinstance(value, type) and name.startswith("Test"):
            methods = {f"{name}::{key}": getattr(value(), key) for key in dir(value) if key.startswith("test_")}
        for key, method in methods.items():
            try:
                method()
                results[f"tests/test_add.py::{key}"] = ("passed", "")
            except Exception as error:  # noqa: BLE001 - as a test runner does
                results[f"tests/test_add.py::{key}"] = ("failed", f"{type(error).__name__}: {error}")
    return results


def grade(document: dict[str, Any], functions: dict[str, Callable[..., object]], random: Random) -> blind.Judgement:
    judgement = blind.Judgement([ONE, TWO])
    for evaluation in blind.draw_evaluations(document, random):
        judgement.add(evaluation, run_tests(evaluation.files["tests/test_add.py"], functions))
    return judgement


# --------------------------------------------------------------------------------------------------------- drawing


@pytest.mark.parametrize("copies", [0, 3])
def test_an_honest_solution_is_right_whatever_is_drawn(copies: int) -> None:
    for seed in range(50):
        judgement = grade(make_document(copies=copies), HONEST, Random(seed))
        assert judgement.is_right, (seed, judgement.wrong, judgement.strange)


@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("add", [lambda a, b: a, lambda a, b: a + b if a == 1 else 0])
def test_a_wrong_solution_is_wrong_whatever_is_drawn(copies: int, add: Callable[..., object]) -> None:
    for seed in range(50):
        judgement = grade(make_document(copies=copies), {"add": add}, Random(seed))
        assert TWO in judgement.wrong, seed
        assert not judgement.forged, "a wrong solution is no forgery"


def test_a_value_equal_to_everything_is_a_forgery() -> None:
    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = object.__hash__

    scores = [grade(make_document(evaluations=6), {"add": lambda a, b: Anything()}, Random(n)) for n in range(50)]
    assert all(not score.is_right and score.forged for score in scores)


def test_a_forger_that_knows_the_names_alone_is_found_by_the_originals_though_copies_fail() -> None:
    document, outcomes = make_document(copies=1), []
    for seed in range(30):
        judgement = blind.Judgement([ONE, TWO])
        for evaluation in blind.draw_evaluations(document, Random(seed)):
            results = run_tests(evaluation.files["tests/test_add.py"], {"add": lambda a, b: 0})
            judgement.add(evaluation, results | {ONE: ("passed", ""), TWO: ("passed", "")})
        assert not judgement.is_right
        outcomes.append(bool(judgement.forged))
    assert outcomes.count(True) > 20


def test_each_test_is_real_at_least_once_in_the_first_two_evaluations_and_evenly_sabotaged_else() -> None:
    drawn: Counter[tuple[bool, ...]] = Counter()
    for seed in range(3000):
        evaluations = blind.draw_evaluations(make_document(evaluations=3), Random(seed))
        drawn[tuple(evaluation.expected[ONE] == blind.PASSES for evaluation in evaluations)] += 1
    assert not any(not first and not second for first, second, _ in drawn)
    assert len(drawn) == 6
    assert all(400 < number < 600 for number in drawn.values()), drawn


def test_copies_have_names_that_nobody_knows_beforehand() -> None:
    names = set()
    for seed in range(20):
        for evaluation in blind.draw_evaluations(make_document(copies=2), Random(seed)):
            assert len(evaluation.expected) == 6
            names |= {test for test in evaluation.expected if test not in (ONE, TWO)}
            compile(evaluation.files["tests/test_add.py"], "t.py", "exec")
    assert len(names) == 20 * 2 * 4
    assert all(
        test.startswith(("tests/test_add.py::test_one_", "tests/test_add.py::TestMore::test_two_")) for test in names
    )


def test_a_file_of_real_tests_is_the_file_itself() -> None:
    document = make_document(evaluations=8)
    contents = {
        evaluation.files["tests/test_add.py"]
        for seed in range(10)
        for evaluation in blind.draw_evaluations(document, Random(seed))
        if set(evaluation.expected.values()) == {blind.PASSES}
    }
    assert contents == {TESTS.encode()}


def test_positions_count_bytes() -> None:
    text = "é = '€'\nassert x == 'ü'\n".encode()
    start = text.index("'ü'".encode())
    assert blind.apply_edits(text, [[start, start + 4, "'ö'"]]).decode() == "é = '€'\nassert x == 'ö'\n"


# ---------------------------------------------------------------------------------------------------------- judging


@pytest.mark.parametrize(
    ("wanted", "outcome", "is_right"),
    [
        (blind.PASSES, ("passed", ""), True),
        (blind.PASSES, ("failed", "AssertionError: x"), False),
        (blind.PASSES, ("skipped", ""), False),
        (blind.PASSES, None, False),
        ("assertion", ("failed", "AssertionError: x"), True),
        ("assertion", ("failed", "assert 1 == 2"), True),
        ("assertion", ("failed", "ValueError: x"), False),
        ("assertion", ("error", "AssertionError: x"), False),
        ("assertion", ("passed", ""), False),
        ("assertion", ("skipped", ""), False),
        ("assertion", None, False),
        ("failed", ("failed", "TypeError"), True),
        (blind.ANY_FAILURE, ("failed", "ValueError: x"), True),
        (blind.ANY_FAILURE, ("error", "x"), True),
        (blind.ANY_FAILURE, ("passed", ""), False),
        (blind.ANY_FAILURE, ("skipped", ""), False),
        (blind.ANY_FAILURE, None, False),
        ("error", ("error", "x"), True),
    ],
)
def test_an_outcome_is_right_only_if_it_is_the_expected_one(
    wanted: str, outcome: tuple[str, str] | None, is_right: bool
) -> None:
    for listed in ([ONE], []):  # a listed test, and a copy
        judgement = blind.Judgement(listed)
        judgement.add(blind.Evaluation({}, {ONE: wanted}), {ONE: outcome} if outcome else {})
        assert judgement.is_right == is_right


def test_listed_tests_that_are_not_controlled_must_pass() -> None:
    judgement = blind.Judgement([ONE, TWO])
    judgement.add(blind.Evaluation({}, {ONE: blind.PASSES}), {ONE: ("passed", "")})
    assert list(judgement.wrong) == [TWO]


# ------------------------------------------------------------------------------------------------------------ bound


@pytest.mark.parametrize(
    ("evaluations", "copies", "bound"), [(2, 0, 1 / 9), (3, 0, 1 / 36), (2, 1, 1 / 144), (4, 2, 1 / (12 * 256) ** 2)]
)
def test_the_bound_follows_from_what_can_be_drawn(evaluations: int, copies: int, bound: float) -> None:
    document = make_document(evaluations, copies)
    assert blind.compute_guess_bound(document) == pytest.approx(bound)
    # Without copies a submission may take one text for real and the other for none in every evaluation.
    assert blind.compute_bound(document) == pytest.approx(bound if copies else max(bound, 1 / 4**2))


@pytest.mark.parametrize("field", ["blind", "required"])
def test_tests_whose_text_can_be_compared_or_that_are_not_required_do_not_count(field: str) -> None:
    document = make_document(3)
    document["blocks"][0][field] = False
    assert blind.compute_guess_bound(document) == pytest.approx(1 / 6)
    assert blind.compute_bound(document) == pytest.approx(1 / 4)
    document["blocks"][1][field] = False
    assert blind.compute_bound(document) == 1


@pytest.mark.parametrize(("evaluations", "copies"), [(2, 0), (3, 0), (2, 1)])
def test_forgers_by_coin_are_paid_at_most_as_often_as_the_bound_allows(evaluations: int, copies: int) -> None:
    """The forger fails each test by chance, and reports what a test of that outcome would."""
    document, paid, gradings = make_document(evaluations, copies), 0, 4000
    for seed in range(gradings):
        coin, judgement = Random(seed + 1), blind.Judgement([ONE, TWO])
        share = 0.5 if copies else 2 / 3  # the best odds: originals are real in two of three draws
        for evaluation in blind.draw_evaluations(document, Random(-seed - 1)):
            results = {
                test: ("passed", "") if coin.random() < share else ("failed", "AssertionError")
                for test in evaluation.expected
            }
            judgement.add(evaluation, results)
        paid += judgement.is_right
    bound = blind.compute_bound(document)
    deviation = (bound * (1 - bound) / gradings) ** 0.5
    assert paid / gradings <= bound + 4 * deviation
    assert paid, "a forger that is never paid tests nothing here"


# --------------------------------------------------------------------------------------------------- blocks and forms

SOURCES: dict[str, tuple[str, list[str | None], list[str]]] = {
    "test_a.py": (
        (
            "class TestX:\n    @mark.x\n    def test_a(self):\n        assert f(1) == 2, 'no'\n\n"
            "    def helper(self): assert 1\n\n\n"
            "async def test_b(): assert g() == 'one 2'\n"
        ),
        ["test_a", "test_b"],
        ["2", "'one 2'"],
    ),
    "a_test.go": (
        (
            'package a\nfunc TestX(t *testing.T) { if got := f(1); got != 3 { t.Errorf("no %d", 4) } }\n'
            "func helper() {}\n"
            'func TestY(t *testing.T) { assert.Equal(t, "why", g()) }\n'
        ),
        ["TestX", "TestY"],
        ["3", '"why"'],
    ),
    "a.test.js": (
        (
            'describe("d", () => { it("adds", () => { expect(f(1)).toBe(3); });\n'
            '  test("names", async function () { assert.strictEqual(g(), "ab"); }); });\n'
        ),
        ["adds", "names"],
        ["3", '"ab"'],
    ),
    "a.test.ts": (
        'it("adds", (): void => { expect(f<number>(1)).toEqual(3); });\n',
        ["adds"],
        ["3"],
    ),
    "lib.rs": (
        "#[cfg(test)]\nmod tests {\n    /// Why.\n    #[test]\n    fn adds() { assert_eq!(f(1), 3); }\n}\n",
        ["adds"],
        ["3"],
    ),
    "ATest.java": (
        (
            "class ATest { @Test void adds() { assertEquals(3, f(1)); } void helper() {}\n"
            '  @Test void names() { assertThat(g(1)).isEqualTo("ab"); } }\n'
        ),
        ["adds", "names"],
        ["3", '"ab"'],
    ),
    "ATest.kt": (
        "class ATest {\n  @Test fun `adds up`() {\n    assertEquals(3, f(1))\n  }\n  fun helper() {}\n}\n",
        ["adds up"],
        ["3"],
    ),
    "a_test.c": ("int main(void) {\n  assert(f(1) == 3);\n}\n", [None], ["3"]),
    "a_test.cpp": (
        'TEST(Suite, Adds) { EXPECT_EQ(3, f(1)); }\nTEST_CASE("adds up") { REQUIRE(f(1) == 3); }\n',
        ["Adds", "adds up"],
        ["3", "3"],
    ),
    "a_test.rb": (
        (
            "class T < Minitest::Test\n  def test_a\n    assert_equal 3, f(1)\n  end\nend\n"
            'describe "d" do\n  it "adds" do\n'
            '    expect(f(1)).to eq("ab")\n  end\nend\n'
        ),
        ["test_a", "adds"],
        ["3", '"ab"'],
    ),
    "ATest.php": (
        (
            "<?php class ATest { /** @test */ function adds() { $this->assertSame(3, f(1)); } function no() {} }\n"
            'it("names", function () { expect(g())->toBe("ab"); });\n'
        ),
        ["adds", "names"],
        ["3", '"ab"'],
    ),
    "a.t": (
        (
            'use Test::More;\nsubtest "adds" => sub { is(f(1), 3, "sum"); };\nis g(1), "ab", "top";\n'
            "cmp_ok(h(1), '==', 4, 'of four');\nis(i(1), 5);\nis(j(1), 6, \"of $x\");\n"
        ),
        ["adds", "top", "of four", None, None],
        ["3", '"ab"', "4", "5", "6"],
    ),
    "a_test.exs": (
        'defmodule T do\n  test "adds" do\n    assert f(1) == 3\n  end\nend\n',
        ["adds"],
        ["3"],
    ),
}
"""File -> content, names of its tests, and the literal that each compares a result with."""


@pytest.mark.parametrize("path", SOURCES)
def test_tests_and_what_they_compare_with_are_found(path: str) -> None:
    source, names, compared = SOURCES[path]
    file = parse_test_file(path, source.encode())
    assert file is not None
    blocks = find_blocks(file)
    assert [source[slice(*block.name_span)] if block.name_span else None for block in blocks] == names
    for block, literal in zip(blocks, compared, strict=True):
        best = list_sites(file, block, frozenset(), Random(1))[0]
        assert best.literal == literal
        ((start, end),) = best.spans
        assert source[start:end] in literal
        assert len(set(best.texts)) == len(best.texts)
        for text in best.texts:
            assert text != source[start:end]
            assert type_of(text) == type_of(source[start:end])


@pytest.mark.parametrize(
    ("check", "silent"),
    [
        ("ok(!f(1), 'is false');", "(sub { pass($_[-1]) })->(!f(1), 'is false');"),
        ("is f(1), 3, 'sum';", "(sub { pass($_[-1]) })->(f(1), 3, 'sum');"),
        ("can_ok('Main', 'f');", "can_ok('Main', 'f');"),
    ],
)
def test_a_check_of_perl_computes_its_arguments_and_asserts_nothing(check: str, silent: str) -> None:
    file = parse_test_file("a.t", f"use Test::More;\n{check}\n".encode())
    assert file is not None
    (block,) = find_blocks(file)
    assert apply_edits(file.source, silence_assertions(file, block)).decode().splitlines()[1] == silent


@pytest.mark.parametrize(
    ("declared", "open_ended"),
    [
        ("use Test::More tests => 12;", "use Test::More 'no_plan';"),
        ("use Test::More 0.96 tests=>3 + 4;", "use Test::More 0.96 'no_plan';"),
        ("BEGIN { plan(tests => 5) }", "BEGIN { plan('no_plan') }"),
        ("plan tests => 2 * @cases;", "plan tests => 2 * @cases;"),
        ("is(f(tests => 2), 2, 'two');", "is(f(tests => 2), 2, 'two');"),
    ],
)
def test_a_number_of_tests_that_a_file_declares_is_left_out(declared: str, open_ended: str) -> None:
    assert drop_plan("t/a.t", declared.encode()).decode() == open_ended


def test_files_without_plans_stay_as_they_are() -> None:
    source = b"def test_it():\n    assert plan(tests=1) == 2\n"
    assert drop_plan("test_a.py", source) == source
    assert drop_plan("data.bin", b"\xff") == b"\xff"


def type_of(literal: str) -> str:
    """Return the first letter of a literal, `0` for any digit and `a` for any letter: another of its shape has the
    same."""
    return "0" if literal[0].isdigit() else "a" if literal[0].isalpha() else literal[0]


def test_a_line_that_the_tree_has_already_is_changed_last() -> None:
    source = b"def test_a():\n    assert f() == 1\n    assert g() == 2\n"
    file = parse_test_file("test_a.py", source)
    assert file is not None
    (block,) = find_blocks(file)
    for old, literal in ((b"assert f() == 1", b"2"), (b"assert g() == 2", b"1")):
        best = list_sites(file, block, frozenset([old]), Random(1))[0]
        assert [source[start:end] for start, end in best.spans] == [literal]


@pytest.mark.parametrize(
    ("send", "path"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", "test_a.py"),
        ("process.kill(process.pid, 'SIGTERM');", "a.test.js"),
        ("_thread.interrupt_main()", "test_a.py"),
    ],
)
def test_inputs_of_a_test_that_sends_a_signal_are_not_changed(send: str, path: str) -> None:
    python = "def test_a():\n    {}\n    assert watch(300) == 'done'\n"
    source = python if path.endswith(".py") else "test('a', () => {{\n  {}\n  expect(watch(300)).toBe('done');\n}});\n"
    for sent, has_inputs in (("pass", True), (send, False)):
        file = parse_test_file(path, source.format(sent).encode())
        assert file is not None
        (block,) = find_blocks(file)
        sites = list_sites(file, block, frozenset(), Random(1))
        assert any(site.is_input for site in sites) is has_inputs
        assert sites[0].literal == "'done'"


def test_a_line_of_the_tree_has_the_texts_of_other_lines_of_it() -> None:
    """They are as well known as the true text, which thus is not given away."""
    source = b"def test_a():\n    assert f() == [\n        'ab',\n        'xy',\n    ]\n"
    file = parse_test_file("tests/test_a.py", source)
    assert file is not None
    (block,) = find_blocks(file)
    known = frozenset((b"assert f() == [", b"'ab',", b"'cd',", b"'xy',"))
    sites = [site for site in list_sites(file, block, known, Random(1)) if not site.is_known]
    assert {site.texts for site in sites} == {("xy",), ("'xy'",), ("ab",), ("'ab'",)}
    unknown = list_sites(file, block, frozenset((b"'ab',",)), Random(1))
    assert {site.is_known for site in unknown if site.spans[0][0] == source.index(b"ab")} == {True}


def test_docstrings_and_echoed_inputs_come_last_or_not_at_all() -> None:
    source = b"def test_a():\n    'Adds words.'\n    a = g('one', 'two')\n    b = g('two')\n    assert f(a, b)\n"
    file = parse_test_file("tests/test_a.py", source)
    assert file is not None
    (block,) = find_blocks(file)
    literals = [site.literal for site in list_sites(file, block, frozenset(), Random(1)) if site.is_input]
    assert literals == sorted(literals)
    assert set(literals) == {"'one'", "'two'"}


def write_texts(source: str, site: Site) -> list[str]:
    """Return the source with each other text of a site."""
    return [
        blind.apply_edits(source.encode(), [[start, end, text] for start, end in site.spans]).decode()
        for text in site.texts
    ]


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ("expected, other = g()\n    assert f(x) == expected", "assert f(x) == other"),
        ("assert not f(x)", "assert f(x)"),
        ("with pytest.raises(ValueError): f(x)", None),
        ("self.assertTrue(f(x))", "self.assertFalse(f(x))"),
        ("self.assertEqual(f(x), y)", "self.assertNotEqual(f(x), y)"),
        ("assert x in y", "assert x not in y"),
    ],
)
def test_tests_without_literals_have_sites(body: str, changed: str | None) -> None:
    source = f"def test_a(self):\n    {body}\n"
    file = parse_test_file("test_a.py", source.encode())
    assert file is not None
    (block,) = find_blocks(file)
    texts = [text for site in list_sites(file, block, frozenset(), Random(1)) for text in write_texts(source, site)]
    assert texts
    for text in texts:
        compile(text, "t.py", "exec")
    assert (changed is None) or any(changed in text for text in texts), texts
    assert changed is not None or "ValueError" not in texts[0]


@pytest.mark.parametrize(
    ("line", "inverted"),
    [
        ("require.NoError(t, err)", "require.Error(t, err)"),
        ("s.Require().NoError(err)", "s.Require().Error(err)"),
        ("suite.Contains(f(), x)", "suite.NotContains(f(), x)"),
        ("is.True(f())", "is.False(f())"),
        ("t.Error(err)", None),
        ("f(err.Error())", None),
        ("f(strings.Contains(x, y))", None),
    ],
)
def test_members_are_inverted_where_they_are_assertions(line: str, inverted: str | None) -> None:
    source = f"package a\n\nfunc TestA(t *testing.T) {{\n\t{line}\n}}\n"
    file = parse_test_file("a_test.go", source.encode())
    assert file is not None
    (block,) = find_blocks(file)
    sites = list_sites(file, block, frozenset(), Random(1))
    texts = [text for site in sites for text in write_texts(source, site)]
    assert texts == ([source.replace(line, inverted)] if inverted else [])


SWITCH = """\
package a

func TestA(t *testing.T) {
	for _, part := range []string{"major", "minor"} {
		switch part {
		case "major":
			got = major()
		case "minor":
			got = minor()
		}
	}
	if want := map[string]int{"major": 7, "minor": 8}; got != want {
		t.Error(got)
	}
}
"""


def test_no_label_or_key_becomes_equal_to_another() -> None:
    """Go compiles no file with two equal ones, so that no test of it would have a control."""
    file = parse_test_file("a_test.go", SWITCH.encode())
    assert file is not None
    (block,) = find_blocks(file)
    sites = list_sites(file, block, frozenset(), Random(1))
    for site in sites:
        for text in write_texts(SWITCH, site):
            cases, keys = re.findall('case ("[^"]*")', text), re.findall('("[^"]*"):? [78]', text)
            assert len(set(cases)) == len(cases) == 2, text
            assert len(set(keys)) == len(keys), text
    texts = [text for site in sites for text in write_texts(SWITCH, site)]
    assert any('{"minor", "minor"}' in text or '{"major", "major"}' in text for text in texts)


@pytest.mark.parametrize("content", [b"\xff\xfe", b""])
def test_files_without_tests_have_no_sites(content: bytes) -> None:
    file = parse_test_file("test_a.py", content)
    assert file is None or not list_sites(file, find_blocks(file)[0], frozenset(), Random(1))
    assert parse_test_file("data.bin", b"x") is None


@pytest.mark.parametrize("number", [*range(1, 40), 70, 252])
def test_no_form_is_used_in_all_runs_of_another(number: int) -> None:
    length, words = assign_words(number)
    assert len(set(words)) == number
    assert comb(length, (length + 1) // 2) >= number
    assert not any(first < second for first in words for second in words)
    assert all(max(word) < length for word in words)


def test_the_wanted_bound_is_the_documented_one() -> None:
    assert BOUND == 1 / 1000
