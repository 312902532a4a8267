"""Read from a test how it expects a message: the type of the error that has it, and how the two are compared.

Only tokens are known, so both are read from the names of calls around the string and on lines next to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from languages.messages import MessageChecks
from languages.registry import find_language
from verifiers.judge.case import AddedToken, JudgeCase
from verifiers.judge.rules.messages import DemandedMessage
from verifiers.judge.words import PLACEHOLDER, has_format_field, split_message

Comparison = Literal["read", "contain", "match", "match-wildcards"]
"""How the tests compare a message: it equals the text, contains it, or matches it as a pattern."""

MAX_LINES_ABOVE = 4
"""Number of lines above a message on which the type of its error may be."""
_MAX_TOKENS = 120
"""Number of tokens before a message among which its calls are searched."""
_METACHARACTERS = re.compile(r"[][\\^$.|?*+(){}]")


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Demands of a test on a message.

    Attributes:
        subject: the object that has the message, as a noun phrase.
        comparison: how the message is compared with `text`.
        text: the text that the tests write, without escape sequences; a pattern as its engine reads it.
        is_example: whether other inputs give other messages.
    """

    subject: str
    comparison: Comparison
    text: str
    is_example: bool


def read_expectation(case: JudgeCase, message: DemandedMessage) -> Expectation:
    """Return the messages that the tests expect of a message."""
    context = _Context.of(case.test_tokens, message)
    comparison = _find_comparison(context)
    pieces = message.literal.pieces
    if comparison.startswith("match"):
        text = "".join(piece.text.replace("\\\\", "\\") for piece in pieces)
    else:
        text = "".join(piece.value for piece in pieces)
    if comparison == "match" and not _METACHARACTERS.search(text):
        comparison = "contain"
    if comparison == "match-wildcards" and "*" not in text:
        comparison = "read"
    # Words that no message of the patch has stand for values; what it has in addition is not demanded.
    varies = has_format_field(text) or not set(split_message(text)) - {PLACEHOLDER} <= message.gold_words
    return Expectation(
        subject=_find_subject(context, case),
        comparison=comparison,
        text=text,
        is_example=varies and not comparison.startswith("match"),
    )


@dataclass(frozen=True)
class _Context:
    """A string of the tests where it is compared, and the tokens that are around it.

    Attributes:
        tokens: all tokens of the tests.
        start: index of the string, or of the variable that was given it before.
        end: index after its last piece.
        calls: indexes of the names of the calls around it, innermost first.
    """

    tokens: Sequence[AddedToken]
    start: int
    end: int
    calls: tuple[int, ...]

    @classmethod
    def of(cls, tokens: Sequence[AddedToken], message: DemandedMessage) -> _Context:
        start, last = message.literal.start, message.literal.pieces[-1]
        end = next(at for at in range(start, len(tokens)) if tokens[at].token is last) + 1
        if use := _find_use(tokens, start, end):
            start, end = use, use + 1
        calls = tuple(_find_calls(tokens, start))
        if not calls and _get_checks(tokens[start].path).has_bare_calls:
            calls = tuple(_find_names_before(tokens, start))
        return cls(tokens, start, end, calls)

    @property
    def call_names(self) -> list[str]:
        """Names of the calls around the string, innermost first."""
        return [self.text(at) for at in self.calls]

    @cached_property
    def checks(self) -> MessageChecks:
        """Names by which the language of the string's file compares messages."""
        return _get_checks(self.tokens[self.start].path)

    @property
    def keyword(self) -> str:
        """Name of the argument that the string is; empty for a positional argument."""
        return self.text(self.start - 2) if self.text(self.start - 1) in {"=", ":", "=>"} else ""

    def text(self, at: int) -> str:
        return self.tokens[at].token.text if 0 <= at < len(self.tokens) else ""

    def find_statement(self) -> range:
        """Return the indexes from the outermost call, or the beginning of the line, to the end of the line."""
        here = self.tokens[self.start]
        first = last = self.start
        while first and self._is_on_line(first - 1, here):
            first -= 1
        while last + 1 < len(self.tokens) and (
            last < self.end or self._is_on_line(last + 1, self.tokens[self.end - 1])
        ):
            last += 1
        return range(min(first, *self.calls, first), last + 1)

    def find_above(self, below: int) -> Iterator[int]:
        """Yield the indexes of tokens on the lines above an index, nearest first, in the same test."""
        here = self.tokens[below]
        for at in range(below - 1, -1, -1):
            added = self.tokens[at]
            is_near = 0 <= here.token.line - added.token.line <= MAX_LINES_ABOVE
            if added.path != here.path or not is_near or added.token.text in self.checks.test_words:
                return
            yield at

    def _is_on_line(self, at: int, other: AddedToken) -> bool:
        added = self.tokens[at]
        return added.path == other.path and added.token.line == other.token.line


