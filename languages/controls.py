"""Sites of negative controls: how the tests of a language, its assertions and their opposites look in its grammar.

The defaults are words and shapes that many languages share. A language gives its own where it differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


def pair_words(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return word -> opposite, for both words of each pair."""
    return {old: new for pair in pairs for old, new in (pair, pair[::-1])}


COMMON_REPORTS = r"^(print|console\.|describe|it|test|context)"
COMMON_CONDITION_REPORTS = r"\b(return|exit)\b|abort\(|fail\(|die\b|\+\+"
COMMON_OPERATORS: Mapping[str, str] = {
    "==": "!=",
    "!=": "==",
    "===": "!==",
    "!==": "===",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
    "eq": "ne",
    "ne": "eq",
    "=~": "!~",
}
COMMON_OPPOSITES: Mapping[str, str] = pair_words(
    (
        ("assertTrue", "assertFalse"),
        ("assertEqual", "assertNotEqual"),
        ("assertEquals", "assertNotEquals"),
        ("assertSame", "assertNotSame"),
        ("assertNull", "assertNotNull"),
        ("assertIsNone", "assertIsNotNone"),
        ("assertIn", "assertNotIn"),
        ("assertIs", "assertIsNot"),
        ("assertEmpty", "assertNotEmpty"),
        ("assertContains", "assertNotContains"),
        ("assertInstanceOf", "assertNotInstanceOf"),
        ("assert_eq", "assert_ne"),
        ("assert_equal", "refute_equal"),
        ("assert_nil", "refute_nil"),
        ("assert_includes", "refute_includes"),
        ("assert_empty", "refute_empty"),
        ("assert_match", "refute_match"),
        ("isEqualTo", "isNotEqualTo"),
        ("isTrue", "isFalse"),
        ("isNull", "isNotNull"),
        ("isEmpty", "isNotEmpty"),
        ("is_some", "is_none"),
        ("is_ok", "is_err"),
        ("throws", "doesNotThrow"),
    )
)
"""Names of xUnit's family and of matchers that several languages have, and that helpers of tests take over."""
MEMBER_OPPOSITES: Mapping[str, str] = pair_words(
    (
        ("NoError", "Error"),
        ("True", "False"),
        ("Nil", "NotNil"),
        ("Equal", "NotEqual"),
        ("Empty", "NotEmpty"),
        ("Contains", "NotContains"),
    )
)
"""Members of testify's packages, suites and objects, or of a class of assertions."""


@dataclass(frozen=True, kw_only=True)
class ControlSites:
    """Tests and assertions in a file of a language. Node types are those of the language's grammar."""

    test_names: str = r"^(test|spec|should|it_|Test|Benchmark)|(test|Test|_spec)$"
    """Regex of names of functions that are tests."""
    test_marks: str = r"@\w*Test\b|@test\b|#\[[\w:]*(test|case)|\[Test|@Property|quickcheck"
    """Regex of the text that stands between the comments of a function and its body if it is a test."""
    test_macros: str = r"TEST|_CASE$|SCENARIO"
    """Regex of macros that define a test, the last argument of which is its name."""
    test_calls: frozenset[str] = frozenset({"it", "test", "specify", "scenario", "property", "subtest", "example"})
    """Calls with a title and a block or function that are a test."""
    group_calls: frozenset[str] = frozenset({"describe", "context", "suite"})
    """Calls with a title and a function that stand around tests; one is a block where all titles in it are computed."""
    checks: Mapping[str, int | None] = field(default_factory=dict)
    """Calls that are a test each -> number of arguments before its title; None where it may be anywhere.

    Where there are any, a string at the end of a call is the name of a check.
    """

    plan: tuple[str, str] = ("", "")
    """Regex of a number of tests that a file declares, and text in its place with which there may be any number."""

    call_nodes: str = r"call|invocation"
    """Regex of the node types of calls."""
    assertions: str = (
        r"(?i)assert|expect|require|refute|should|must|check|verify|equal|raise|throw|match|contain|"
        r"^(ok|is|isnt|is_deeply|cmp_ok|like|unlike|isa_ok|eq)$|\b(to|be|eq|to_eq)$"
    )
    """Regex of names of calls that compare a result."""
    reports: str = COMMON_REPORTS
    """Regex of calls whose strings are messages or titles."""
    condition_nodes: frozenset[str] = frozenset()
    """Node types in which a comparison is an assertion, besides an `if` that reports a failure."""
    condition_reports: str = COMMON_CONDITION_REPORTS
    """Regex of the statements that an `if` does that reports a failure."""
    condition_calls: frozenset[str] = frozenset()
    """Calls and macros whose argument is a condition, such as Elixir's `assert a == b`."""
    equalities: frozenset[str] = frozenset(
        {"assertEqual", "assertEquals", "assertSame", "strictEqual", "deepEqual", "deepStrictEqual", "assert_equal"}
    )
    """Calls whose first two arguments are compared."""
    expected_first: frozenset[str] = frozenset({"assert_equal", "assertSame", "assertEquals"})
    """Those of them whose first argument is the expected value where both could be."""
    value_matchers: frozenset[str] = frozenset({"toBe", "toEqual", "toStrictEqual", "eq", "eql"})
    """Calls whose only argument is the expected value."""
    names_assertions: bool = False
    """Whether a report shows that a test failed by an assertion (`guest.controls.blind.ASSERTIONS`)."""
    compares_any_types: bool = False
    """Whether an expected value can be replaced by one of another type without an error of types."""

    empties: tuple[str, ...] = ()
    """Values that stand for nothing, one of which may be expected in place of another."""

    max_instances: int = 32
    """The most instances of a test; more where a language reads its tests as fast as it runs them."""
    instance_seconds: float = 0.0
    """Seconds that a compiler takes for an instance, whatever its length."""
    kilobyte_seconds: float = 0.0
    """Seconds that it takes for 1,000 bytes of an instance."""
    table_calls: str = ""
    """Regex of calls in a decorator that give a test its cases; empty where tables stand in tests alone."""
    silent_keywords: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Node type of a statement that asserts -> its keyword, and text in its place with which nothing is asserted."""
    silent_calls: tuple[tuple[str, str], ...] = ()
    """Regex of the text before the arguments of a call that asserts, and text in its place that asserts nothing.

    What the arguments compute is computed all the same; they are put in parentheses where they have none. A language
    without these has no sites at inputs.
    """

    crash_guard: tuple[str, str] = ("", "")
    """Regex of the parameters of a test or of a function in it, and text at the start of its body.

    With the text a crash fails the test. For languages in which it ends the process, and with it all other tests.
    """

    operators: Mapping[str, str] = field(default_factory=lambda: COMMON_OPERATORS)
    """Operator of a comparison -> its opposite."""
    negation: str = ""
    """Prefix that negates any asserted expression; empty where only comparisons are negated."""
    opposites: Mapping[str, str] = field(default_factory=lambda: COMMON_OPPOSITES)
    """Name of an assertion -> its opposite."""
    member_opposites: Mapping[str, str] = field(default_factory=lambda: MEMBER_OPPOSITES)
    """Names that are assertions only as members of the objects that check.

    `assert.Contains`, not `strings.Contains`.
    """
    matchers: str = ""
    """Regex of members before which `matcher_negation` negates an assertion."""
    matcher_negation: str = "not."
    exceptions: tuple[str, ...] = ()
    """Types of errors that replace each other where a test expects an error."""
