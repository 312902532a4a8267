"""Prose of a statement, without code, templates and links: its length and its language."""

from __future__ import annotations

import re

CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^(?: {4}|\t)[^\n]*$|^>>> [^\n]*$", re.DOTALL | re.MULTILINE)
"""Fenced and indented blocks, and lines of a Python prompt."""
_NON_PROSE = re.compile(
    r"<!--.*?(?:-->|\Z)|!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>|^\s*[-*+] \[[ xX]\].*?$|^\s*#{1,6}\s.*?$|"
    r"^\s*\*\*[^*\n]+\*\*:?\s*$|https?://\S+|</?[a-zA-Z][^>]*>|\b(?:fix|close|resolve)(?:s|d|es|ed)?:?\s+\S*#\d+",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,}")
_SCRIPTS = (
    ("Chinese or Japanese", re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]+")),
    ("Korean", re.compile(r"[\uac00-\ud7af]+")),
    ("a language in Cyrillic letters", re.compile(r"[\u0400-\u04ff]+")),
    ("a language in Arabic letters", re.compile(r"[\u0600-\u06ff]+")),
)
FOREIGN_SHARE = 0.3
"""Minimum share of words in a script or language other than English."""
_LATIN: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "Spanish": "el la los las una que por para con cuando pero está como del error se al",
        "Portuguese": "os uma que para com quando não mas está como do da ao em são",
        "French": "le la les une que pour avec quand mais est dans des du ne pas sur",
        "German": "der die das ein eine und ist nicht wenn mit für auf werden wird bei",
        "Italian": "il lo gli una che per con quando ma non di del della sono nel",
    }.items()
}
"""Common short words of languages in Latin script."""
_ENGLISH = frozenset(
    ("the", "is", "to", "and", "of", "it", "in", "that", "this", "not", "for", "when", "with", "be", "as", "are", "on")
)
_MIN_WORDS = 12
"""Minimum number of words for language detection."""


def extract_prose(statement: str) -> str:
    """Return the statement without code blocks, templates, links and pictures."""
    return _NON_PROSE.sub(" ", CODE.sub(" ", statement))


def count_words(statement: str) -> int:
    """Return the number of words written for this change, including those in code."""
    return len(_WORD.findall(_NON_PROSE.sub(" ", statement)))


def compute_code_share(statement: str) -> float:
    """Return the share of the statement's characters in code blocks, 0..1."""
    return 1 - len(CODE.sub("", statement)) / len(statement) if statement else 0.0


def detect_foreign_language(prose: str) -> tuple[str, str] | None:
    """Return (sample, language) for a text that is not in English, otherwise None."""
    words = _WORD.findall(prose)
    for language, script in _SCRIPTS:
        share = sum(bool(script.search(word)) for word in words) / max(1, len(words))
        if share >= FOREIGN_SHARE and (matches := script.findall(prose)):
            return str(max(matches, key=len)), language
    small = [word.lower() for word in words]
    if len(small) < _MIN_WORDS:
        return None
    english = sum(word in _ENGLISH for word in small)
    language, found_words = max(
        ((name, [word for word in small if word in known]) for name, known in _LATIN.items()),
        key=lambda item: len(item[1]),
    )
    if len(found_words) < FOREIGN_SHARE / 2 * len(small) or len(found_words) <= 2 * english:
        return None
    line = max(prose.splitlines(), key=lambda text: sum(word in text.lower().split() for word in found_words))
    return line.strip(), language
