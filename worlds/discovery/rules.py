"""Rules of seed tasks, as of EnvScaler's code; RULES is the complete list. The first that fails rejects the task."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from worlds.discovery.seed_tasks import SeedTask
from worlds.language import find_language_problem
from worlds.reasons import Reason

_MEDIA = re.compile(r"\b(image|photo|picture|video|audio|sound|speech|clip)s?\b", re.IGNORECASE)
_CURRENCIES = re.compile(r"\b(USD|ETH|Bitcoin|Ethereum)\b")
_ADDRESSES = ("@", ".com", "http")
_TYPOGRAPHY = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
"""Signs that word processors put in place of ASCII signs."""
Rule = Callable[[str], str]


def find_foreign_text(text: str) -> str:
    """Return which characters are not ASCII, typographic quotes and dashes excepted, or that it is not English."""
    letters = sorted({letter for letter in text.translate(_TYPOGRAPHY) if not letter.isascii()})
    return f"not ASCII: {''.join(letters[:10])}" if letters else find_language_problem(text)


def find_media(text: str) -> str:
    """Return the word that shows that a text is about pictures, sound or video."""
    match = _MEDIA.search(text)
    return match[0] if match else ""


def find_role_text(text: str) -> str:
    """Return the mark of a role for a model, which is not a task."""
    return "Role definition:" if "role definition:" in text.lower() else ""


def find_currency(text: str) -> str:
    """Return the currency by which a task depends on prices of the day."""
    match = _CURRENCIES.search(text)
    return match[0] if match else ""


def find_address(text: str) -> str:
    """Return the mark of an address of the network."""
    return next((mark for mark in _ADDRESSES if mark in text), "")


RULES: Sequence[tuple[Reason, Rule]] = (
    (Reason.NOT_ENGLISH, find_foreign_text),
    (Reason.MEDIA, find_media),
    (Reason.ROLE_TEXT, find_role_text),
    (Reason.CURRENCY, find_currency),
    (Reason.ADDRESS, find_address),
)
"""Reason -> function that returns the reason against a text, empty where nothing does."""


def find_broken_rule(text: str) -> tuple[Reason, str] | None:
    """Return reason and detail of the first rule that rejects a text; None where none does."""
    return next(((reason, detail) for reason, rule in RULES if (detail := rule(text))), None)


def apply_rules(tasks: Sequence[SeedTask]) -> list[tuple[SeedTask, Reason | None, str]]:
    """Return each task with the reason and detail of the rule that rejects it; None where all are kept.

    A task whose words are those of an earlier task is a duplicate.
    """
    seen: set[str] = set()
    outcomes: list[tuple[SeedTask, Reason | None, str]] = []
    for task in tasks:
        words = " ".join(re.findall(r"\w+", task.text.lower()))
        broken = find_broken_rule(task.text)
        if broken is None and words in seen:
            broken = (Reason.DUPLICATE, "its words are those of an earlier task")
        seen.add(words)
        outcomes.append((task, *(broken or (None, ""))))
    return outcomes
