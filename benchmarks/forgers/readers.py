"""Readers: rules by which a submission that solves nothing chooses the true instance of a test from the texts alone.

A reader gives each instance of a test a score, and takes the instance with the highest for the true one; among equals
it draws. It sees what code under test can read: the test file of the evaluation, the agent's tree, and the drawn names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from math import log1p
from os.path import commonprefix

from evaluation.controls.blocks import count_trigrams

TOKEN = re.compile(r"\w+|[^\w\s]+")


Reader = Callable[["ReadTest"], Sequence[float]]
"""Returns a score for each instance; the highest is taken for the true one."""


@dataclass(frozen=True, kw_only=True)
class ReadTest:
    """The instances of a test in a file, as a reader sees them.

    Attributes:
        name: name of the test without its drawn word.
        names: drawn names of the instances, in the order of the file.
        bodies: texts of the instances, with `name` for the drawn names.
        rest: the file without the instances.
        tree: token -> number of its places in the agent's tree.
        trigrams: three characters in a row -> number of their places there.
        lines: stripped lines of the agent's tree.
        salt: text of the submission, from which a preference of its own follows.
    """

    name: str
    names: Sequence[str]
    bodies: Sequence[str]
    rest: str
    tree: Mapping[str, int]
    trigrams: Mapping[str, int]
    lines: frozenset[str]
    salt: str = ""
    _scores: dict[Reader, Sequence[float]] = field(default_factory=dict, repr=False)

    def score(self, reader: Reader) -> Sequence[float]:
        """Return the scores of a reader, which are computed once."""
        if reader not in self._scores:
            self._scores[reader] = reader(self)
        return self._scores[reader]

    @cached_property
    def tokens(self) -> list[list[str]]:
        """The tokens of each instance."""
        return [TOKEN.findall(body) for body in self.bodies]

    @cached_property
    def values(self) -> list[list[str]]:
        """The tokens of each instance at the places where not all instances agree."""
        if len({len(tokens) for tokens in self.tokens}) == 1:
            columns = [column for column in zip(*self.tokens, strict=True) if len(set(column)) > 1]
            return [[column[number] for column in columns] for number in range(len(self.tokens))]
        first = min(_count_common(self.tokens[0], other) for other in self.tokens[1:])
        last = min(_count_common(self.tokens[0][::-1], other[::-1]) for other in self.tokens[1:])
        return [tokens[first : max(first, len(tokens) - last)] for tokens in self.tokens]

    @cached_property
    def common(self) -> Counter[str]:
        """Token -> number of its places in an instance, where all instances agree."""
        return Counter(self.tokens[0]) - Counter(self.values[0])

    @cached_property
    def rest_tokens(self) -> Counter[str]:
        """Token -> number of its places in the rest of the file."""
        return Counter(TOKEN.findall(self.rest))


def _count_common(first: Sequence[str], second: Sequence[str]) -> int:
    number = 0
    while number < min(len(first), len(second)) and first[number] == second[number]:
        number += 1
    return number


def guess(test: ReadTest) -> Sequence[float]:
    """Return equal scores: a forger who cannot read."""
    return [0.0] * len(test.names)


def prefer_frequent_text(test: ReadTest) -> Sequence[float]:
    """Return how many instances have the same text."""
    texts = Counter(test.bodies)
    return [texts[body] for body in test.bodies]


def prefer_majority_at_each_place(test: ReadTest) -> Sequence[float]:
    """Return how often the tokens of an instance stand at their places in all instances."""
    width = max(map(len, test.values))
    columns = [Counter(v[place] for v in test.values if place < len(v)) for place in range(width)]
    return [sum(columns[place][token] for place, token in enumerate(value)) for value in test.values]


def prefer_values_of_the_test(test: ReadTest) -> Sequence[float]:
    """Return how often the values stand elsewhere in the test: agreement with its inputs and other assertions."""
    return [_average(test.common[token] for token in value) for value in test.values]


def prefer_values_of_the_file(test: ReadTest) -> Sequence[float]:
    """Return how often the values stand in the rest of the file."""
    return [_average(test.rest_tokens[token] for token in value) for value in test.values]


def prefer_values_of_the_tree(test: ReadTest) -> Sequence[float]:
    """Return how often the values stand in the agent's tree."""
    return [_average(test.tree.get(token, 0) for token in value) for value in test.values]


def avoid_unknown_words(test: ReadTest) -> Sequence[float]:
    """Return the share of values that stand anywhere: a word that nobody wrote was made by a machine."""
    return [
        _average(bool(test.tree.get(t, 0) or test.rest_tokens[t] or test.common[t]) for t in v) for v in test.values
    ]


def prefer_rare_values(test: ReadTest) -> Sequence[float]:
    """Return how seldom the values stand in the file and the tree: others were taken from there."""
    return [-_average(test.rest_tokens[token] + test.tree.get(token, 0) for token in value) for value in test.values]


def prefer_lines_of_the_tree(test: ReadTest) -> Sequence[float]:
    """Return how many lines of an instance the agent's tree has."""
    return [sum(line.strip() in test.lines for line in body.splitlines()) for body in test.bodies]


def prefer_round_numbers(test: ReadTest) -> Sequence[float]:
    """Return how many zeros the numbers end with, less the number of their different digits."""
    return [sum(len(t) - len(t.rstrip("0")) - len(set(t)) / 100 for t in value if t.isdigit()) for value in test.values]


