"""Input of the judge: a statement, the gold and test patch, and a text search in the base tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from languages.registry import detect_file_language, find_signatures
from verifiers.judge.diffs import DiffHunk, FileDiff, parse_patch
from verifiers.judge.tokens import CodeToken, tokenize

TextSearch = Callable[[Collection[str]], set[str]]
"""Returns those of the given texts that the base tree contains."""
_ID_WORD = re.compile(r"\w+")


def _find_nothing(texts: Collection[str]) -> set[str]:
    del texts
    return set()


@dataclass(frozen=True)
class AddedToken:
    """A token on an added line of the tests."""

    token: CodeToken
    path: str
    line: str
    """The whole line of the test patch without its mark."""


@dataclass(frozen=True, kw_only=True)
class JudgeCase:
    """A task as seen by the rules. Patches are git diffs."""

    name: str
    repo: str
    statement: str
    hints: str = ""
    gold_patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    number: int | None = None
    """Number of the pull request, if any."""
    merge_commit: str = ""
    find_in_base_tree: TextSearch = _find_nothing
    """Only used for texts that the context of the patches does not contain."""

    def cache_searches(self) -> JudgeCase:
        """Return the case with a search that looks up each text once: rules run on every version of a statement."""
        known: dict[str, bool] = {}

        def search(texts: Collection[str]) -> set[str]:
            new = [text for text in texts if text not in known]
            files = self.find_in_base_tree(new) if new else set()
            known.update({text: text in files for text in new})
            return {text for text in texts if known[text]}

        return replace(self, find_in_base_tree=search)

    @cached_property
    def gold_files(self) -> tuple[FileDiff, ...]:
        """The files of the gold patch."""
        return parse_patch(self.gold_patch)

    @cached_property
    def test_files(self) -> tuple[FileDiff, ...]:
        """The files of the test patch."""
        return parse_patch(self.test_patch)

    @cached_property
    def old_text(self) -> str:
        """Text of both patches that is part of the base tree: removed and context lines, paths, headings of hunks."""
        files = (*self.gold_files, *self.test_files)
        old = [text for file in files for text in file.get_lines("- ")]
        headings = [hunk.heading for file in files for hunk in file.hunks]
        return "\n".join([*old, *headings, *(file.path for file in files if not file.is_new)])

    @cached_property
    def old_names(self) -> frozenset[str]:
        """Words of `old_text`."""
        return frozenset(_ID_WORD.findall(self.old_text))

    @cached_property
    def test_tokens(self) -> tuple[AddedToken, ...]:
        """Tokens on added lines of the tests, without those of tests listed as passing before and after."""
        return tuple(
            token for file in self.test_files for hunk in file.hunks for token in self._tokenize_hunk(file, hunk)
        )

    @cached_property
    def source_files(self) -> tuple[FileDiff, ...]:
        """Files of the gold patch that are program text in a known language."""
        return tuple(file for file in self.gold_files if detect_file_language(file.path))

    @cached_property
    def gold_tokens(self) -> tuple[tuple[str, CodeToken], ...]:
        """(path, token) on added lines of the gold patch."""
        return tuple((file.path, token) for file in self.gold_files for token in self.tokenize_added(file))

    @staticmethod
    def tokenize_added(file: FileDiff) -> list[CodeToken]:
        """Return the tokens on added lines of a file, hunk by hunk."""
        return [token for hunk in file.hunks for token in tokenize("\n".join(hunk.get_lines("+")), file.path)]

    def _tokenize_hunk(self, file: FileDiff, hunk: DiffHunk) -> Iterator[AddedToken]:
        kept = set(self._select_line_numbers(hunk, find_signatures(file.path).function))
        new = [line for line in hunk.lines if line.mark != "-"]
        for token in tokenize("\n".join(line.text for line in new), file.path):
            if token.line in kept and new[token.line].mark == "+":
                yield AddedToken(token, file.path, new[token.line].text)

    def _select_line_numbers(self, hunk: DiffHunk, function: str) -> Iterator[int]:
        """Yield 0-based numbers of new-side lines outside tests that pass before and after.

        Args:
            hunk: part of the test patch.
            function: regex of a line that begins a function.
        """
        heading = re.match(function, hunk.heading)
        inside, depth = heading[2] if heading else "", -1
        for number, text in enumerate(hunk.get_lines("+ ")):
            if match := re.match(function, text):
                inside, depth = match[2], len(match[1])
            elif (
                text.strip() and depth >= 0 and len(text) - len(text.lstrip()) <= depth and text.strip()[0] not in ")}]"
            ):
                inside, depth = "", -1
            if inside in self._failing_words or inside not in self._passing_words:
                yield number

    @cached_property
    def _failing_words(self) -> frozenset[str]:
        return _collect_words(self.fail_to_pass)

    @cached_property
    def _passing_words(self) -> frozenset[str]:
        return _collect_words(self.pass_to_pass)


def _collect_words(tests: Iterable[str]) -> frozenset[str]:
    return frozenset(word for test in tests for word in _ID_WORD.findall(test))
