"""What each rule sees, and what it must not take for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from taskdb.verdicts import Finding
from tests.verifiers.judge.change import CASE
from verifiers.judge.assess import assess
from verifiers.judge.case import Case
from verifiers.judge.rules import DECISIVE, findings_of


def patch(path: str, *lines: str, heading: str = "") -> str:
    """A diff of one hunk; lines without a mark are context."""
    body = [line if line[:1] in "+-" else f" {line}" for line in lines]
    old, new = (sum(line[0] in marks for line in body) for marks in ("- ", "+ "))
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@ {heading}"
    return "\n".join([head, *body]) + "\n"


def case(
    statement: str = "It greets nobody when it should.", *, gold: str = "", tests: str = "", **more: object
) -> Case:
    given = {"name": "ada__greet-7", "repo": "ada/greet", "statement": statement, "gold": gold, "tests": tests, **more}
    return Case(**given)  # type: ignore[arg-type]


def found(of: Case, rule: str) -> list[Finding]:
    return [finding for finding in findings_of(of) if finding.rule == rule]


# ---------------------------------------------------------------------------------------------------- messages

RAISES = patch("greet.py", "def greet(name):", "+    raise ValueError(f'nobody of the name {name} is here')")
LOOKS = patch("tests/test_greet.py", "+    with pytest.raises(ValueError, match=r'nobody of the name .* is here'):")


def test_a_message_that_only_the_patch_knows_is_found_and_quoted() -> None:
    (finding,) = found(case(gold=RAISES, tests=LOOKS), "message-not-stated")
    assert finding.quote == "nobody of the name .* is here"
    assert finding.quote in LOOKS
    assert "nobody of the" in finding.detail


@pytest.mark.parametrize(
    "statement",
    ["It should say `nobody of the name X is here`.", "Expected: ValueError: Nobody of the name 'Bo' is here!"],
)
def test_a_message_that_the_statement_tells_is_no_finding(statement: str) -> None:
    assert not found(case(statement, gold=RAISES, tests=LOOKS), "message-not-stated")


def test_a_message_of_the_base_tree_or_of_old_lines_is_no_finding() -> None:
    def mentions(texts: Collection[str]) -> set[str]:
        return set(texts)

    assert not found(case(gold=RAISES, tests=LOOKS, mentions=mentions), "message-not-stated")
    moved = RAISES.replace("def greet(name):", "# nobody of the name NAME is here")
    assert not found(case(gold=moved, tests=LOOKS), "message-not-stated")


def test_words_that_are_the_same_by_chance_are_no_message() -> None:
    gold = patch("a.rb", "+  raise Oops, 'the name of this package is not valid in any version of the index'")
    assert not found(case(gold=gold, tests=patch("t.rb", "+  insist { 'this is not valid' }")), "message-not-stated")


def test_titles_of_tests_are_no_messages() -> None:
    gold = patch("a.js", "+// x", "+describe('greets every one of them', run)")
    tests = patch("a.test.js", "+  it('greets every one of them', () => {})")
    assert not found(case(gold=gold, tests=tests), "message-not-stated")


@pytest.mark.parametrize(
    ("source", "written", "test", "asked"),
    [
        ("a.go", '+\treturn fmt.Errorf("cannot greet %s twice a day", n)', "a_test.go",
         '+\tassert.EqualError(t, err, "cannot greet Bo twice a day")'),
        ("src/a.rs", '+    panic!("cannot greet {} twice a day", n)', "tests/a.rs",
         '+#[should_panic(expected = "cannot greet Bo twice a day")]'),
        ("A.java", '+  throw new Oops("cannot greet " + n + " twice a day");', "ATest.java",
         '+  assertEquals("cannot greet Bo twice a day", e.getMessage());'),
        ("a.ts", "+  throw new Error(`cannot greet ${n} twice a day`)", "a.test.ts",
         "+  expect(f).toThrow('cannot greet Bo twice a day')"),
    ],
)  # fmt: skip
def test_messages_are_found_in_other_languages(source: str, written: str, test: str, asked: str) -> None:
    (finding,) = found(case(gold=patch(source, written), tests=patch(test, asked)), "message-not-stated")
    assert "greet Bo twice a day" in finding.quote


def test_tests_that_passed_before_demand_nothing() -> None:
    tests = patch("tests/test_greet.py", "def test_old():", "+    assert said() == 'nobody of the name Bo is here'")
    listed = {"fail_to_pass": ("tests/test_greet.py::test_new",), "pass_to_pass": ("tests/test_greet.py::test_old",)}
    assert not found(case(gold=RAISES, tests=tests, **listed), "message-not-stated")
    assert found(case(gold=RAISES, tests=tests), "message-not-stated")


# ------------------------------------------------------------------------------------------------------- names

MAKES = patch("greet.py", "+def shout_loudly(name, *, volume_level=3):", "+    self.loudness = volume_level")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("+from greet import shout_loudly", "function shout_loudly"),
        ("+    assert greet('a', volume_level=4)", "parameter volume_level"),
        ("+    assert thing.loudness == 3", "attribute loudness"),
    ],
)
def test_a_new_name_that_the_tests_use_and_nobody_told_is_found(line: str, what: str) -> None:
    (finding,) = found(case(gold=MAKES, tests=patch("tests/test_greet.py", line)), "name-not-stated")
    assert finding.quote == line[1:].strip()
    assert what in finding.detail


@pytest.mark.parametrize(
    "statement", ["Please add shout_loudly.", "We need a `shoutLoudly`.", "It should shout loudly."]
)
def test_a_name_that_the_statement_has_in_any_spelling_is_no_finding(statement: str) -> None:
    tests = patch("tests/test_greet.py", "+from greet import shout_loudly")
    assert not found(case(statement, gold=MAKES, tests=tests), "name-not-stated")


@pytest.mark.parametrize(
    "line", ["+    volume_level = 3", "+def test_it(volume_level):", "+    for loudness in (1, 2):", "+    other()"]
)
def test_names_that_the_tests_give_themselves_are_no_findings(line: str) -> None:
    assert not found(case(gold=MAKES, tests=patch("tests/test_greet.py", line)), "name-not-stated")


def test_options_and_new_modules_are_names_too() -> None:
    gold = patch("cli.py", "+    parser.add_argument('--very-loud')") + patch("greet/choir.py", "+x = 1").replace(
        "--- a/greet/choir.py", "new file mode 100644\n--- /dev/null"
    )
    tests = patch("tests/test_cli.py", "+from greet.choir import x", "+    run('--very-loud')")
    details = [finding.detail for finding in found(case(gold=gold, tests=tests), "name-not-stated")]
    assert [detail.split(", which")[0] for detail in details] == [
        "the tests use the module choir", "the tests use the option --very-loud",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------ values


def test_long_values_that_are_told_nowhere_are_found() -> None:
    lines = ("+    assert area(2) == 12.566370", "+    x = 98765432", "+    assert name() == 'an unheard of name'")
    findings = found(case(tests=patch("tests/test_a.py", *lines)), "value-not-stated")
    assert [finding.quote for finding in findings] == ["12.566370", "an unheard of name"]
    told = case("12.566370 is right, and 'an unheard of name'", tests=patch("tests/test_a.py", *lines))
    assert not found(told, "value-not-stated")


# ---------------------------------------------------------------------------------------------------- solution


def test_a_line_of_the_patch_in_the_statement_is_quoted_as_it_stands_there() -> None:
    gold = patch("greet.py", "+    return template.format(name=name.strip())")
    (finding,) = found(case("Use\n   return  template.format(name=name.strip())", gold=gold), "solution-line")
    assert finding.quote == "return  template.format(name=name.strip())"
    shown = patch(
        "greet.py", "-  return template.format(name=name.strip())", "+    return template.format(name=name.strip())"
    )
    assert not found(case("return template.format(name=name.strip())", gold=shown), "solution-line")


@pytest.mark.parametrize(
    ("statement", "rule", "quote"),
    [
        ("See https://github.com/ada/greet/pull/9.", "solution-link", "https://github.com/ada/greet/pull/9."),
        ("This is #7, see there.", "solution-number", "#7"),
        ("Done in abcdef123.", "solution-commit", "abcdef123"),
        ("I did\n```diff\n-a\n+b\n```", "statement-patch", "```diff"),
    ],
)
def test_ways_to_the_solution_are_found(statement: str, rule: str, quote: str) -> None:
    (finding,) = found(case(statement, number=7, merge_commit="abcdef1234567890"), rule)
    assert finding.quote == quote


def test_other_numbers_and_commits_are_no_findings() -> None:
    rules = {
        finding.rule for finding in findings_of(case("As in #77, broken by 1234567.", number=7, merge_commit="ab" * 20))
    }
    assert not rules & {"solution-number", "solution-commit"}


def test_hints_that_know_the_fix_are_found() -> None:
    for hints, quote in [("Fixed in #12, thanks", "Fixed in #12"), ("I opened a PR for it.", "opened a PR for it")]:
        (finding,) = found(case(hints=hints), "hints-after-fix")
        assert finding.quote == quote
    assert not found(case(hints="I can fix this, see #3."), "hints-after-fix")


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
def test_a_statement_that_says_nothing_is_set_aside(statement: str, rule: str) -> None:
    told = assess(case(statement))
    assert (told.set_aside, told.underspecified) == (rule, 0.95)
    assert rule in DECISIVE


@pytest.mark.parametrize("statement", ["Fix the greeting of nobody", "`greet` fails", "```\ngreet()\n```"])
def test_a_short_statement_is_not_set_aside(statement: str) -> None:
    assert assess(case(statement)).set_aside is None


@pytest.mark.parametrize(
    ("statement", "language"),
    [
        ("当名字为空时问候语是错误的", "Chinese or Japanese"),
        ("Когда имя пустое, приветствие неверное", "a language in Cyrillic letters"),
        ("Cuando el nombre está vacío, la función no saluda a nadie y el programa termina con un error", "Spanish"),
        ("Wenn der Name leer ist, wird die Funktion mit einem Fehler beendet und das ist nicht gut", "German"),
    ],
)
def test_other_languages_are_told(statement: str, language: str) -> None:
    (finding,) = found(case(statement), "statement-language")
    assert finding.detail.endswith(language)
    assert finding.quote in statement


def test_english_with_foreign_names_is_english() -> None:
    statement = "The name of the café in La Plata is not shown when the user is in Пермь, and it should be on the page"
    assert not found(case(statement), "statement-language")


def test_nothing_on_behaviour_is_found() -> None:
    assert found(case("Greetings and salutations of all kinds"), "statement-no-behaviour")
    assert not found(case("Greetings should be polite to everybody"), "statement-no-behaviour")


# ----------------------------------------------------------------------------------------------------- together


def test_every_quote_stands_where_it_is_said_to_be() -> None:
    found_ = findings_of(CASE)
    texts = {"statement": CASE.statement, "hints": CASE.hints, "tests": CASE.tests, "patch": CASE.gold}
    assert {"message-not-stated", "name-not-stated"} <= {finding.rule for finding in found_}
    assert all(finding.quote in texts[finding.place] for finding in found_)


def test_probabilities_rise_with_what_is_not_told() -> None:
    vague, told = (
        assess(case(gold=RAISES, tests=LOOKS)),
        assess(case("It should say nobody of the name is here", gold=RAISES, tests=LOOKS)),
    )
    assert vague.unfair_tests > told.unfair_tests
    assert vague.underspecified > told.underspecified


def test_a_case_of_nothing_is_judged_all_the_same() -> None:
    told = assess(replace(CASE, gold="", tests="", fail_to_pass=()))
    assert 0 < told.underspecified < 1
    assert 0 < told.unfair_tests < 1
