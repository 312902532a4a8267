"""What the judge has before it: a statement, the solution, the tests, and what the base tree is known to mention."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from languages.registry import language_of_file
from verifiers.judge.diffs import FileDiff, Hunk, files_of
from verifiers.judge.tokens import Token, tokens_of

Mentions = Callable[[Collection[str]], set[str]]
"""Which of some texts the base tree holds."""
_DEFINED = re.compile(
    r"^(\s*)(?:async\s+|pub\s+|public\s+|static\s+|void\s+|final\s+)*(?:def|func|fn|fun|void|sub)\s+(\w+)"
)
_ID_WORD = re.compile(r"\w+")


def _nothing(texts: Collection[str]) -> set[str]:
    del texts
    return set()


@dataclass(frozen=True)
class Asked:
    """A token that the tests bring anew, and where."""

    token: Token
    path: str
    line: str
    """The whole line of the test patch, without its mark."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task as the rules see it. Patches are git diffs."""

    name: str
    repo: str
    statement: str
    hints: str = ""
    gold: str
    tests: str
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    number: int | None = None
    """Of the pull request, where it is known."""
    merge_commit: str = ""
    mentions: Mentions = _nothing
    """Asked only of what the patches' own context does not show."""

    @cached_property
    def gold_files(self) -> tuple[FileDiff, ...]:
        """The gold patch."""
        return files_of(self.gold)

    @cached_property
    def test_files(self) -> tuple[FileDiff, ...]:
        """The test patch."""
        return files_of(self.tests)

    @cached_property
    def shown(self) -> str:
        """Old text of both patches: removed lines and context, paths, headings of hunks. It stands in the base tree."""
        every = (*self.gold_files, *self.test_files)
        old = [text for file in every for text in file.side("- ")]
        headings = [hunk.heading for file in every for hunk in file.hunks]
        return "\n".join([*old, *headings, *(file.path for file in every if not file.is_new)])

    @cached_property
    def shown_names(self) -> frozenset[str]:
        """Words of `shown`."""
        return frozenset(_ID_WORD.findall(self.shown))

    @cached_property
    def asked(self) -> tuple[Asked, ...]:
        """Tokens on added lines of the tests, those of tests that are known to pass before left out."""
        return tuple(one for file in self.test_files for hunk in file.hunks for one in self._asked_in(file, hunk))

    @cached_property
    def source_files(self) -> tuple[FileDiff, ...]:
        """Files of the gold patch that are program text in a known language."""
        return tuple(file for file in self.gold_files if language_of_file(file.path))

    @cached_property
    def added(self) -> tuple[tuple[str, Token], ...]:
        """(path, token) on added lines of the gold patch."""
        return tuple((file.path, token) for file in self.gold_files for token in self.added_in(file))

    @staticmethod
    def added_in(file: FileDiff) -> list[Token]:
        """Tokens on added lines of one file, hunk by hunk."""
        return [token for hunk in file.hunks for token in tokens_of("\n".join(hunk.side("+")), file.path)]

    def _asked_in(self, file: FileDiff, hunk: Hunk) -> Iterator[Asked]:
        kept = set(self._kept_lines(hunk))
        new = [line for line in hunk.lines if line.mark != "-"]
        for token in tokens_of("\n".join(line.text for line in new), file.path):
            if token.line in kept and new[token.line].mark == "+":
                yield Asked(token, file.path, new[token.line].text)

    def _kept_lines(self, hunk: Hunk) -> Iterator[int]:
        """Numbers of the new side's lines that no test holds which passes before and after."""
        inside, depth = _name_in(hunk.heading), -1
        for number, text in enumerate(hunk.side("+ ")):
            if found := _DEFINED.match(text):
                inside, depth = found[2], len(found[1])
            elif (
                text.strip() and depth >= 0 and len(text) - len(text.lstrip()) <= depth and text.strip()[0] not in ")}]"
            ):
                inside, depth = "", -1
            if inside in self._failing or inside not in self._passing:
                yield number

    @cached_property
    def _failing(self) -> frozenset[str]:
        return _words_of(self.fail_to_pass)

    @cached_property
    def _passing(self) -> frozenset[str]:
        return _words_of(self.pass_to_pass)


def _name_in(heading: str) -> str:
    found = _DEFINED.match(heading)
    return found[2] if found else ""


def _words_of(tests: Iterable[str]) -> frozenset[str]:
    return frozenset(word for test in tests for word in _ID_WORD.findall(test))