def _get_checks(path: str) -> MessageChecks:
    language = find_language(path)
    return language.messages if language is not None else MessageChecks()


def _find_names_before(tokens: Sequence[AddedToken], start: int) -> Iterator[int]:
    """Yield the indexes of the names before a token on its line, nearest first."""
    here = tokens[start]
    for at in range(start - 1, -1, -1):
        if tokens[at].path != here.path or tokens[at].token.line != here.token.line:
            return
        if tokens[at].token.category == "name":
            yield at


def _find_use(tokens: Sequence[AddedToken], start: int, end: int) -> int | None:
    """Return the index at which a variable is used that is given the string; None if it is given to no variable."""
    at = start - 1
    while at > 1 and tokens[at].token.text == "(" and tokens[at - 1].token.category == "mark":
        at -= 1
    if at < 1 or tokens[at].token.text not in {"=", ":="} or tokens[at - 1].token.category != "name":
        return None
    name = tokens[at - 1].token
    following = range(end, min(len(tokens), end + _MAX_TOKENS))
    return next((use for use in following if tokens[use].token.text == name.text and _is_value(tokens, use)), None)


def _is_value(tokens: Sequence[AddedToken], at: int) -> bool:
    """Return whether a name is read here, not assigned and no name of an argument."""
    return tokens[at].token.category == "name" and not (
        at + 1 < len(tokens) and tokens[at + 1].token.text in {"=", ":="}
    )


def _find_calls(tokens: Sequence[AddedToken], start: int) -> Iterator[int]:
    """Yield the indexes of the names of the calls around a token, innermost first."""
    depth = 0
    for at in range(start - 1, max(-1, start - _MAX_TOKENS), -1):
        token = tokens[at].token
        if token.category != "mark":
            continue
        if token.text in ")]}":
            depth += 1
        elif token.text in "([{" and depth:
            depth -= 1
        elif token.text == "{" and not (at and tokens[at - 1].token.text in {"(", ",", ":", "{"}):
            # This brace opens the body of a function, not a table.
            return
        elif token.text == "(":
            # Rust's macros have a mark between name and parenthesis, as in `panic!(`.
            name = at - 2 if at > 1 and tokens[at - 1].token.text == "!" else at - 1
            if name >= 0 and tokens[name].token.category == "name":
                yield name


def _find_comparison(context: _Context) -> Comparison:
    names, checks = context.call_names, context.checks
    if names and names[0] in checks.literal_calls:
        return "contain"
    if checks.wildcard_calls & set(names):
        return "match-wildcards"
    if _is_regex(context, names):
        return "match"
    if (
        any(re.fullmatch(checks.contain_calls, name, re.IGNORECASE) for name in names)
        or context.text(context.end) == "in"
    ):
        return "contain"
    return "read"


def _is_regex(context: _Context, names: Sequence[str]) -> bool:
    """Return whether the string is a regular expression."""
    checks = context.checks
    if any((name, context.keyword) in checks.pattern_arguments for name in names):
        return True
    if names and any(names[0] == function for _, function in checks.pattern_members):
        return (context.text(context.calls[0] - 2), names[0]) in checks.pattern_members
    return any(re.fullmatch(checks.pattern_calls, name) for name in names)


def _find_subject(context: _Context, case: JudgeCase) -> str:
    """Return the object that has the message.

    An error type where the test names it, else an error, a panic, or no more.
    """
    statement = context.find_statement()
    before = range(context.start - 1, statement.start - 1, -1)
    if named := next((at for at in before if _is_error_type(context, at)), None):
        return f"a message of `{context.text(named)}`"
    texts = [context.text(at) for at in statement if not context.start <= at < context.end]
    if any(re.fullmatch(context.checks.panics, text) for text in texts):
        return "a message of a panic"
    raised = {token.text for _, token in case.gold_tokens}
    for at in context.find_above(statement.start):
        if _is_error_type(context, at) and context.text(at) in raised:
            return f"a message of `{context.text(at)}`"
    is_error = re.compile(context.checks.errors, re.IGNORECASE).fullmatch
    return "a message of an error" if any(map(is_error, texts)) else "a message"


def _is_error_type(context: _Context, at: int) -> bool:
    """Return whether a token names a type of errors; `assert.EqualError(` does not."""
    is_method = context.text(at - 1) == "." and context.text(at + 1) == "("
    return not is_method and re.fullmatch(context.checks.error_types, context.text(at)) is not None
