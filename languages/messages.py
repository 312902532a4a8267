"""How tests of a language expect a message: names of the calls that compare it, and of the code that raises it."""

from __future__ import annotations

from dataclasses import dataclass

PATTERN_CALLS = r"\w*Regexp?\w*|\w*_regex|regex"
CONTAIN_CALLS = (
    r"\w*contain\w*|includes?|assertIn|toThrow\w*|throw\w*|toMatch|\w*starts_?with|\w*ends_?with|has_?substr|in"
    r"|str_contains|strstr|find|indexOf"
)


@dataclass(frozen=True, kw_only=True)
class MessageChecks:
    """Names around a string in a test. Regexes fit whole names; the defaults are names that many languages share."""

    has_bare_calls: bool = False
    """Whether calls have no brackets, as in shells: names before a string on its line count as calls around it."""
    pattern_calls: str = PATTERN_CALLS
    """Regex of calls in which the string is a regular expression."""
    pattern_arguments: frozenset[tuple[str, str]] = frozenset()
    """(call, keyword) of arguments that are a regular expression, such as `match` of pytest's `raises`."""
    pattern_members: frozenset[tuple[str, str]] = frozenset()
    """(module, function) of calls in which the string is a regular expression, such as `re.search`."""
    wildcard_calls: frozenset[str] = frozenset({"WithMessage"})
    """Calls in which the string is a pattern with wildcards."""
    literal_calls: frozenset[str] = frozenset({"escape", "quote"})
    """Calls that make a pattern of a text that it matches literally."""
    contain_calls: str = CONTAIN_CALLS
    """Regex, in any case, of calls that search for the string."""
    error_types: str = r"[A-Z]\w*(?:Error|Exception|Warning|Failure)|Err[A-Z]\w*"
    """Regex of the names of types of errors."""
    errors: str = r"err|\w*(?:error|exception|raise|throw|reject)\w*|getMessage|what|stderr"
    """Regex, in any case, of names that stand for an error."""
    panics: str = r"should_panic|\w*[Pp]anics?\w*"
    """Regex of names that stand for a panic."""
    test_words: frozenset[str] = frozenset(
        {"def", "func", "fn", "fun", "function", "void", "it", "test", "describe", "Test", "TEST", "Fact"}
    )
    """Words that begin a test; the text that is above them belongs to another."""
