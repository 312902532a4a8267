"""Statements that say nothing, or say it where nobody can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskdb.verdicts import Finding, Place
from verifiers.judge.case import Case
from verifiers.judge.prose import foreign, prose_of, words_said

FEW = 3
"""Words that say nothing yet."""
BRIEF = 25
"""Words below which a statement must name a behaviour to say anything."""
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>|https?://\S+\.(?:png|jpe?g|gif|webp|svg)\b|"
                    r"https?://(?:user-images\.githubusercontent\.com|github\.com/[^/\s]+/[^/\s]+/assets|"
                    r"github\.com/user-attachments)/\S+", re.IGNORECASE)  # fmt: skip
_LINK = re.compile(r"https?://[^\s<>()]+")
_TEMPLATE = re.compile(
    r"<!--.*?(?:-->|\Z)|^\s*#{1,6}\s.*$|^\s*[-*+] \[[ xX]\].*$|^\s*\*\*[^*\n]+\*\*:?\s*$", re.DOTALL | re.MULTILINE
)
_CODE = re.compile(r"```|`[^`\n]+`|^(?: {4}|\t)\S|\w\(|\w+\.\w+|>>>|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*\b", re.MULTILINE)
_BEHAVIOUR = re.compile(
    r"\b(?:should|must|expect\w*|instead|when\w*|if|unless|return\w*|rais\w*|throw\w*|warn\w*|fail\w*|error\w*|crash\w*|"
    r"exception\w*|wrong\w*|incorrect\w*|broken|bugs?|allow\w*|support\w*|accept\w*|reject\w*|ignor\w*|show\w*|print\w*|"
    r"output\w*|add\w*|remov\w*|chang\w*|handl\w*|missing|lacks?|doesn'?t|does not|don'?t|can'?t|cannot|isn'?t|not|"
    r"no longer|never|always|fix\w*|now|give\w*|use\w*|make\w*|keep\w*|count\w*|empty|invalid|correct\w*)\b",
    re.IGNORECASE,
)


def says_nothing(case: Case) -> Iterator[Finding]:
    """Empty, or nothing but a picture, a link or a template; the first of these that holds."""
    statement = case.statement.strip()
    if words_said(statement) >= FEW or "```" in statement:
        return
    for rule, pattern, what in _ONLY:
        if found := pattern.search(statement):
            detail = f"nothing but {what}: {words_said(statement)} words say what it is about"
            yield Finding(rule=rule, quote=found[0].strip(), detail=detail, place=Place.STATEMENT)
            return
    if not words_said(statement):
        detail = "no word says what it is about"
        yield Finding(rule="statement-empty", quote=statement[:200], detail=detail, place=Place.STATEMENT)


_ONLY = (
    ("statement-image-only", _IMAGE, "a picture"),
    ("statement-template-only", _TEMPLATE, "a template's own words"),
    ("statement-link-only", _LINK, "a link"),
)


def rests_on_a_picture(case: Case) -> Iterator[Finding]:
    """What happens is to be seen in a picture, and no code stands beside it."""
    found = _IMAGE.search(case.statement)
    if found and "```" not in case.statement and FEW <= words_said(case.statement) < BRIEF:
        detail = "a picture, few words and no code"
        yield Finding(rule="statement-image", quote=found[0], detail=detail, place=Place.STATEMENT)


def in_another_language(case: Case) -> Iterator[Finding]:
    """Not in English."""
    if told := foreign(prose_of(case.statement)):
        sample, language = told
        detail = f"the statement is not in English, but in {language}"
        yield Finding(rule="statement-language", quote=sample, detail=detail, place=Place.STATEMENT)


def names_no_behaviour(case: Case) -> Iterator[Finding]:
    """A few words with neither code nor any word of what happens or should."""
    statement = case.statement.strip()
    said = words_said(statement)
    if FEW <= said < BRIEF and not _CODE.search(statement) and not _BEHAVIOUR.search(statement):
        detail = f"{said} words, no code, and nothing on what happens or should"
        yield Finding(rule="statement-no-behaviour", quote=statement[:200], detail=detail, place=Place.STATEMENT)
