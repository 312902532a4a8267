"""Other values for a literal or container of a test: of the same type and shape, as plausible as the value itself.

A submission that reads the instances of a test must not see which value is true. So other values come from the test's
own file first, where the true value stands there more than once as well; otherwise they are made as the true value is:
with as many digits, as round, of words of the file, of the same members in another order.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise, zip_longest
from math import log1p
from random import Random

from tree_sitter import Node

from evaluation.controls.spare_words import SPARE_WORDS

_MAX_WORDS = 3
"""Words of a string that are changed, each for itself."""
_MIN_ORDERED = 3
"""Different words of a string whose order is changed: two have only one other order."""
_FEW = 3
"""Other texts of a word below which a letter of the string is changed as well."""
_LEAST_WORD = 2
"""Letters of a word; a single one is replaced by another."""
_FREQUENT_LETTERS = "aeinorstbcdglmpu"
_SCRIPT_LENGTH = 128
"""Code points of a block of Unicode, as most scripts have them."""
MAX_ALTERNATIVES = 100
"""Other values of a site that are kept: enough for the most instances of a test that takes its time."""
MAX_POOL = 120
"""Other values of which these are chosen."""
_ATTEMPTS = 6
"""Draws for each value that is looked for; most draws of short values repeat an earlier one."""
_REPEATS = 10
"""Draws in a row for each value seen after which there is hardly another: one of ten digits is left in 1 of 10,000."""
_SHARE_BELOW = 0.5
_LEAST_NEAR = 10
"""Numbers from which others lie around them; of one digit all are few enough."""
_NEAR_SPAN = 20
_LARGE = 1000
"""Numbers from which others are nearer, as a year or a port has few digits that may differ."""
_INTEGER_LIMITS = tuple(2**bits - 1 for bits in (31, 32, 63, 64))
"""Greatest integers of common types. A compiler rejects a file with a number that its type cannot hold."""
_NUMBER = re.compile(r"(number|integer|float|real|hex|octal|binary_literal|int_literal)")
_STRING = re.compile(r"^(string|string_literal|interpreted_string_literal|raw_string_literal|encapsed_string)$")
_OTHER_STRING = re.compile(r"^(interpolated_string_literal|template_string|line_string_literal)$")
_CHARACTER = re.compile(r"^(char_literal|character_literal|rune_literal)$")
_CONTAINERS = re.compile(r"^(list|tuple|array|array_literal|array_expression|array_creation_expression|literal_value)$")
_BOOLEANS = {"true": "false", "false": "true", "True": "False", "False": "True"}
_CONTENTS = frozenset(
    {
        "string_content",
        "string_fragment",
        "quoted_content",
        "interpreted_string_literal_content",
        "raw_string_literal_content",
        "character",
        "string_start",
        "string_end",
        "escape_sequence",
    }
)
_OPENING = re.compile(r"(?:[A-Za-z]{0,2}#*|q[qw]?)(?P<quote>\"\"\"|'''|\"|'|`|[({\[|/!])")
_WORD = re.compile(r"[^\W\d_]{2,}")
_CODE = re.compile(r"(?P<prefix>0x)?(?P<body>(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{8,})")
"""A hash, an address or a key: letters and digits without words."""
_TOKEN = re.compile(r"[^\W\d_]+|\d+")
_NUMBER_PARTS = re.compile(r"(?P<prefix>0[xXbBoO])?(?P<digits>[0-9a-fA-F_.]+?)(?P<suffix>[eE][+-]?\d+|[A-Za-z]\w*)?$")
_FIXED = re.compile(
    r"\\(?:[uU]\{[^}]*\}|[uU][0-9a-fA-F]+|x[0-9a-fA-F]+|N\{[^}]*\}|[0-7]{1,3}|.)|[%{$@][-+ #.\w]*|[#$%]\{[^}]*\}",
    re.DOTALL,
)
"""Parts of a string that stay: escapes, formats and variables."""


def is_string(node: Node) -> bool:
    """Return whether a node is a string literal without anything computed in it."""
    is_text = _STRING.match(node.type) or _OTHER_STRING.match(node.type)
    return bool(is_text) and all(child.type in _CONTENTS for child in node.named_children)


def is_literal(node: Node) -> bool:
    """Return whether a node is a literal that `draw_alternatives` can change."""
    if _STRING.match(node.type) or _OTHER_STRING.match(node.type):
        return is_string(node)
    if _CHARACTER.match(node.type):
        return True
    text = _read(node)
    return not node.named_children and (text in _BOOLEANS or is_number(node))


def is_number(node: Node) -> bool:
    """Return whether a node is the literal of a number."""
    return not node.named_children and bool(_NUMBER.search(node.type)) and _read(node)[:1].isdigit()


def is_container(node: Node) -> bool:
    """Return whether a node is a list or tuple whose members `draw_orders` can change."""
    return bool(_CONTAINERS.match(node.type)) and len(node.named_children) > 1


def _read(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


@dataclass(frozen=True)
class FileLiterals:
    """Literals of a file, quotes included: text -> number of its places."""

    strings: Mapping[str, int]
    numbers: Mapping[str, int]

    @classmethod
    def read(cls, root: Node) -> FileLiterals:
        """Return the literals below a node."""
        strings: Counter[str] = Counter()
        numbers: Counter[str] = Counter()
        todo = [root]
        while todo:
            node = todo.pop()
            if is_string(node):
                strings[_read(node)] += 1
            elif is_number(node):
                numbers[_read(node)] += 1
            else:
                todo += node.named_children
        return cls(dict(sorted(strings.items())), dict(sorted(numbers.items())))

    @cached_property
    def words(self) -> Sequence[str]:
        """Words in strings, sorted."""
        return sorted({word for text in self.strings if "\\" not in text for word in _WORD.findall(text)})

    @cached_property
    def word_set(self) -> frozenset[str]:
        """The same words, to search in."""
        return frozenset(self.words)

    @cached_property
    def letters(self) -> Sequence[str]:
        """Letters in strings that are not ASCII, sorted."""
        return sorted({letter for text in self.strings for letter in text if letter.isalpha() and not letter.isascii()})


@dataclass(frozen=True)
class Alternatives:
    """Other texts for a part of a literal, characters `start:end` of it, the most plausible first."""

    start: int
    end: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class TreeWords:
    """Words of the agent's tree by their form and length, and the numbers of their places."""

    groups: Mapping[tuple[str, int], Sequence[str]]
    counts: Mapping[str, int]

    @classmethod
    def read(cls, tokens: Mapping[str, int]) -> TreeWords:
        """Return the words among tokens. `tokens`: token -> number of its places."""
        groups: dict[tuple[str, int], list[str]] = {}
        for token in sorted(tokens):
            if _WORD.fullmatch(token):
                groups.setdefault((_describe_word(token), len(token)), []).append(token)
        return cls(groups, tokens)

    def list_similar(self, word: str) -> list[str]:
        """Return words that may stand for another and differ from it in length by little, as frequent ones first."""
        shape = _describe_word(word)
        lengths = range(len(word) - _get_tolerance(word), len(word) + _get_tolerance(word) + 1)
        similar = [other for length in lengths for other in self.groups.get((shape, length), ()) if other != word]
        own = log1p(self.counts.get(word, 0))
        return sorted(similar, key=lambda other: abs(log1p(self.counts[other]) - own))


