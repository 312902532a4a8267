"""Which of a draft's choices are given up, in which order, when nothing else is known to mend its build or tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from languages.base import Fallback
from languages.draft import Draft, Role
from languages.python.switches import INSTALL_DEPENDENCIES, PACKAGED


def exact_date(draft: Draft) -> Draft:
    """Packages up to the change's own day: a pin may have been uploaded later in its month than the first."""
    return replace(draft, exclude_newer=after_tomorrow(draft.day))


def without_optional(draft: Draft) -> Draft:
    """Only what the project declares or its CI installs; the install of the tree may bring what only it knows."""
    kept = tuple(d for d in draft.dependencies if d.role is not Role.OPTIONAL or d.wanted.name.startswith("pytest"))
    switches = draft.switches | ({INSTALL_DEPENDENCIES} if PACKAGED in draft.switches else set())
    return replace(draft, dependencies=kept, switches=switches)


def next_python(draft: Draft) -> Draft:
    """The next Python of the evidence: packages of that date may have no wheels for the newest."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


FALLBACKS: tuple[Fallback, ...] = (exact_date, without_optional, next_python)


def after_tomorrow(day: date) -> date:
    """The first midnight after the day."""
    return day + timedelta(days=1)
