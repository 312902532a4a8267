"""Messages that the tests expect and the gold patch writes, but the statement does not contain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taskdb.records.verdicts import Finding, QuoteSource
from verifiers.judge.case import JudgeCase
from verifiers.judge.tokens import CodeToken
from verifiers.judge.words import PLACEHOLDER, Ngrams, make_ngrams, split_message, split_words

MAX_STATED_SHARE = 0.5
"""A message counts as stated if more than this share of its word n-grams is stated."""
MIN_SHARED_SHARE = 0.5
"""Minimum share of the gold patch's message that the tests must expect: three words in a row may be coincidence."""
MIN_SHARED_WORDS = 6
"""Number of shared words that are not a coincidence, however long the message is."""
_JOINS = frozenset("+.")
_TITLES = frozenset({"it", "test", "describe", "context", "scenario", "TEST_CASE", "SECTION", "TEST", "specify", "Run"})
"""Functions whose string argument is a test title, which no test expects."""


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """A string, possibly written in several pieces.

    Attributes:
        pieces: its tokens.
        start: index of the first token among all tokens.
        before: the name of the called function, or empty.
    """

    pieces: tuple[CodeToken, ...]
    start: int
    before: str = ""

    @property
    def words(self) -> list[str]:
        """Words of all pieces; a text without a space is not a message."""
        whole = " ".join(piece.value for piece in self.pieces)
        return split_message(whole) if any(" " in piece.text.strip() for piece in self.pieces) else []


@dataclass(frozen=True, slots=True)
class DemandedMessage:
    """A message that the tests expect and the gold patch writes, but neither statement nor old code contains.

    Attributes:
        literal: the string of the tests.
        quote: the piece of it that holds most of the unstated words, verbatim.
        unstated: word n-grams that it shares with the gold patch and that are not stated.
        gold_words: words of the messages of the gold patch that it shares n-grams with; PLACEHOLDER for their values.
    """

    literal: StringLiteral
    quote: str
    unstated: Ngrams
    gold_words: frozenset[str]


def find_literals(tokens: Sequence[CodeToken]) -> Iterator[StringLiteral]:
    """Yield the strings among tokens; pieces side by side or joined by `+` or `.` are a single string."""
    pieces: list[CodeToken] = []
    start, before = 0, ""
    for at, token in enumerate(tokens):
        if token.category == "string":
            start, before = (start, before) if pieces else (at, _find_callee(tokens, at))
            pieces.append(token)
        elif pieces and not (token.category == "mark" and token.text in _JOINS):
            yield StringLiteral(tuple(pieces), start, before)
            pieces = []
    if pieces:
        yield StringLiteral(tuple(pieces), start, before)


def _find_callee(tokens: Sequence[CodeToken], at: int) -> str:
    first = at >= 2 and tokens[at - 1].text == "(" and tokens[at - 2].category == "name"
    return tokens[at - 2].text if first else ""


def find_unstated_messages(case: JudgeCase) -> Iterator[Finding]:
    """Find messages that the tests expect and the gold patch writes, but the statement does not contain."""
    for message in find_demanded_messages(case):
        example = " ".join(min(message.unstated))
        yield Finding(
            rule="message-not-stated",
            quote=message.quote,
            quote_source=QuoteSource.TESTS,
            detail=f"the tests expect a message that only the gold patch contains; '{example}' is not stated",
        )


def find_demanded_messages(case: JudgeCase) -> Iterator[DemandedMessage]:
    """Yield the messages that the tests expect and the gold patch writes, but the statement does not contain."""
    added = [token for file in case.source_files for token in case.tokenize_added(file)]
    gold_messages = [words for literal in find_literals(added) if make_ngrams(words := literal.words)]
    if not gold_messages:
        return
    stated = make_ngrams(split_words(case.statement)) | make_ngrams(split_words(case.old_text))
    reported: set[str] = set()
    for literal in find_literals([added.token for added in case.test_tokens]):
        ngrams = set() if literal.before in _TITLES else make_ngrams(literal.words)
        sharing = list(_find_shared_messages(ngrams, gold_messages))
        shared_ngrams = {run for common, _ in sharing for run in common}
        if not shared_ngrams or len(shared_ngrams & stated) > MAX_STATED_SHARE * len(shared_ngrams):
            continue
        quote = _select_piece(literal, shared_ngrams - stated)
        if quote in reported or case.find_in_base_tree([quote]):
            continue
        reported.add(quote)
        gold_words = frozenset(word for _, words in sharing for word in words)
        yield DemandedMessage(literal, quote, shared_ngrams - stated, gold_words)


def _find_shared_messages(
    test_ngrams: Ngrams, gold_messages: Sequence[list[str]]
) -> Iterator[tuple[Ngrams, list[str]]]:
    """Yield (shared n-grams, words) of each message of the gold patch that is covered sufficiently."""
    for words in gold_messages:
        common = test_ngrams & make_ngrams(words)
        covered = len({word for run in common for word in run})
        if common and (covered >= MIN_SHARED_SHARE * len(set(words) - {PLACEHOLDER}) or covered >= MIN_SHARED_WORDS):
            yield common, words


def _select_piece(literal: StringLiteral, ngrams: Ngrams) -> str:
    """Return the piece that holds most of the words, verbatim."""
    words = {word for run in ngrams for word in run} - {PLACEHOLDER}
    return max(literal.pieces, key=lambda piece: len(words & set(split_message(piece.value)))).text