NO_WORDS = TreeWords({}, {})


def draw_alternatives(
    node: Node, literals: FileLiterals, own: FileLiterals, random: Random, tree: TreeWords = NO_WORDS
) -> list[Alternatives]:
    """Return other texts for a literal or for words of it; none where there is no other of its shape.

    All texts of a part differ at the same words. Were some different here and others there, the true text would have
    the most frequent word at each place.

    Args:
        node: a literal.
        literals: those of its file.
        own: those of its test.
        random: random that chooses among equally good texts.
        tree: words of the agent's tree.
    """
    text = _read(node)
    if text in _BOOLEANS:
        return [Alternatives(0, len(text), (_BOOLEANS[text],))]
    if is_number(node):
        return _list_alternatives(0, len(text), _draw_numbers(text, literals.numbers, own.numbers, random))
    return _draw_strings(text, _TextPool(literals, own, tree), random)


def _list_alternatives(start: int, end: int, texts: Sequence[str]) -> list[Alternatives]:
    return [Alternatives(start, end, tuple(texts))] if texts else []


def draw_orders(container: Node, source: bytes, random: Random) -> list[str]:
    """Return the text of a container with its members in other orders, where all members are literals.

    Args:
        container: a node of which `is_container` holds.
        source: the file.
        random: random that draws the orders.
    """
    members = container.named_children
    if not all(is_literal(member) for member in members):
        return []
    gaps = [source[first.end_byte : second.start_byte] for first, second in pairwise(members)]
    head = source[container.start_byte : members[0].start_byte]
    tail = source[members[-1].end_byte : container.end_byte]

    def write(texts: Sequence[bytes]) -> str:
        parts = [text + gap for text, gap in zip(texts, [*gaps, b""], strict=True)]
        return (head + b"".join(parts) + tail).decode(errors="replace")

    texts = [source[member.start_byte : member.end_byte] for member in members]
    drawn = (write(random.sample(texts, len(texts))) for _ in range(_ATTEMPTS * MAX_POOL))
    return _collect(drawn, write(texts))


