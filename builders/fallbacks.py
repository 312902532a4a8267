"""The ladder's next rungs: when a plan cannot be built or its tests do not run, which choice is given up next.

Each fallback is a pure edit of a draft. Attempt 1 is the draft as it is; attempt n + 1 is the next fallback that
changes anything, applied to the result of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from builders.detectors.dependencies import Role
from builders.plan import Draft, after_tomorrow

Fallback = Callable[[Draft], Draft]


def settled_first(draft: Draft, moving: Collection[str]) -> Draft:
    """Of the versions that the evidence lists, those whose base stays as it is before the `moving` ones."""
    ordered = sorted(draft.pythons, key=lambda one: (one.path == "(date)", one.value in moving))
    return replace(draft, pythons=tuple(ordered))


def exact_date(draft: Draft) -> Draft:
    """Packages up to the change's own day: a pin may have been uploaded later in its month than the first."""
    return replace(draft, exclude_newer=after_tomorrow(draft.day))


def without_optional(draft: Draft) -> Draft:
    """Only what the project declares or its CI installs; the install of the tree may bring what only it knows."""
    kept = tuple(d for d in draft.dependencies if d.role is not Role.OPTIONAL or d.wanted.name.startswith("pytest"))
    return replace(draft, dependencies=kept, install_dependencies=draft.packaged)


def next_python(draft: Draft) -> Draft:
    """The next Python of the evidence: packages of that date may have no wheels for the newest."""
    return replace(draft, pythons=draft.pythons[1:] or draft.pythons)


FALLBACKS: tuple[Fallback, ...] = (exact_date, without_optional, next_python)


def ladder(draft: Draft) -> Iterator[Draft]:
    """The draft and what the fallbacks make of it, each different from the one before."""
    yield draft
    for fallback in FALLBACKS:
        changed = fallback(draft)
        if changed != draft:
            draft = changed
            yield draft
