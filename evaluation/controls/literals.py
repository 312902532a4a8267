"""Other literals of the same type and shape, such as `17` for `12`, or another word of the file in a string."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tree_sitter import Node

_NUMBER = re.compile(r"(number|integer|float|real|hex|octal|binary_literal|int_literal)")
_STRING = re.compile(r"^(string|string_literal|interpreted_string_literal|raw_string_literal|encapsed_string)$")
_OTHER_STRING = re.compile(r"^(interpolated_string_literal|template_string|line_string_literal)$")
_CHARACTER = re.compile(r"^(char_literal|character_literal|rune_literal)$")
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
_WORD = re.compile(r"[A-Za-z]{2,}")


def is_literal(node: Node) -> bool:
    """Return whether a node is a literal that `draw_other_texts` can change."""
    kind = node.type
    if _STRING.match(kind) or _OTHER_STRING.match(kind):
        return all(child.type in _CONTENTS for child in node.named_children)
    if _CHARACTER.match(kind):
        return True
    text = (node.text or b"").decode(errors="replace")
    return not node.named_children and (text in _BOOLEANS or (bool(_NUMBER.search(kind)) and text[:1].isdigit()))


def _list_strings(node: Node) -> list[str]:
    strings, todo = [], [node]
    while todo:
        node = todo.pop()
        if (_STRING.match(node.type) or _OTHER_STRING.match(node.type)) and is_literal(node):
            strings.append((node.text or b"").decode(errors="replace"))
        else:
            todo += node.named_children
    return sorted(set(strings))


@dataclass(frozen=True)
class FileStrings:
    """String literals of a file, quotes included, and the words in them, both sorted."""

    texts: Sequence[str]
    words: Sequence[str]

    @classmethod
    def read(cls, root: Node) -> FileStrings:
        """Return the strings below a node."""
        texts = _list_strings(root)
        return cls(texts, sorted({word for text in texts if "\\" not in text for word in _WORD.findall(text)}))


def draw_other_texts(node: Node, strings: FileStrings, random: Random) -> list[str]:
    """Return other texts for a literal, the most plausible first; none where there is no other of its shape.

    Args:
        node: a literal.
        strings: those of its file.
        random: random that chooses among equally good texts.
    """
    text = (node.text or b"").decode(errors="replace")
    if text in _BOOLEANS:
        return [_BOOLEANS[text]]
    if _NUMBER.search(node.type):
        return _change_number(text, random)
    return _change_string(text, strings, random)


def _change_number(text: str, random: Random) -> list[str]:
    """Return the number with one digit changed; its first digits first, as comparisons may tolerate the last ones."""
    prefix = re.match(r"0[xXbBoO]", text)
    digits = "01" if prefix and prefix[0][1] in "bB" else "1234567"
    start = prefix.end() if prefix else 0
    mantissa = re.match(r"[0-9a-fA-F_]+" if prefix else r"[0-9_]+(\.[0-9_]+)?", text[start:])
    end = start + mantissa.end() if mantissa else start
    positions = [position for position in range(start, end) if text[position].isalnum()]
    changed = []
    for position in positions[:3]:
        others = [digit for digit in digits if digit != text[position]]
        changed.append(text[:position] + random.choice(others) + text[position + 1 :])
    return changed


def _change_string(text: str, strings: FileStrings, random: Random) -> list[str]:
    """Return strings in which a number, a word or a letter differs, then other strings of the file of that shape."""
    opening = _OPENING.match(text)
    start = opening.end() if opening else 0
    end = len(text) - (len(opening["quote"]) if opening else 0)
    inner = text[start:end]
    if not inner:
        return _list_similar(text, strings.texts, random)
    variants = [inner[: m.start()] + _other_digits(m[0], random) + inner[m.end() :] for m in _find_numbers(inner)]
    for match in random.sample(plain := _find_words(inner), min(3, len(plain))):
        same = [word for word in strings.words if word != match[0] and _shape(word) == _shape(match[0])]
        if same:
            variants.append(inner[: match.start()] + random.choice(same) + inner[match.end() :])
    variants += [_change_letter(inner, match, random) for match in plain[:2]]
    letters = [at for at, letter in enumerate(inner) if letter.isalnum() and inner[at - 1 : at] not in ("\\", "%")]
    if letters and not variants:
        place = random.choice(letters)
        variants = [inner[:place] + ("b" if inner[place] == "a" else "a") + inner[place + 1 :]]
    changed = [text[:start] + other + text[end:] for other in variants if other != inner]
    return [*changed, *_list_similar(text, strings.texts, random)]


def _find_numbers(inner: str) -> list[re.Match[str]]:
    return [m for m in re.finditer(r"\d+", inner) if inner[m.start() - 1 : m.start()] not in ("\\", "%", "{", "$")]


def _find_words(inner: str) -> list[re.Match[str]]:
    """Return the words of a string that are not an escape, format or variable."""
    return [m for m in _WORD.finditer(inner) if inner[m.start() - 1 : m.start()] not in ("\\", "%", "{", "$", "@")]


def _other_digits(digits: str, random: Random) -> str:
    return random.choice([d for d in "123456789" if d != digits[0]]) + digits[1:]


def _change_letter(inner: str, match: re.Match[str], random: Random) -> str:
    place = random.randrange(match.start(), match.end())
    letters = "aeinorst".upper() if inner[place].isupper() else "aeinorst"
    return inner[:place] + random.choice([c for c in letters if c != inner[place]]) + inner[place + 1 :]


def _shape(word: str) -> str:
    if word.isupper():
        return "upper"
    return "title" if word[0].isupper() else "lower"


def _list_similar(text: str, strings: Sequence[str], random: Random) -> list[str]:
    """Return other strings of the file with the same quotes, those of a similar length first."""
    same = [other for other in strings if other != text and other[:1] == text[:1] and "\n" not in other]
    random.shuffle(same)
    return sorted(same, key=lambda other: abs(len(other) - len(text)))[:2]
