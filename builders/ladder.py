"""The order of what is tried: of the versions of a language, those whose bases stay as they are first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from languages.draft import Draft


def settled_first(draft: Draft, moving: Collection[str]) -> Draft:
    """Of the versions that the evidence lists, those whose base stays as it is before the `moving` ones."""
    ordered = sorted(draft.versions, key=lambda one: (one.path == "(date)", one.value in moving))
    return replace(draft, versions=tuple(ordered))
