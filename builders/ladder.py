"""The rungs of a draft: the draft itself, then what its language gives up, one choice after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from languages.draft import Draft
from languages.registry import language


def settled_first(draft: Draft, moving: Collection[str]) -> Draft:
    """Of the versions that the evidence lists, those whose base stays as it is before the `moving` ones."""
    ordered = sorted(draft.versions, key=lambda one: (one.path == "(date)", one.value in moving))
    return replace(draft, versions=tuple(ordered))


def ladder(draft: Draft) -> Iterator[Draft]:
    """The draft and what the fallbacks make of it, each different from the one before."""
    yield draft
    for fallback in language(draft.language).FALLBACKS:
        changed = fallback(draft)
        if changed != draft:
            draft = changed
            yield draft