def _collect(draws: Iterator[str], without: str) -> list[str]:
    """Return different texts of an iterator that may repeat them, at most `MAX_POOL`."""
    texts: dict[str, None] = {}
    for text in draws:
        if text != without:
            texts[text] = None
        if len(texts) == MAX_POOL:
            break
    return list(texts)


def _stop_at_repeats(draws: Iterator[str]) -> Iterator[str]:
    """Yield drawn texts until they do nothing but repeat earlier ones."""
    seen: set[str] = set()
    n_repeats = 0
    for text in draws:
        n_repeats = n_repeats + 1 if text in seen else 0
        seen.add(text)
        yield text
        if n_repeats > _REPEATS * len(seen):
            break


# --------------------------------------------------------------------------------------------------------- numbers


def _draw_numbers(text: str, numbers: Mapping[str, int], own: Mapping[str, int], random: Random) -> list[str]:
    """Return numbers with as many digits, as many zeros at their end, and the same prefix and suffix.

    Types of integers that hold the number hold each of them.
    """
    shape = _describe_number(text)
    same = [number for number in numbers if number != text and _describe_number(number) == shape]
    random.shuffle(same)
    same.sort(key=lambda number: number not in own)
    drawn = _draw_like_number(text, random)
    is_repeated = numbers.get(text, 0) > 1
    parts = (iter(same), drawn) if is_repeated else (drawn, iter(same))
    return _collect((number for part in parts for number in part if _has_same_width(text, number)), text)


def _draw_like_number(text: str, random: Random) -> Iterator[str]:
    """Yield numbers like another one until they do nothing but repeat earlier ones."""
    if len(text) == 1 and text in string.digits:
        return iter(random.sample(string.digits, len(string.digits)))
    return _stop_at_repeats(_draw_number(text, random) for _ in range(_ATTEMPTS * MAX_POOL))


def _has_same_width(text: str, other: str) -> bool:
    """Return whether two integers exceed the same limits; true of other numbers."""
    try:
        first, second = int(text, 0), int(other, 0)
    except ValueError:
        return True
    return bisect_left(_INTEGER_LIMITS, first) == bisect_left(_INTEGER_LIMITS, second)


def _describe_number(text: str) -> tuple[object, ...]:
    parts = _NUMBER_PARTS.match(text)
    if parts is None:
        return (text,)
    body, zeros = _split_zeros(parts["digits"])
    return parts["prefix"], re.sub(r"[0-9a-fA-F]", "0", body), zeros, parts["suffix"]


def _split_zeros(digits: str) -> tuple[str, str]:
    """Return the digits without the zeros they end with, and these; a number of nothing but zeros ends with none."""
    body = digits.rstrip("0_.")
    return (body, digits[len(body) :]) if body else (digits, "")


def _draw_number(text: str, random: Random) -> str:
    parts = _NUMBER_PARTS.match(text)
    if parts is None:
        return text
    prefix, digits, suffix = parts["prefix"] or "", parts["digits"], parts["suffix"] or ""
    alphabet = {"b": "01", "o": "01234567", "x": "0123456789abcdef"}.get(prefix[1:].lower(), "0123456789")
    if any(digit.isupper() for digit in digits):
        alphabet = alphabet.upper()
    body, zeros = _split_zeros(digits)
    if alphabet == string.digits and (near := _draw_near(body, random)):
        return near + zeros + suffix
    if zeros == "0" * len(zeros) and body == "1" and zeros and random.random() < _SHARE_BELOW:
        return random.choice(alphabet[1:]) + zeros[1:] + suffix  # no number as round and as long is below it
    drawn = [random.choice(alphabet) if digit.isalnum() else digit for digit in body]
    # A number begins with a zero only where it is a digit or a fraction; and a last zero would make it rounder.
    if len(digits) > 1:
        drawn[0] = "0" if body[0] == "0" else random.choice(alphabet[1:])
        if drawn[-1] == "0" and body[-1] != "0":
            drawn[-1] = random.choice(alphabet[1:])
    return prefix + "".join(drawn) + zeros + suffix


