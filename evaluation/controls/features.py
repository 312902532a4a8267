"""Features of values by which a reader could find the true one: where else they stand, their size, how usual they look.

The values of a draw are chosen so that the true one is as likely first as last in each feature
(`guest.controls.choices`), and the odds of a reader that goes by one of them are part of the bound.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from math import log1p

from backends.git import GitRepository, TreeEntry
from evaluation.controls.blocks import TOKEN, TestFile, count_tokens, count_trigrams
from guest.controls.texts import apply_edits
from languages.paths import is_source, is_test_file

_MAX_TREE_FILES = 400
_MAX_TREE_BYTES = 4_000_000
_MAX_FILE_BYTES = 1_000_000
"""Larger files are data."""
_MAX_DIGITS = 15
_FAMILIAR = (0, 1, 2, 6)
"""Features that are counts of tokens or trigrams."""
VOTERS = (0, 1, 2, 4, 5, 8, 9, 10, 11)
"""Features of which a value that somebody wrote is expected to have more than one that a machine made."""
_HEAD_LINES = 3
"""First lines of a test, which often show its subject."""
_COARSE = (9, 10)
"""Features in which most values are equal: whether they stand anywhere, which counts show, and in the first lines."""
_CONTEXT_BYTES = 200
"""Bytes in which the characters next to a site, and the rest of a word of which it is a part, are looked for."""
_WORD_END = re.compile(r"\w*\Z")
_WORD_START = re.compile(r"\w*")


@dataclass(frozen=True, kw_only=True)
class TreeCounts:
    """Tokens of the agent's tree, three characters in a row, and stripped lines, with the numbers of their places."""

    tokens: Mapping[str, int] = field(default_factory=dict)
    trigrams: Mapping[str, int] = field(default_factory=dict)
    lines: Mapping[bytes, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Counts of tokens and trigrams around a site, its lines, and the characters before and after it."""

    test: Mapping[str, int]
    """Tokens of the rest of its test."""
    file: Mapping[str, int]
    """Tokens of the rest of its file."""
    file_trigrams: Mapping[str, int]
    before: str
    """The text before it, of `_CONTEXT_BYTES`."""
    after: str
    tree: TreeCounts
    test_text: bytes = b""
    """The rest of its test."""
    other_text: bytes = b""
    """The rest of its file."""
    lines: bytes = b""
    """The lines of its places, with those between them."""
    spans: Sequence[tuple[int, int]] = ()
    """First byte and end of its places in `lines`."""
    name: str = ""
    """Name of its test."""
    _described: dict[str, list[float]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def read(
        cls, file: TestFile, block: tuple[int, int], spans: Sequence[tuple[int, int]], tree: TreeCounts, name: str = ""
    ) -> Surroundings:
        """Return the surroundings of a site.

        Args:
            file: file of the test.
            block: first byte and end of the test.
            spans: first byte and end of each place of the site.
            tree: words and lines of the agent's tree, counted.
            name: name of the test.
        """
        start, end = block
        block_text = file.source[start:end]
        test = bytearray(block_text)
        for first, last in spans:
            test[first - start : last - start] = b" " * (last - first)
        first, last = spans[0]
        lines_start = file.source.rfind(b"\n", 0, min(spans)[0]) + 1
        lines_end = file.source.find(b"\n", max(end for _, end in spans))
        rest_tokens, rest_trigrams = file.count_rest(start, end)
        return cls(
            test=count_tokens([bytes(test)]),
            file=rest_tokens,
            file_trigrams=rest_trigrams,
            before=file.source[max(0, first - _CONTEXT_BYTES) : first].decode(errors="replace"),
            after=file.source[last : last + _CONTEXT_BYTES].decode(errors="replace"),
            tree=tree,
            test_text=bytes(test),
            other_text=file.source[:start] + b" " + file.source[end:],
            lines=file.source[lines_start : lines_end if lines_end >= 0 else None],
            spans=[(first - lines_start, last - lines_start) for first, last in spans],
            name=name,
        )

    def describe(self, text: str) -> list[float]:
        """Return the features of a value."""
        if text not in self._described:
            self._described[text] = self._compute_features(text)
        return self._described[text]

    def _compute_features(self, text: str) -> list[float]:
        # A part of a word is looked for with the rest of it.
        tokens = TOKEN.findall(f"{self._word_start}{text}{self._word_end}")
        number = text.strip("'\"")
        trigrams = count_trigrams([f"{self.before[-2:]}{text}{self.after[:2]}".encode()])
        weights = {trigram: self._weigh(trigram) for trigram in trigrams}
        usual = sum(n * weights[trigram] for trigram, n in trigrams.items())
        return [
            # A value without words, such as `{}`, stands elsewhere as it is.
            *(
                (
                    _average(self.test.get(token, 0) for token in tokens),
                    _average(self.file.get(token, 0) for token in tokens),
                )
                if tokens
                else (self.test_text.count(text.encode()), self.other_text.count(text.encode()))
            ),
            round(_average(log1p(self.tree.tokens.get(token, 0)) for token in tokens), 3),
            float(number) if number.isdecimal() and len(number) <= _MAX_DIGITS else float(len(text)),
            float(len(number) - len(number.rstrip("0"))) if number[:1].isdigit() else 0.0,
            _average(first <= second for first, second in pairwise(tokens)),
            round(_average(weights.values()), 2),
            # Also of a number, as it may stand among words.
            float(len(text)),
            float(self._count_known_lines(text)),
            _average(token in self.test or token in self.file or token in self.tree.tokens for token in tokens),
            float(sum(token.lower() in self._head for token in tokens)),
            # By this the usual characters of the whole test are more, or fewer, on average.
            round(usual - trigrams.total() * self._usual_weight, 2),
        ]

    @cached_property
    def _word_start(self) -> str:
        """The beginning of the word of which the site is a part."""
        return (_WORD_END.search(self.before) or [""])[0]

    @cached_property
    def _word_end(self) -> str:
        """The end of that word."""
        return (_WORD_START.match(self.after) or [""])[0]

    @cached_property
    def _usual_weight(self) -> float:
        """How usual the characters of the rest of the test are, on average."""
        trigrams = count_trigrams([self.test_text])
        return sum(n * self._weigh(trigram) for trigram, n in trigrams.items()) / max(1, trigrams.total())

    @cached_property
    def _head(self) -> str:
        """The name of the test and its first lines in lower case, without the value."""
        lines = self.test_text.split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
        return b"\n".join([self.name.encode(), *lines]).decode(errors="replace").lower()

    def _count_known_lines(self, text: str) -> int:
        """Return how many lines with a value stand in the tree."""
        if not self.tree.lines:
            return 0
        edits = [[start, end, text] for start, end in self.spans]
        return sum(line.strip() in self.tree.lines for line in apply_edits(self.lines, edits).splitlines())

    def _weigh(self, trigram: str) -> float:
        """Return how usual three characters in a row are in file and tree."""
        return log1p(self.file_trigrams.get(trigram, 0) + self.tree.trigrams.get(trigram, 0))


def _average(numbers: Iterable[float]) -> float:
    values = list(numbers)
    return round(sum(values) / len(values), 3) if values else 0.0


def count_tree(repository: GitRepository, commit: str) -> TreeCounts:
    """Return the counts of the text files of a commit; of a large tree those of its first files, sources first."""
    return TreeCounter().count(repository, commit)


@dataclass(kw_only=True)
class TreeCounter:
    """Counts trees that differ by few files, each from the tree that was counted first."""

    _first: dict[tuple[str, str], int] = field(default_factory=dict)
    """(Path, id of the content) -> bytes, of the files that were counted first."""
    _tokens: Counter[str] = field(default_factory=Counter)
    _trigrams: Counter[str] = field(default_factory=Counter)
    _lines: Counter[bytes] = field(default_factory=Counter)

    def count(self, repository: GitRepository, commit: str, without: str = "") -> TreeCounts:
        """Return the counts of the text files of a commit; of a large tree those of its first files, sources first.

        Args:
            repository: repository that contains the commit, and the files of the tree that was counted first.
            commit: the commit.
            without: path of a file that is left out.
        """
        files = {(entry.path, entry.oid): entry.size for entry in _list_counted_files(repository, commit, without)}
        if not self._first:
            contents = _read_files(repository, files)
            self._first, self._lines = files, _count_lines(contents)
            self._tokens, self._trigrams = count_tokens(contents), count_trigrams(contents)
            return TreeCounts(tokens=self._tokens, trigrams=self._trigrams, lines=self._lines)
        added = _read_files(repository, [file for file in files if file not in self._first])
        removed = _read_files(repository, [file for file in self._first if file not in files])
        # A difference of counters has no zeros, as if the tree had been counted alone.
        return TreeCounts(
            tokens=self._tokens + count_tokens(added) - count_tokens(removed),
            trigrams=self._trigrams + count_trigrams(added) - count_trigrams(removed),
            lines=self._lines + _count_lines(added) - _count_lines(removed),
        )


def _count_lines(contents: Iterable[bytes]) -> Counter[bytes]:
    """Return stripped line -> number of its places in texts."""
    return Counter(line.strip() for content in contents for line in content.splitlines())


def _read_files(repository: GitRepository, files: Iterable[tuple[str, str]]) -> list[bytes]:
    """Return the contents of text files. `files`: path and id of the content of each."""
    return [content for content in repository.read_blobs([oid for _, oid in files]) if b"\0" not in content]


def _list_counted_files(repository: GitRepository, commit: str, without: str) -> list[TreeEntry]:
    """Return the files of a tree that are counted: the first sources and tests, and then the others, such as pages."""
    files = [entry for entry in repository.ls_tree(commit) if entry.mode.startswith("100") and entry.path != without]
    files.sort(key=lambda entry: not (is_source(entry.path) or is_test_file(entry.path)))
    entries = [entry for entry in files if entry.size <= _MAX_FILE_BYTES][:_MAX_TREE_FILES]
    sizes = accumulate(entry.size for entry in entries)
    return [entry for entry, size in zip(entries, sizes, strict=True) if size <= _MAX_TREE_BYTES]


def sort_by_likeness(surroundings: Surroundings, true: str, texts: Sequence[str]) -> list[str]:
    """Return other values of a site, those first that are most like the true one in all features together.

    Two values differ in a feature by the share of values that lie between them.
    """
    if not texts:
        return []
    columns = list(zip(*(surroundings.describe(text) for text in (true, *texts)), strict=True))
    differences = [0.0] * len(texts)
    for column in columns:
        ordered = sorted(column)
        own = _find_middle(ordered, column[0])
        for place, feature in enumerate(column[1:]):
            differences[place] += abs(_find_middle(ordered, feature) - own)
    order = sorted(range(len(texts)), key=lambda place: differences[place])
    return [texts[place] for place in order]


def _find_middle(ordered: Sequence[float], feature: float) -> float:
    """Return the middle of the places of a number in a sorted sequence."""
    return (bisect_left(ordered, feature) + bisect_right(ordered, feature)) / 2


def add_sums(rows: Sequence[list[float]]) -> list[list[float]]:
    """Return rows of features of a site's values with two more, which join others.

    The places of a value among all, from the least, are added: of how often test, file and tree have its parts, and of
    all `VOTERS`.
    """
    columns = list(zip(*rows, strict=True))
    places = {feature: _rank(columns[feature]) for feature in (*_FAMILIAR, *VOTERS)}
    groups = (_FAMILIAR, VOTERS)
    joined = [[sum(places[feature][row] for feature in group) for row in range(len(rows))] for group in groups]
    return [[*row, *sums] for row, sums in zip(rows, zip(*joined, strict=True), strict=True)]


def _rank(column: Sequence[float]) -> list[float]:
    """Return the middle of the places of each number among all."""
    ordered = sorted(column)
    return [_find_middle(ordered, number) for number in column]


def compute_balance(surroundings: Surroundings, true: str, texts: Sequence[str]) -> float:
    """Return the share of other values that lie on the rarer side of the true one, in the feature that shows it best.

    0 where the true value has the most or least of some feature, 0.5 at most; equal values lie on both sides.
    """
    own, others = surroundings.describe(true), [surroundings.describe(text) for text in texts]
    shares = []
    for place, feature in enumerate(own):
        if place in _COARSE:
            continue
        above = sum(other[place] > feature for other in others)
        below = sum(other[place] < feature for other in others)
        shares.append((min(above, below) + (len(others) - above - below) / 2) / len(others))
    return min(shares)
