"""Findings of each rule, and texts that must not be findings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from taskdb.records.verdicts import Finding
from tests.verifiers.judge.change import CASE
from verifiers.judge.assess import assess
from verifiers.judge.case import JudgeCase
from verifiers.judge.rules import DECISIVE, apply_rules


def make_patch(path: str, *lines: str, heading: str = "") -> str:
    """Return a diff of one hunk; lines without a mark are context."""
    body = [line if line[:1] in "+-" else f" {line}" for line in lines]
    old, new = (sum(line[0] in marks for line in body) for marks in ("- ", "+ "))
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@ {heading}"
    return "\n".join([head, *body]) + "\n"


def make_case(
    statement: str = "It greets nobody when it should.", *, gold: str = "", tests: str = "", **more: object
) -> JudgeCase:
    fields = {
        "name": "ada__greet-7",
        "repo": "ada/greet",
        "statement": statement,
        "gold_patch": gold,
        "test_patch": tests,
        **more,
    }
    return JudgeCase(**fields)  # type: ignore[arg-type]


def find_quotes(of: JudgeCase, rule: str) -> list[Finding]:
    return [finding for finding in apply_rules(of) if finding.rule == rule]


# ---------------------------------------------------------------------------------------------------- messages

RAISES = make_patch("greet.py", "def greet(name):", "+    raise ValueError(f'nobody of the name {name} is here')")
LOOKS = make_patch(
    "tests/test_greet.py", "+    with pytest.raises(ValueError, match=r'nobody of the name .* is here'):"
)


def test_a_message_that_only_the_patch_contains_is_found_and_quoted() -> None:
    (finding,) = find_quotes(make_case(gold=RAISES, tests=LOOKS), "message-not-stated")
    assert finding.quote == "nobody of the name .* is here"
    assert finding.quote in LOOKS
    assert "nobody of the" in finding.detail


@pytest.mark.parametrize(
    "statement",
    ["It should say `nobody of the name X is here`.", "Expected: ValueError: Nobody of the name 'Bo' is here!"],
)
def test_a_stated_message_is_no_finding(statement: str) -> None:
    assert not find_quotes(make_case(statement, gold=RAISES, tests=LOOKS), "message-not-stated")


def test_a_message_of_the_base_tree_or_of_old_lines_is_no_finding() -> None:
    def mentions(texts: Collection[str]) -> set[str]:
        return set(texts)

    assert not find_quotes(make_case(gold=RAISES, tests=LOOKS, find_in_base_tree=mentions), "message-not-stated")
    moved = RAISES.replace("def greet(name):", "# nobody of the name NAME is here")
    assert not find_quotes(make_case(gold=moved, tests=LOOKS), "message-not-stated")


def test_accidentally_equal_words_are_no_message() -> None:
    gold = make_patch("a.rb", "+  raise Oops, 'the name of this package is not valid in any version of the index'")
    assert not find_quotes(
        make_case(gold=gold, tests=make_patch("t.rb", "+  insist { 'this is not valid' }")), "message-not-stated"
    )


def test_titles_of_tests_are_no_messages() -> None:
    gold = make_patch("a.js", "+// x", "+describe('greets every one of them', run)")
    tests = make_patch("a.test.js", "+  it('greets every one of them', () => {})")
    assert not find_quotes(make_case(gold=gold, tests=tests), "message-not-stated")


@pytest.mark.parametrize(
    ("source", "written", "test", "expected"),
    [
        (
            "a.go",
            '+\treturn fmt.Errorf("cannot greet %s twice a day", n)',
            "a_test.go",
            '+\tassert.EqualError(t, err, "cannot greet Bo twice a day")',
        ),
        (
            "src/a.rs",
            '+    panic!("cannot greet {} twice a day", n)',
            "tests/a.rs",
            '+#[should_panic(expected = "cannot greet Bo twice a day")]',
        ),
        (
            "A.java",
            '+  throw new Oops("cannot greet " + n + " twice a day");',
            "ATest.java",
            '+  assertEquals("cannot greet Bo twice a day", e.getMessage());',
        ),
        (
            "a.ts",
            "+  throw new Error(`cannot greet ${n} twice a day`)",
            "a.test.ts",
            "+  expect(f).toThrow('cannot greet Bo twice a day')",
        ),
    ],
)
def test_messages_are_found_in_other_languages(source: str, written: str, test: str, expected: str) -> None:
    (finding,) = find_quotes(
        make_case(gold=make_patch(source, written), tests=make_patch(test, expected)), "message-not-stated"
    )
    assert "greet Bo twice a day" in finding.quote


def test_tests_that_passed_before_require_nothing() -> None:
    tests = make_patch(
        "tests/test_greet.py", "def test_old():", "+    assert said() == 'nobody of the name Bo is here'"
    )
    listed = {"fail_to_pass": ("tests/test_greet.py::test_new",), "pass_to_pass": ("tests/test_greet.py::test_old",)}
    assert not find_quotes(make_case(gold=RAISES, tests=tests, **listed), "message-not-stated")
    assert find_quotes(make_case(gold=RAISES, tests=tests), "message-not-stated")


# ------------------------------------------------------------------------------------------------------- names

MAKES = make_patch("greet.py", "+def shout_loudly(name, *, volume_level=3):", "+    self.loudness = volume_level")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("+from greet import shout_loudly", "function shout_loudly"),
        ("+    assert greet('a', volume_level=4)", "parameter volume_level"),
        ("+    assert thing.loudness == 3", "attribute loudness"),
    ],
)
def test_an_unstated_new_name_that_the_tests_use_is_found(line: str, what: str) -> None:
    (finding,) = find_quotes(make_case(gold=MAKES, tests=make_patch("tests/test_greet.py", line)), "name-not-stated")
    assert finding.quote == line[1:].strip()
    assert what in finding.detail


@pytest.mark.parametrize(
    "statement", ["Please add shout_loudly.", "We need a `shoutLoudly`.", "It should shout loudly."]
)
def test_a_name_stated_in_any_spelling_is_no_finding(statement: str) -> None:
    tests = make_patch("tests/test_greet.py", "+from greet import shout_loudly")
    assert not find_quotes(make_case(statement, gold=MAKES, tests=tests), "name-not-stated")


@pytest.mark.parametrize(
    "line", ["+    volume_level = 3", "+def test_it(volume_level):", "+    for loudness in (1, 2):", "+    other()"]
)
def test_names_defined_by_the_tests_are_no_findings(line: str) -> None:
    assert not find_quotes(make_case(gold=MAKES, tests=make_patch("tests/test_greet.py", line)), "name-not-stated")


def test_options_and_new_modules_are_names_as_well() -> None:
    gold = make_patch("cli.py", "+    parser.add_argument('--very-loud')") + make_patch(
        "greet/choir.py", "+x = 1"
    ).replace("--- a/greet/choir.py", "new file mode 100644\n--- /dev/null")
    tests = make_patch("tests/test_cli.py", "+from greet.choir import x", "+    run('--very-loud')")
    details = [finding.detail for finding in find_quotes(make_case(gold=gold, tests=tests), "name-not-stated")]
    assert [detail.split(", which")[0] for detail in details] == [
        "the tests use the module choir",
        "the tests use the option --very-loud",
    ]


# ------------------------------------------------------------------------------------------------------ values


def test_unstated_long_values_are_found() -> None:
    lines = ("+    assert area(2) == 12.566370", "+    x = 98765432", "+    assert name() == 'an unheard of name'")
    findings = find_quotes(make_case(tests=make_patch("tests/test_a.py", *lines)), "value-not-stated")
    assert [finding.quote for finding in findings] == ["12.566370", "an unheard of name"]
    stated = make_case("12.566370 is right, and 'an unheard of name'", tests=make_patch("tests/test_a.py", *lines))
    assert not find_quotes(stated, "value-not-stated")


# ---------------------------------------------------------------------------------------------------- solution


def test_a_line_of_the_patch_is_quoted_as_the_statement_writes_it() -> None:
    gold = make_patch("greet.py", "+    return template.format(name=name.strip())")
    (finding,) = find_quotes(
        make_case("Use\n   return  template.format(name=name.strip())", gold=gold), "solution-line"
    )
    assert finding.quote == "return  template.format(name=name.strip())"
    shown = make_patch(
        "greet.py", "-  return template.format(name=name.strip())", "+    return template.format(name=name.strip())"
    )
    assert not find_quotes(make_case("return template.format(name=name.strip())", gold=shown), "solution-line")


@pytest.mark.parametrize(
    ("statement", "rule", "quote"),
    [
        ("See https://github.com/ada/greet/pull/9.", "solution-link", "https://github.com/ada/greet/pull/9."),
        ("This is #7, see there.", "solution-number", "#7"),
        ("Done in abcdef123.", "solution-commit", "abcdef123"),
        ("I did\n```diff\n-a\n+b\n```", "statement-patch", "```diff"),
    ],
)
def test_references_to_the_solution_are_found(statement: str, rule: str, quote: str) -> None:
    (finding,) = find_quotes(make_case(statement, number=7, merge_commit="abcdef1234567890"), rule)
    assert finding.quote == quote


def test_other_numbers_and_commits_are_no_findings() -> None:
    rules = {
        finding.rule
        for finding in apply_rules(make_case("As in #77, broken by 1234567.", number=7, merge_commit="ab" * 20))
    }
    assert not rules & {"solution-number", "solution-commit"}


def test_hints_that_mention_the_fix_are_found() -> None:
    for hints, quote in [("Fixed in #12, thanks", "Fixed in #12"), ("I opened a PR for it.", "opened a PR for it")]:
        (finding,) = find_quotes(make_case(hints=hints), "hints-after-fix")
        assert finding.quote == quote
    assert not find_quotes(make_case(hints="I can fix this, see #3."), "hints-after-fix")


# --------------------------------------------------------------------------------------------------- statement


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("", "statement-empty"),
        ("  \n", "statement-empty"),
        ("![screen](https://example.com/a.png)", "statement-image-only"),
        ("https://forum.example.com/t/12", "statement-link-only"),
        ("<!-- Please describe -->\n### Summary\n- [ ] I have read", "statement-template-only"),
    ],
)
def test_an_empty_statement_is_set_aside(statement: str, rule: str) -> None:
    stated = assess(make_case(statement))
    assert (stated.set_aside, stated.underspecified) == (rule, 0.95)
    assert rule in DECISIVE


@pytest.mark.parametrize("statement", ["Fix the greeting of nobody", "`greet` fails", "```\ngreet()\n```"])
def test_a_short_statement_is_not_set_aside(statement: str) -> None:
    assert assess(make_case(statement)).set_aside is None


@pytest.mark.parametrize(
    ("statement", "language"),
    [
        ("当名字为空时问候语是错误的", "Chinese or Japanese"),
        ("Когда имя пустое, приветствие неверное", "a language in Cyrillic letters"),
        ("Cuando el nombre está vacío, la función no saluda a nadie y el programa termina con un error", "Spanish"),
        ("Wenn der Name leer ist, wird die Funktion mit einem Fehler beendet und das ist nicht gut", "German"),
    ],
)
def test_other_languages_are_detected(statement: str, language: str) -> None:
    (finding,) = find_quotes(make_case(statement), "statement-language")
    assert finding.detail.endswith(language)
    assert finding.quote in statement


def test_english_with_foreign_names_is_english() -> None:
    statement = "The name of the café in La Plata is not shown when the user is in Пермь, and it should be on the page"
    assert not find_quotes(make_case(statement), "statement-language")


def test_a_statement_without_behaviour_is_found() -> None:
    assert find_quotes(make_case("Greetings and salutations of all kinds"), "statement-no-behaviour")
    assert not find_quotes(make_case("Greetings should be polite to everybody"), "statement-no-behaviour")


# ----------------------------------------------------------------------------------------------------- together


def test_every_quote_occurs_in_its_source() -> None:
    findings = apply_rules(CASE)
    texts = {"statement": CASE.statement, "hints": CASE.hints, "tests": CASE.test_patch, "patch": CASE.gold_patch}
    assert {"message-not-stated", "name-not-stated"} <= {finding.rule for finding in findings}
    assert all(finding.quote in texts[finding.quote_source] for finding in findings)


def test_probabilities_rise_with_unstated_information() -> None:
    vague, stated = (
        assess(make_case(gold=RAISES, tests=LOOKS)),
        assess(make_case("It should say nobody of the name is here", gold=RAISES, tests=LOOKS)),
    )
    assert vague.unfair_tests > stated.unfair_tests
    assert vague.underspecified > stated.underspecified


def test_an_empty_case_is_judged() -> None:
    stated = assess(replace(CASE, gold_patch="", test_patch="", fail_to_pass=()))
    assert 0 < stated.underspecified < 1
    assert 0 < stated.unfair_tests < 1