def _draw_near(body: str, random: Random) -> str:
    """Return a number as likely below a decimal number of at least two digits as above it; empty for any other.

    Digits drawn at random would make 12 the smallest of most draws, and a year the only one of its century.
    """
    whole, point, fraction = body.partition(".")
    if not (whole + (fraction or "0")).isdecimal() or (len(whole) > 1 and whole[0] == "0"):
        return ""
    number = int(whole + fraction)
    if number < _LEAST_NEAR:
        return ""
    span = max(_NEAR_SPAN, number // 2 if number < _LARGE else number // 50)
    below = min(span, number - 1)
    other = number - random.randint(1, below) if random.random() < 0.5 else number + random.randint(1, 2 * span - below)
    if other % 10 == 0:
        return body  # drawn again
    digits = str(other).zfill(len(fraction) + 1)
    return f"{digits[: -len(fraction)]}.{digits[-len(fraction) :]}" if point else digits


# --------------------------------------------------------------------------------------------------------- strings


@dataclass(frozen=True)
class _TextPool:
    """Where words are taken from: the file, the test, and the agent's tree."""

    file: FileLiterals
    test: FileLiterals
    tree: TreeWords


def _draw_strings(text: str, pool: _TextPool, random: Random) -> list[Alternatives]:
    """Return other texts for each word of a string, for the order of its words, and for the string as a whole."""
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    end = len(text) - (len(opening["quote"]) if opening else 0)
    inner = text[start:end]
    whole = _list_alternatives(0, len(text), _list_similar(text, inner, pool.file, random))
    words = _TextWords(inner, pool, random)
    parts = [
        *(Alternatives(start + part.start, start + part.end, part.texts) for part in words.list_alternatives()),
        *whole,
    ]
    return sorted(parts, key=lambda part: -len(part.texts))


def _list_similar(text: str, inner: str, literals: FileLiterals, random: Random) -> list[str]:
    """Return other strings of the file with the same quotes and shape; any of them for an empty string.

    At each of their words all of them differ.
    """
    shape = _describe_text(text)
    same = [
        other
        for other in literals.strings
        if other != text
        and other[:1] == text[:1]
        and "\n" not in other
        and (not inner or _describe_text(other) == shape)
    ]
    random.shuffle(same)
    chosen: list[str] = []
    for other in sorted(same, key=lambda other: abs(len(other) - len(text))):
        words = _TOKEN.findall(other)
        if all(a != b for known in (text, *chosen) for a, b in zip(words, _TOKEN.findall(known), strict=False)):
            chosen.append(other)
    return chosen[:MAX_POOL]


def _describe_text(text: str) -> str:
    """Return a text with `A`, `a` and `0` for its words and numbers."""
    return _TOKEN.sub(lambda match: "0" if match[0].isdigit() else _describe_word(match[0]), text)


def _describe_word(word: str) -> str:
    """Return the case of a word, with the script of its first letter if that is not ASCII."""
    script = "" if word[0].isascii() else str(ord(word[0]) // _SCRIPT_LENGTH)
    if word.isupper():
        return "A" + script
    return ("Aa" if word[0].isupper() else "a") + script


def _write_spare_words(word: str) -> list[str]:
    """Return common words of about the length of a word, in its case; none for other scripts and mixed cases."""
    lengths = range(len(word) - _get_tolerance(word), len(word) + _get_tolerance(word) + 1)
    write = next((write for write in (str.lower, str.title, str.upper) if write(word) == word), None)
    if write is None or not word.isascii():
        return []
    return [write(other) for other in SPARE_WORDS if len(other) in lengths and write(other) != word]


def _get_tolerance(word: str) -> int:
    """Return by how much words that may stand for another differ from it in length."""
    return min(max(1, len(word) // 3), max(0, len(word) - _LEAST_WORD))


class _TextWords:
    """The words and numbers of a string, without its escapes, formats and variables."""

    def __init__(self, inner: str, pool: _TextPool, random: Random) -> None:
        self.inner = inner
        self.pool = pool
        self.random = random
        fixed = {place for match in _FIXED.finditer(inner) for place in range(*match.span())}
        self.places = [place for place, sign in enumerate(inner) if sign.isalnum() and place not in fixed]
        self.words = [match for match in _TOKEN.finditer(inner) if fixed.isdisjoint(range(*match.span()))]

    def list_alternatives(self) -> list[Alternatives]:
        """Return other texts for some words, for the order of all, and for a letter where there is nothing else."""
        if code := _CODE.fullmatch(self.inner):
            codes = (self._draw_code(code["body"]) for _ in range(_ATTEMPTS * MAX_POOL))
            return _list_alternatives(*code.span("body"), _collect(codes, code["body"]))
        chosen = self.random.sample(self.words, min(_MAX_WORDS, len(self.words)))
        parts = [Alternatives(*word.span(), tuple(texts)) for word in chosen if (texts := self._list_words(word[0]))]
        if len({word[0] for word in self.words}) >= _MIN_ORDERED:
            parts += _list_alternatives(0, len(self.inner), _collect(_stop_at_repeats(self._exchange()), self.inner))
        if self.places and not any(len(part.texts) >= _FEW for part in parts):
            place = self.random.choice(self.places)
            parts.append(Alternatives(place, place + 1, tuple(self._list_letters(self.inner[place]))))
        return [part for part in parts if part.texts]

    def _list_words(self, word: str) -> list[str]:
        """Return words of the tree, the file and the test in turn that may stand for a word; numbers for a number."""
        if word.isdigit():
            return _collect(_draw_like_number(word, self.random), word)
        if len(word) < _LEAST_WORD and word.isascii():
            letters = [other for other in string.ascii_letters if other != word and other.isupper() == word.isupper()]
            return self.random.sample(letters, len(letters))
        shape, tolerance = _describe_word(word), _get_tolerance(word)
        near = [
            other
            for other in self.pool.file.words
            if other != word and _describe_word(other) == shape and abs(len(other) - len(word)) <= tolerance
        ]
        test = [other for other in near if other in self.pool.test.word_set]
        file = [other for other in near if other not in self.pool.test.word_set]
        tree = [other for other in self.pool.tree.list_similar(word) if other not in self.pool.file.word_set]
        test, file = (self.random.sample(words, len(words)) for words in (test, file))
        spare = [other for other in _write_spare_words(word) if other not in self.pool.tree.counts]
        spare = [other for other in self.random.sample(spare, len(spare)) if other not in self.pool.file.word_set]
        # Where all others stand in the file, the true word is the one that stands there once, and where all stand in
        # the tree, it may be the one that stands nowhere.
        mixed = (other for words in zip_longest(tree, file, test, spare) for other in words if other is not None)
        return list(islice(mixed, MAX_POOL))

    def _draw_code(self, code: str) -> str:
        """Return other letters and digits, each of the kind of the one in its place."""
        letters = "abcdef" if set(code.lower()) <= set(string.hexdigits) else string.ascii_lowercase

        def draw(sign: str) -> str:
            if sign.isdigit():
                return self.random.choice(string.digits)
            other = self.random.choice(letters)
            return other.upper() if sign.isupper() else other

        return "".join(map(draw, code))

    def _exchange(self) -> Iterator[str]:
        """Yield the text with its words in drawn orders, where a number stands in the place of another alone."""
        original = [word[0] for word in self.words]
        places: dict[str, list[int]] = {}
        for place, word in enumerate(original):
            places.setdefault(_describe_text(word), []).append(place)
        gaps = [self.inner[last.end() : word.start()] for last, word in pairwise(self.words)]
        head, tail = self.inner[: self.words[0].start()], self.inner[self.words[-1].end() :]
        for _ in range(_ATTEMPTS * MAX_POOL):
            words = list(original)
            for group in places.values():
                drawn = self.random.sample([original[place] for place in group], len(group))
                for place, other in zip(group, drawn, strict=True):
                    words[place] = other
            yield head + "".join(f"{gap}{word}" for gap, word in zip(["", *gaps], words, strict=True)) + tail

    def _list_letters(self, letter: str) -> list[str]:
        """Return letters of the same script and case; digits for a digit."""
        if letter.isdigit():
            letters = list(string.digits)
        elif letter.isascii():
            letters = list(_FREQUENT_LETTERS.upper() if letter.isupper() else _FREQUENT_LETTERS)
        else:
            block = ord(letter) // _SCRIPT_LENGTH
            letters = [
                other
                for other in self.pool.file.letters
                if ord(other) // _SCRIPT_LENGTH == block and other.isupper() == letter.isupper()
            ]
        others = [other for other in letters if other != letter]
        self.random.shuffle(others)
        return others
