"""Messages: words that the tests look for, that the gold patch writes, and that nobody was told of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Case
from verifiers.judge.tokens import Token
from verifiers.judge.words import HOLE, message_words, runs, words_of

MOST_TOLD = 0.5
"""A message of which more is told than this share of its runs of words counts as told."""
_JOINS = frozenset("+.")


@dataclass(frozen=True, slots=True)
class Literal:
    """One string, also where it is written in pieces."""

    pieces: tuple[Token, ...]

    @property
    def words(self) -> list[str]:
        """Of all pieces together."""
        return message_words(" ".join(piece.value for piece in self.pieces))


def literals_of(tokens: Sequence[Token]) -> Iterator[Literal]:
    """The strings among tokens; pieces that stand side by side, or with a plus between them, are one."""
    pieces: list[Token] = []
    for token in tokens:
        if token.sort == "string":
            pieces.append(token)
        elif pieces and not (token.sort == "mark" and token.text in _JOINS):
            yield Literal(tuple(pieces))
            pieces = []
    if pieces:
        yield Literal(tuple(pieces))


def message_not_stated(case: Case) -> Iterator[Finding]:
    """The tests look for words of a message that the gold patch writes; the statement does not hold them."""
    written = {run for one in literals_of([token for _, token in case.added]) for run in runs(one.words)}
    if not written:
        return
    told = runs(words_of(case.statement)) | runs(words_of(case.shown))
    seen: set[str] = set()
    for one in literals_of([asked.token for asked in case.asked]):
        shared = runs(one.words) & written
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


def _piece(literal: Literal, wanted: set[tuple[str, ...]]) -> str:
    """The piece that holds most of the words; verbatim."""
    words = {word for run in wanted for word in run} - {HOLE}
    return max(literal.pieces, key=lambda piece: len(words & set(message_words(piece.value)))).text