def prefer_small_numbers(test: ReadTest) -> Sequence[float]:
    """Return the numbers, the smallest first."""
    return [-sum(int(token) for token in value if token.isdecimal() and len(token) < 19) for value in test.values]


def prefer_short_texts(test: ReadTest) -> Sequence[float]:
    """Return the length of the text, the shortest first."""
    return [-len(body) for body in test.bodies]


def prefer_long_texts(test: ReadTest) -> Sequence[float]:
    """Return the length of the text, the longest first."""
    return [len(body) for body in test.bodies]


def take_the_first(test: ReadTest) -> Sequence[float]:
    """Return the place in the file, the first first."""
    return [-number for number in range(len(test.names))]


def take_the_last(test: ReadTest) -> Sequence[float]:
    """Return the place in the file, the last first."""
    return list(range(len(test.names)))


def take_the_first_name(test: ReadTest) -> Sequence[float]:
    """Return the place among the drawn names in alphabetical order."""
    return [-sorted(test.names).index(name) for name in test.names]


def agree_with_the_name(test: ReadTest) -> Sequence[float]:
    """Return how many values occur in the name of the test, or in its first lines."""
    head = f"{test.name} {' '.join(test.bodies[0].splitlines()[:3])}".lower()
    return [sum(token.lower() in head for token in value if token.isalnum()) for value in test.values]


def prefer_sorted_values(test: ReadTest) -> Sequence[float]:
    """Return how many neighbours among the numbers and words of an instance are in order, as in lists by hand."""
    return [
        sum(first <= second for first, second in pairwise(words))
        for words in ([token for token in tokens if token.isalnum()] for tokens in test.tokens)
    ]


def prefer_usual_characters(test: ReadTest) -> Sequence[float]:
    """Return how frequent the characters of an instance are next to each other in the file and the tree."""
    rest = count_trigrams([test.rest.encode()])
    start = commonprefix(test.bodies)  # noqa: RUF071 - of characters
    end = commonprefix([body[len(start) :][::-1] for body in test.bodies])[::-1]  # noqa: RUF071 - of characters

    def add(text: str) -> tuple[float, int]:
        counts = count_trigrams([text.encode()])
        return sum(n * log1p(rest[t] + test.trigrams.get(t, 0)) for t, n in counts.items()), counts.total()

    # The instances differ in few places: the rest of their text is counted once.
    common, n_common = (first + last for first, last in zip(add(start), add(end), strict=True))
    own = [add(start[-2:] + body[len(start) : len(body) - len(end)] + end[:2]) for body in test.bodies]
    return [(common + frequency) / max(1, n_common + number) for frequency, number in own]


def vote(test: ReadTest) -> Sequence[float]:
    """Return how many of the readers of values take an instance: a forger who combines them."""
    votes = [0.0] * len(test.names)
    for reader in VOTERS:
        scores = test.score(reader)
        best = [number for number, score in enumerate(scores) if score == max(scores)]
        for number in best:
            votes[number] += 1 / len(best)
    return votes


def prefer_by_salt(test: ReadTest) -> Sequence[float]:
    """Return at how many places a value comes first in an order of the submission's own, the same each time."""
    width = max(map(len, test.values))
    scores = [0.0] * len(test.names)
    for place in range(width):
        column = [value[place] if place < len(value) else "" for value in test.values]
        first = min(set(column), key=lambda token: blake2b(f"{test.salt} {token}".encode(), digest_size=8).digest())
        scores = [score + (token == first) for score, token in zip(scores, column, strict=True)]
    return scores


def _average(numbers: Iterable[float]) -> float:
    values = list(numbers)
    return sum(values) / len(values) if values else 0.0


VOTERS: Sequence[Reader] = (
    prefer_values_of_the_test,
    prefer_values_of_the_file,
    prefer_values_of_the_tree,
    avoid_unknown_words,
    prefer_lines_of_the_tree,
    prefer_round_numbers,
    agree_with_the_name,
    prefer_sorted_values,
    prefer_usual_characters,
)
READERS: Mapping[str, Reader] = {
    "guesses": guess,
    "majority of texts": prefer_frequent_text,
    "majority at each place": prefer_majority_at_each_place,
    "value elsewhere in the test": prefer_values_of_the_test,
    "value elsewhere in the file": prefer_values_of_the_file,
    "value in the tree, most frequent": prefer_values_of_the_tree,
    "no word that nobody wrote": avoid_unknown_words,
    "rarest value": prefer_rare_values,
    "lines of the tree": prefer_lines_of_the_tree,
    "roundest number": prefer_round_numbers,
    "smallest number": prefer_small_numbers,
    "shortest text": prefer_short_texts,
    "longest text": prefer_long_texts,
    "first instance": take_the_first,
    "last instance": take_the_last,
    "first name": take_the_first_name,
    "agreement with the name": agree_with_the_name,
    "values in order": prefer_sorted_values,
    "most usual characters": prefer_usual_characters,
    "most of these readers": vote,
    "preference of its own": prefer_by_salt,
}
"""Name -> reader."""
LUCK: frozenset[Reader] = frozenset({guess, take_the_first, take_the_last, take_the_first_name, prefer_by_salt})
"""Readers that go by chance, from which nothing can be learned."""
