"""Fallbacks of Python drafts, in the order in which repair tries them if nothing else is known to help."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from languages.base import Fallback
from languages.draft import PlanDraft, Role
from languages.python.switches import INSTALL_DEPENDENCIES, INSTALL_PROJECT


def use_exact_date(draft: PlanDraft) -> PlanDraft:
    """Allow packages up to the change's own date: a pinned version may have been uploaded during its month."""
    return replace(draft, exclude_newer=midnight_after(draft.day))


def drop_optional(draft: PlanDraft) -> PlanDraft:
    """Install only what the project declares or its CI installs; installing the tree may add further packages."""
    required = tuple(
        d for d in draft.dependencies if d.role is not Role.OPTIONAL or d.source.distribution_name.startswith("pytest")
    )
    switches = draft.switches | ({INSTALL_DEPENDENCIES} if INSTALL_PROJECT in draft.switches else set())
    return replace(draft, dependencies=required, switches=switches)


def select_next_python(draft: PlanDraft) -> PlanDraft:
    """Select the next Python version of the evidence: older packages may have no wheels for the newest."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


FALLBACKS: tuple[Fallback, ...] = (use_exact_date, drop_optional, select_next_python)


def midnight_after(day: date) -> date:
    """Return the first midnight after the day."""
    return day + timedelta(days=1)
