"""Additions that rules write: what the tests demand, in every language, and nothing else of the gold patch."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from core.quotes import normalize_whitespace
from taskdb.records.verdicts import Completion, append_addition
from tests.verifiers.judge.test_rules import make_case, make_patch
from verifiers.judge.assess import assess
from verifiers.judge.case import JudgeCase
from verifiers.judge.completion import complete_by_rules, measure_completion
from verifiers.judge.completion.requirements import HEADING

EXAMPLE = ", for example; parts of it depend on the input."
CHANGES = {
    "python-regex": (
        "greet.py",
        (
            "def greet(name):",
            "+    porter = find_porter(name)",
            "+    raise ValueError(f'nobody of the name {name} is here')",
        ),
        "tests/test_greet.py",
        ("+    with pytest.raises(ValueError, match=r'nobody of the name .* is here'):", "+        greet('Bo')"),
        "- A message of `ValueError` must match the regular expression `nobody of the name .* is here`.",
    ),
    "python-part": (
        "greet.py",
        ("+class Absent(LookupError):", "+    text = 'nobody of that name is here, please ask the porter'"),
        "tests/test_greet.py",
        ("+    with pytest.raises(LookupError, match='nobody of that name is here'):", "+        greet('Bo')"),
        "- A message of `LookupError` must contain `nobody of that name is here`.",
    ),
    "python-variable": (
        "greet.py",
        ("+    raise GreetError('nobody of that name is here')",),
        "tests/test_greet.py",
        (
            "+    msg = ('nobody of that name '",
            "+           'is here')",
            "+    with self.assertRaisesRegex(GreetError, re.escape(msg)):",
            "+        greet('Bo')",
        ),
        "- A message of `GreetError` must contain `nobody of that name is here`.",
    ),
    "python-escaped": (
        "greet.py",
        ("+    raise GreetError('nobody (of that name) is here')",),
        "tests/test_greet.py",
        ("+    with pytest.raises(GreetError, match=re.escape('nobody (of that name) is here')):",),
        "- A message of `GreetError` must contain `nobody (of that name) is here`.",
    ),
    "python-lines-above": (
        "greet.py",
        ("+    raise GreetError('nobody of that name is here')",),
        "tests/test_greet.py",
        (
            "+    with pytest.raises(GreetError) as raised:",
            "+        greet('Bo')",
            "+    assert str(raised.value) == 'nobody of that name is here'",
        ),
        "- A message of `GreetError` must read `nobody of that name is here`.",
    ),
    "javascript": (
        "src/greet.js",
        ("+  if (!porter.knows(n)) throw new TypeError('cannot greet anybody twice a day')",),
        "test/greet.test.js",
        ("+  expect(() => greet('Bo')).toThrow(new TypeError('cannot greet anybody twice a day'))",),
        "- A message of `TypeError` must contain `cannot greet anybody twice a day`.",
    ),
    "typescript": (
        "src/greet.ts",
        ("+  if (!porter.knows(n)) throw new Error(`cannot greet ${n} twice a day`)",),
        "test/greet.test.ts",
        ("+  expect(() => greet('Bo')).toThrow('cannot greet Bo twice a day')",),
        "- A message of an error must contain `cannot greet Bo twice a day`" + EXAMPLE,
    ),
    "go": (
        "greet.go",
        ("+func refuse(n string) error {", '+\treturn fmt.Errorf("cannot greet %s twice a day", n)'),
        "greet_test.go",
        ("+func TestTwice(t *testing.T) {", '+\tassert.EqualError(t, Greet("Bo"), "cannot greet Bo twice a day")'),
        "- A message of an error must read `cannot greet Bo twice a day`" + EXAMPLE,
    ),
    "rust": (
        "src/lib.rs",
        ('+    panic!("cannot greet anybody twice a day")',),
        "tests/greet.rs",
        ('+#[should_panic(expected = "cannot greet anybody twice a day")]', "+fn refuses() {"),
        "- A message of a panic must contain `cannot greet anybody twice a day`.",
    ),
    "java": (
        "src/Greeter.java",
        ('+    throw new IllegalStateException("cannot greet " + n + " twice a day");',),
        "test/GreeterTest.java",
        (
            '+    Exception e = assertThrows(IllegalStateException.class, () -> greeter.greet("Bo"));',
            '+    assertEquals("cannot greet Bo twice a day", e.getMessage());',
        ),
        "- A message of `IllegalStateException` must read `cannot greet Bo twice a day`" + EXAMPLE,
    ),
    "ruby": (
        "lib/greet.rb",
        ("+    raise ArgumentError, 'cannot greet anybody twice a day'",),
        "spec/greet_spec.rb",
        ("+    expect { greet('Bo') }.to raise_error(StandardError, 'cannot greet anybody twice a day')",),
        "- A message of `StandardError` must read `cannot greet anybody twice a day`.",
    ),
    "php": (
        "src/Greeter.php",
        ("+        throw new InvalidArgumentException('cannot greet anybody twice a day');",),
        "tests/GreeterTest.php",
        (
            "+        $this->expectException(InvalidArgumentException::class);",
            "+        $this->expectExceptionMessage('cannot greet anybody twice a day');",
        ),
        "- A message of `InvalidArgumentException` must contain `cannot greet anybody twice a day`.",
    ),
    "c#": (
        "src/Greeter.cs",
        ('+        throw new ArgumentException($"cannot greet {n} twice a day");',),
        "tests/GreeterTests.cs",
        ('+        act.Should().Throw<ArgumentException>().WithMessage("cannot greet * twice a day*");',),
        "- A message of `ArgumentException` must match the pattern with wildcards `cannot greet * twice a day*`.",
    ),
    "c++": (
        "src/greet.cpp",
        ('+    throw std::runtime_error("cannot greet anybody twice a day");',),
        "tests/greet_test.cpp",
        ('+    EXPECT_STREQ("cannot greet anybody twice a day", error.what());',),
        "- A message of an error must read `cannot greet anybody twice a day`.",
    ),
    "output": (
        "cli.py",
        ("+    print('greeted everybody in the house')",),
        "tests/test_cli.py",
        ("+    assert 'greeted everybody in the house' in capsys.readouterr().out",),
        "- A message must contain `greeted everybody in the house`.",
    ),
}
BOILERPLATE = frozenset(
    re.findall(
        r"\w+",
        f"{HEADING} a an the message of error panic must read contain match regular expression pattern with wildcards "
        "for example parts of it depend on the input".lower(),
    )
)


def make_change(name: str) -> JudgeCase:
    source, written, test, expecting, _ = CHANGES[name]
    return make_case(gold=make_patch(source, *written), tests=make_patch(test, *expecting))


def complete(case: JudgeCase) -> tuple[Completion, str | None]:
    assessment = assess(case)
    assert assessment.set_aside == "message-not-stated"
    completion, set_aside = measure_completion(case, assessment, complete_by_rules(case, assessment))
    assert completion is not None
    assert (completion.made_by, completion.model, completion.prompt) == ("rules", "", "")
    return completion, set_aside


def find_items(addition: str) -> list[str]:
    return [line for line in addition.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("name", CHANGES)
def test_the_demanded_message_is_stated_with_its_error_and_comparison(name: str) -> None:
    completion, set_aside = complete(make_change(name))
    assert find_items(completion.addition) == [CHANGES[name][-1]]
    assert completion.addition.startswith(HEADING)
    assert set_aside is None


@pytest.mark.parametrize("name", CHANGES)
def test_an_addition_has_no_line_and_no_word_of_the_patch_that_the_tests_do_not_demand(name: str) -> None:
    case = make_change(name)
    addition = complete(case)[0].addition
    for line in (line for file in case.gold_files for line in file.get_lines("+")):
        assert normalize_whitespace(line) not in normalize_whitespace(addition)
    demanded = {word for file in case.test_files for line in file.get_lines("+") for word in re.findall(r"\w+", line)}
    assert set(re.findall(r"\w+", addition)) - demanded <= {
        word for word in re.findall(r"\w+", addition) if word.lower() in BOILERPLATE
    }


@pytest.mark.parametrize("name", CHANGES)
def test_the_judge_scores_both_versions(name: str) -> None:
    case = make_change(name)
    completion, _ = complete(case)
    original = assess(case)
    completed = assess(replace(case, statement=append_addition(case.statement, completion.addition)))
    assert completion.before is not None
    assert completion.after is not None
    for scores, assessment in ((completion.before, original), (completion.after, completed)):
        assert scores.underspecified == pytest.approx(assessment.underspecified, abs=1e-4)
        assert scores.unfair_tests == pytest.approx(assessment.unfair_tests, abs=1e-4)
    assert completion.after.underspecified < completion.before.underspecified
    assert completion.after.unfair_tests < completion.before.unfair_tests


# ------------------------------------------------------------------------------------------------- names and values

MESSAGE = "+    raise ValueError('nobody of that name is here')"
EXPECTS = "+    with pytest.raises(ValueError, match='nobody of that name is here'):"
STATED = "- A message of `ValueError` must contain `nobody of that name is here`."


def complete_python(gold: tuple[str, ...], tests: tuple[str, ...], statement: str = "It greets nobody.") -> Completion:
    """Complete a change of greet.py that also has the message."""
    gold_patch, test_patch = make_patch("greet.py", *gold, MESSAGE), make_patch("tests/test_a.py", EXPECTS, *tests)
    completion, set_aside = complete(make_case(statement, gold=gold_patch, tests=test_patch))
    assert (set_aside, completion.rejected) == (None, ())
    return completion


@pytest.mark.parametrize(
    ("gold", "tests", "item"),
    [
        (
            ("+def shout(name, *, end='!'):", "+    return porter.call(name) + end"),
            ("+    assert shout('Bo', end='?')",),
            "- `greet.py`: `def shout(name, *, end='!')`",
        ),
        (
            ("-def greet(name):", "+def greet(name, volume_level=3):", "+    knock(volume_level)"),
            ("+    greet('Bo', volume_level=4)",),
            "- `greet.py`: `def greet(name, volume_level=3)`",
        ),
        (("+    self.loudness = find_level()",), ("+    assert thing.loudness == 3",), "- The attribute `loudness`."),
        (("+LIMIT = 987654",), ("+    assert find_limit() == 987654",), "- The number `987654`."),
        (
            ("+WELCOME = 'wonderful-weather-today'",),
            ("+    assert hello() == 'wonderful-weather-today'",),
            "- The text `wonderful-weather-today`.",
        ),
    ],
)
def test_names_and_values_that_the_tests_use_follow_the_messages(
    gold: tuple[str, ...], tests: tuple[str, ...], item: str
) -> None:
    assert find_items(complete_python(gold, tests).addition) == [STATED, item]


def test_a_stated_interface_is_not_repeated() -> None:
    gold, tests = ("+def shout(name):", "+    return name"), ("+    assert shout('Bo')",)
    assert find_items(complete_python(gold, tests, "There should be `shout(name)`.").addition) == [STATED]


def test_a_new_module_is_stated_with_its_path() -> None:
    new = "--- /dev/null\n+++ b/greeting/shouting.py\n@@ -0,0 +1,1 @@\n" + MESSAGE + "\n"
    gold = f"diff --git a/greeting/shouting.py b/greeting/shouting.py\nnew file mode 100644\n{new}"
    tests = make_patch("tests/test_a.py", "+from greeting.shouting import *", EXPECTS)
    addition = complete(make_case(gold=gold, tests=tests))[0].addition
    assert find_items(addition) == [STATED, "- The module `greeting/shouting.py`."]


def test_values_that_follow_from_the_statement_are_not_added() -> None:
    gold = ("+    return name.upper() + porter.sign",)
    assert find_items(complete_python(gold, ("+    assert greet('b') == 'HELLO-TO-EVERYBODY'",)).addition) == [STATED]


def test_values_are_left_out_where_the_checks_reject_them() -> None:
    long = "wonderful-weather-" * 120
    gold = make_patch("greet.py", f"+WELCOME = '{long}'", MESSAGE)
    tests = make_patch("tests/test_a.py", EXPECTS, f"+    assert hello() == '{long}'")
    completion, set_aside = complete(make_case(gold=gold, tests=tests))
    assert find_items(completion.addition) == [STATED]
    assert "characters; 20 to 2000 are allowed" in completion.rejected[0]
    assert set_aside is None


def test_all_names_are_added_not_only_those_that_are_reported() -> None:
    names = [f"volume_{letter}" for letter in "abcdefgh"]
    gold = tuple(f"+    self.{name} = 3" for name in names)
    addition = complete_python(gold, tuple(f"+    assert thing.{name}" for name in names)).addition
    assert find_items(addition)[1:] == [f"- The attribute `{name}`." for name in names]


# ------------------------------------------------------------------------------------------------ texts and limits


def test_a_text_of_several_lines_is_a_block_even_where_the_patch_has_it_line_by_line() -> None:
    usage = ("usage: greet [options] name", "options: one of (loud, quiet)", "and a good morning")
    gold = make_patch("cli.js", f"+const USAGE = `{usage[0]}", f"+{usage[1]}", f"+{usage[2]}`")
    tests = make_patch("cli.test.js", f"+  expect(run()).toBe(`{usage[0]}", f"+{usage[1]}", f"+{usage[2]}`)")
    completion, set_aside = complete(make_case(gold=gold, tests=tests))
    assert set_aside is None
    block = "\n".join(f"  {line}" for line in ("```", *usage, "```"))
    assert completion.addition.endswith(f"- A message must read this text:\n\n{block}")


def test_a_line_break_at_the_end_of_a_text_is_stated() -> None:
    gold = make_patch("greet.go", '+\tfmt.Print("nobody of that name is here\\n")')
    tests = make_patch("greet_test.go", '+\tassert.Equal(t, "nobody of that name is here\\n", out.String())')
    (item,) = find_items(complete(make_case(gold=gold, tests=tests))[0].addition)
    assert item == "- A message must read this text, with a line break at its end:"


@pytest.mark.parametrize(
    ("above", "subject"),
    [
        (("+    with pytest.raises(GreetError) as raised:", "+        greet('Bo')"), "A message of `GreetError`"),
        (("+    with pytest.raises(OtherError) as raised:", "+        greet('Bo')"), "A message of an error"),
        (
            (
                "+    with pytest.raises(GreetError):",
                "+        greet('Bo')",
                "+def test_text():",
                "+    raised = run()",
            ),
            "A message of an error",
        ),
        (
            ("+    with pytest.raises(GreetError) as raised:", *["+    greet('Bo')"] * 6),
            "A message of an error",
        ),
    ],
    ids=["near", "not raised by the patch", "another test", "far"],
)
def test_an_error_type_above_a_message_counts_only_where_it_can_have_the_message(
    above: tuple[str, ...], subject: str
) -> None:
    gold = make_patch("greet.py", "+    raise GreetError('nobody of that name is here')")
    tests = make_patch("tests/test_a.py", *above, "+    assert str(raised.value) == 'nobody of that name is here'")
    (item,) = find_items(complete(make_case(gold=gold, tests=tests))[0].addition)
    assert item == f"- {subject} must read `nobody of that name is here`."


def test_an_addition_that_lacks_the_message_leaves_the_change_set_aside() -> None:
    case = make_case(gold=make_patch("greet.py", MESSAGE), tests=make_patch("tests/test_a.py", EXPECTS))
    useless = Completion(model="m", prompt="complete-2", addition="Please do it as it has to be done.")
    completion, set_aside = measure_completion(case, assess(case), useless)
    assert set_aside == "message-not-stated"
    assert completion is not None
    assert completion.after is not None


@pytest.mark.parametrize(
    ("message", "item"),
    [
        ("use the `loud` option instead", "``  use the `loud` option instead  ``"),
        ("`loud` is no option here", "`` `loud` is no option here ``"),
    ],
)
def test_backticks_of_a_message_do_not_end_the_code(message: str, item: str) -> None:
    gold = make_patch("greet.py", f'+    raise ValueError("{message}")')
    tests = make_patch("tests/test_a.py", f'+    assert str(error) == "{message}"')
    assert " ".join(item.split()) in complete(make_case(gold=gold, tests=tests))[0].addition


@pytest.mark.parametrize(
    ("message", "objection"),
    [
        (
            "nobody of that name is here, see https://github.com/ada/greet/pull/3",
            "a link to a change of the repository",
        ),
        ("nobody is here " + "or there " * 250, "characters; 20 to 2000 are allowed"),
    ],
)
def test_a_message_that_the_checks_reject_leaves_the_change_set_aside(message: str, objection: str) -> None:
    gold = make_patch("greet.py", f"+    raise ValueError('{message}')")
    tests = make_patch("tests/test_a.py", f"+    assert str(error) == '{message}'")
    completion, set_aside = complete(make_case(gold=gold, tests=tests))
    assert (completion.addition, set_aside) == ("", "message-not-stated")
    assert objection in completion.rejected[0]
    assert (completion.before, completion.after) == (None, None)


def test_a_demanded_text_is_no_excuse_for_a_line_of_code() -> None:
    code = "return porter.call(name, of_the_day)"
    gold = make_patch("greet.py", f"+    {code}", "+    hint = 'return porter call name of the day'")
    tests = make_patch("tests/test_a.py", f"+    assert explain() == '{code}'")
    completion, set_aside = complete(make_case(gold=gold, tests=tests))
    assert (completion.addition, set_aside) == ("", "message-not-stated")
    assert f"a line of the gold patch, `{code}`" in completion.rejected[0]


@pytest.mark.parametrize("statement", ["", "https://example.com/1", "It says that nobody of that name is here."])
def test_a_statement_without_content_or_without_a_missing_message_is_not_completed(statement: str) -> None:
    case = make_case(statement, gold=make_patch("greet.py", MESSAGE), tests=make_patch("tests/test_a.py", EXPECTS))
    assert complete_by_rules(case, assess(case)) is None
