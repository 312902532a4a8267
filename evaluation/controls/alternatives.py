"""Other values for a literal or container of a test: of the same type and shape, as plausible as the value itself.

A submission that reads the instances of a test must not see which value is true. So other values come from the test's
own file first, where the true value stands there more than once as well; otherwise they are made as the true value is:
with as many digits, as round, of words of the file, of the same members in another order.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from random import Random

from tree_sitter import Node

_FREQUENT_LETTERS = "aeinorstbcdglmpu"
_SCRIPT_LENGTH = 128
"""Code points of a block of Unicode, as most scripts have them."""
MAX_ALTERNATIVES = 40
"""Other values of a site: enough for the most instances that a test ever has."""
_ATTEMPTS = 6
"""Draws for each value that is looked for; most draws of short values repeat an earlier one."""
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
    def letters(self) -> Sequence[str]:
        """Letters in strings that are not ASCII, sorted."""
        return sorted({letter for text in self.strings for letter in text if letter.isalpha() and not letter.isascii()})


def draw_alternatives(node: Node, literals: FileLiterals, random: Random) -> list[str]:
    """Return other texts for a literal, the most plausible first; none where there is no other of its shape.

    Args:
        node: a literal.
        literals: those of its file.
        random: random that chooses among equally good texts.
    """
    text = _read(node)
    if text in _BOOLEANS:
        return [_BOOLEANS[text]]
    if is_number(node):
        return _draw_numbers(text, literals.numbers, random)
    return _draw_strings(text, literals, random)


def draw_orders(container: Node, source: bytes, random: Random) -> list[str]:
    """Return the text of a container with two members exchanged, for pairs of members that are literals.

    Args:
        container: a node of which `is_container` holds.
        source: the file.
        random: random that chooses among pairs.
    """
    members = [member for member in container.named_children if is_literal(member)]
    pairs = [(first, second) for first, second in combinations(members, 2) if _read(first) != _read(second)]
    random.shuffle(pairs)
    start = container.start_byte
    texts = []
    for first, second in pairs[:MAX_ALTERNATIVES]:
        parts = (
            source[start : first.start_byte],
            source[second.start_byte : second.end_byte],
            source[first.end_byte : second.start_byte],
            source[first.start_byte : first.end_byte],
            source[second.end_byte : container.end_byte],
        )
        texts.append(b"".join(parts).decode(errors="replace"))
    return texts


def _collect(draws: Iterator[str], without: str) -> list[str]:
    """Return different texts of an iterator that may repeat them, at most `MAX_ALTERNATIVES`."""
    texts: dict[str, None] = {}
    for text in draws:
        if text != without:
            texts[text] = None
        if len(texts) == MAX_ALTERNATIVES:
            break
    return list(texts)


# --------------------------------------------------------------------------------------------------------- numbers


def _draw_numbers(text: str, numbers: Mapping[str, int], random: Random) -> list[str]:
    """Return numbers with as many digits, as many zeros at their end, and the same prefix and suffix."""
    shape = _describe_number(text)
    same = [number for number in numbers if number != text and _describe_number(number) == shape]
    random.shuffle(same)
    drawn = (_draw_number(text, random) for _ in range(_ATTEMPTS * MAX_ALTERNATIVES))
    is_repeated = numbers.get(text, 0) > 1
    parts = (iter(same), drawn) if is_repeated else (drawn, iter(same))
    return _collect((number for part in parts for number in part), text)


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
    drawn = [random.choice(alphabet) if digit.isalnum() else digit for digit in body]
    # A number begins with a zero only where it is a digit or a fraction; and a last zero would make it rounder.
    if len(digits) > 1:
        drawn[0] = "0" if body[0] == "0" else random.choice(alphabet[1:])
        if drawn[-1] == "0" and body[-1] != "0":
            drawn[-1] = random.choice(alphabet[1:])
    return prefix + "".join(drawn) + zeros + suffix


# --------------------------------------------------------------------------------------------------------- strings


def _draw_strings(text: str, literals: FileLiterals, random: Random) -> list[str]:
    """Return strings of the file of the same shape, and strings that are made of other words, digits or letters."""
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    end = len(text) - (len(opening["quote"]) if opening else 0)
    inner = text[start:end]
    similar = _list_similar(text, inner, literals, random)
    draw = _TextDrawer(inner, literals, random).draw
    drawn = (text[:start] + draw() + text[end:] for _ in range(_ATTEMPTS * MAX_ALTERNATIVES if inner else 0))
    is_repeated = literals.strings.get(text, 0) > 1
    parts = (iter(similar), drawn) if is_repeated else (drawn, iter(similar))
    return _collect((other for part in parts for other in part), text)


def _list_similar(text: str, inner: str, literals: FileLiterals, random: Random) -> list[str]:
    """Return other strings of the file with the same quotes and shape; any of them for an empty string."""
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
    return sorted(same, key=lambda other: abs(len(other) - len(text)))


def _describe_text(text: str) -> str:
    """Return a text with `A`, `a` and `0` for its words and numbers."""
    return _TOKEN.sub(lambda match: "0" if match[0].isdigit() else _describe_word(match[0]), text)


def _describe_word(word: str) -> str:
    if word.isupper():
        return "A"
    return "Aa" if word[0].isupper() else "a"


class _TextDrawer:
    """Draws texts that are made as a text is."""

    def __init__(self, inner: str, literals: FileLiterals, random: Random) -> None:
        self.inner = inner
        self.words = literals.words
        self.letters = literals.letters
        self.random = random
        fixed = {place for match in _FIXED.finditer(inner) for place in range(*match.span())}
        self.places = [place for place, sign in enumerate(inner) if sign.isalnum() and place not in fixed]
        self.tokens = [match for match in _TOKEN.finditer(inner) if fixed.isdisjoint(range(*match.span()))]
        pairs = combinations(self.tokens, 2)
        self.pairs = [
            (first, second)
            for first, second in pairs
            if first[0] != second[0] and first[0].isdigit() == second[0].isdigit()
        ]
        self.changes = self._list_changes()

    def _list_changes(self) -> list[Callable[[], str]]:
        changes: list[Callable[[], str]] = []
        if self.pairs:
            changes.append(self._exchange)
        if any(token[0].isdigit() for token in self.tokens):
            changes.append(self._change_digits)
        if any(self._list_words(token[0]) for token in self.tokens):
            changes += [self._change_word] * 2
        if not changes or len(self.inner) < len("abcd"):
            changes.append(self._change_letter)
        return changes

    def draw(self) -> str:
        """Return another text, or the text itself where a change has no effect."""
        return self.random.choice(self.changes)()

    def _replace(self, token: re.Match[str], text: str) -> str:
        return self.inner[: token.start()] + text + self.inner[token.end() :]

    def _exchange(self) -> str:
        first, second = self.random.choice(self.pairs)
        between = self.inner[first.end() : second.start()]
        return self.inner[: first.start()] + second[0] + between + first[0] + self.inner[second.end() :]

    def _change_digits(self) -> str:
        token = self.random.choice([token for token in self.tokens if token[0].isdigit()])
        return self._replace(token, _draw_number(token[0], self.random))

    def _change_word(self) -> str:
        token = self.random.choice([token for token in self.tokens if self._list_words(token[0])])
        return self._replace(token, self.random.choice(self._list_words(token[0])))

    def _list_words(self, word: str) -> list[str]:
        """Return words of the file that may stand for a word."""
        if word.isdigit():
            return []
        shape, length = _describe_word(word), len(word)
        return [
            other
            for other in self.words
            if other != word and _describe_word(other) == shape and abs(len(other) - length) <= max(2, length // 2)
        ]

    def _change_letter(self) -> str:
        """Return the text with one letter or digit changed, or two neighbours exchanged."""
        inner = self.inner
        if not self.places:
            return inner
        place = self.random.choice(self.places)
        if place + 1 in self.places and self.random.random() < 0.5:
            return inner[:place] + inner[place + 1] + inner[place] + inner[place + 2 :]
        return inner[:place] + self._draw_letter(inner[place]) + inner[place + 1 :]

    def _draw_letter(self, letter: str) -> str:
        """Return a letter of the same script and case that the file has; any digit for a digit."""
        if letter.isascii():
            drawn = self.random.choice(string.digits if letter.isdigit() else _FREQUENT_LETTERS)
            return drawn.upper() if letter.isupper() else drawn
        same = [
            other
            for other in self.letters
            if ord(other) // _SCRIPT_LENGTH == ord(letter) // _SCRIPT_LENGTH and other.isupper() == letter.isupper()
        ]
        return self.random.choice(same or [letter])
