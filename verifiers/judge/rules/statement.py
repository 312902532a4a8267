"""Statements without content, or with content that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from taskdb.records.verdicts import Finding, QuoteSource
from verifiers.judge.case import JudgeCase
from verifiers.judge.prose import count_words, detect_foreign_language, extract_prose

MIN_WORDS = 3
"""Minimum number of words of a statement with content."""
BRIEF_WORDS = 25
"""Number of words below which a statement must describe a behaviour."""
_IMAGE = re.compile(
    r"!\[[^\]]*\]\([^)]*\)|<img\b[^>]*>|https?://\S+\.(?:png|jpe?g|gif|webp|svg)\b|"
    r"https?://(?:user-images\.githubusercontent\.com|github\.com/[^/\s]+/[^/\s]+/assets|"
    r"github\.com/user-attachments)/\S+",
    re.IGNORECASE,
)
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


def find_empty_statement(case: JudgeCase) -> Iterator[Finding]:
    """Find an empty statement, or a statement that consists only of a picture, a link or a template."""
    statement = case.statement.strip()
    if count_words(statement) >= MIN_WORDS or "```" in statement:
        return
    for rule, pattern, content in _INSUFFICIENT_CONTENT:
        if match := pattern.search(statement):
            detail = f"nothing but {content}: {count_words(statement)} words of content"
            yield Finding(rule=rule, quote=match[0].strip(), detail=detail, quote_source=QuoteSource.STATEMENT)
            return
    if not count_words(statement):
        detail = "no content"
        yield Finding(rule="statement-empty", quote=statement[:200], detail=detail, quote_source=QuoteSource.STATEMENT)


_INSUFFICIENT_CONTENT = (
    ("statement-image-only", _IMAGE, "a picture"),
    ("statement-template-only", _TEMPLATE, "a template's own words"),
    ("statement-link-only", _LINK, "a link"),
)


def find_essential_picture(case: JudgeCase) -> Iterator[Finding]:
    """Find a short statement whose content is in a picture, without code."""
    match = _IMAGE.search(case.statement)
    if match and "```" not in case.statement and MIN_WORDS <= count_words(case.statement) < BRIEF_WORDS:
        detail = "a picture, few words and no code"
        yield Finding(rule="statement-image", quote=match[0], detail=detail, quote_source=QuoteSource.STATEMENT)


def find_foreign_language(case: JudgeCase) -> Iterator[Finding]:
    """Find a statement that is not in English."""
    if language_sample := detect_foreign_language(extract_prose(case.statement)):
        sample, language = language_sample
        detail = f"the statement is not in English, but in {language}"
        yield Finding(rule="statement-language", quote=sample, detail=detail, quote_source=QuoteSource.STATEMENT)


def find_missing_behaviour(case: JudgeCase) -> Iterator[Finding]:
    """Find a short statement without code and without words for actual or expected behaviour."""
    statement = case.statement.strip()
    word_count = count_words(statement)
    if MIN_WORDS <= word_count < BRIEF_WORDS and not _CODE.search(statement) and not _BEHAVIOUR.search(statement):
        detail = f"{word_count} words, no code, and nothing on actual or expected behaviour"
        yield Finding(
            rule="statement-no-behaviour", quote=statement[:200], detail=detail, quote_source=QuoteSource.STATEMENT
        )
