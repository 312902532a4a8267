"""Messages: words that the tests look for, that the gold patch writes, and that nobody was told of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Case
from verifiers.judge.tokens import Token
from verifiers.judge.words import HOLE, Runs, message_words, runs, words_of

MOST_TOLD = 0.5
"""A message of which more is told than this share of its runs of words counts as told."""
ENOUGH = 0.5
"""Share of the gold patch's message that the tests must look for: three words in a row may be the same by chance."""
MANY = 6
"""So many words in a row are not the same by chance, whatever else the message says."""
_JOINS = frozenset("+.")
_TITLES = frozenset({"it", "test", "describe", "context", "scenario", "TEST_CASE", "SECTION", "TEST", "specify", "Run"})
"""What is given a title: words for people, which no test looks for."""


@dataclass(frozen=True, slots=True)
class Literal:
    """One string, also where it is written in pieces. `before`: the name that its bracket stands behind, or empty."""

    pieces: tuple[Token, ...]
    before: str = ""

    @property
    def words(self) -> list[str]:
        """Of all pieces together; a text without a blank is no message."""
        whole = " ".join(piece.value for piece in self.pieces)
        return message_words(whole) if any(" " in piece.text.strip() for piece in self.pieces) else []


def literals_of(tokens: Sequence[Token]) -> Iterator[Literal]:
    """The strings among tokens; pieces that stand side by side, or with a plus between them, are one."""
    pieces: list[Token] = []
    before = ""
    for at, token in enumerate(tokens):
        if token.sort == "string":
            before = before if pieces else _callee(tokens, at)
            pieces.append(token)
        elif pieces and not (token.sort == "mark" and token.text in _JOINS):
            yield Literal(tuple(pieces), before)
            pieces = []
    if pieces:
        yield Literal(tuple(pieces), before)


def _callee(tokens: Sequence[Token], at: int) -> str:
    first = at >= 2 and tokens[at - 1].text == "(" and tokens[at - 2].sort == "name"
    return tokens[at - 2].text if first else ""


def message_not_stated(case: Case) -> Iterator[Finding]:
    """The tests look for words of a message that the gold patch writes; the statement does not hold them."""
    added = [token for file in case.source_files for token in case.added_in(file)]
    written = [words for one in literals_of(added) if runs(words := one.words)]
    if not written:
        return
    told = runs(words_of(case.statement)) | runs(words_of(case.shown))
    seen: set[str] = set()
    for one in literals_of([asked.token for asked in case.asked]):
        shared = set() if one.before in _TITLES else _shared(runs(one.words), written)
        if not shared or len(shared & told) > MOST_TOLD * len(shared):
            continue
        quote = _piece(one, shared - told)
        if quote in seen or case.mentions([quote]):
            continue
        seen.add(quote)
        example = " ".join(min(shared - told))
        yield Finding(
            rule="message-not-stated", quote=quote, place=Place.TESTS,
            detail=f"the tests look for a message that only the gold patch has; '{example}' is told nowhere",
        )  # fmt: skip


def _shared(asked: Runs, written: Sequence[list[str]]) -> Runs:
    """Runs of words that are asked for and written, of those messages of which enough is asked for."""
    found: Runs = set()
    for words in written:
        common = asked & runs(words)
        covered = len({word for run in common for word in run})
        if common and (covered >= ENOUGH * len(set(words) - {HOLE}) or covered >= MANY):
            found |= common
    return found


def _piece(literal: Literal, wanted: Runs) -> str:
    """The piece that holds most of the words; verbatim."""
    words = {word for run in wanted for word in run} - {HOLE}
    return max(literal.pieces, key=lambda piece: len(words & set(message_words(piece.value)))).text
