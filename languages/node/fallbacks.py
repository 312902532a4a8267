"""Which of a draft's choices are given up, in which order, when nothing else is known to mend its build or tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from languages.base import Fallback
from languages.draft import Draft
from languages.node.switches import BUILD, FORGIVING, IGNORE_SCRIPTS

LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml")


def exact_date(draft: Draft) -> Draft:
    """Without a lock file: packages up to the change's own day."""
    if any(path.rpartition("/")[2] in LOCKS for path, _ in draft.manifests):
        return draft
    return replace(draft, exclude_newer=draft.day + timedelta(days=1))


def forgiving(draft: Draft) -> Draft:
    """Peer dependencies need not fit, and the lock file may be older than package.json."""
    return replace(draft, switches=draft.switches | {FORGIVING})


def without_scripts(draft: Draft) -> Draft:
    """No install scripts of packages."""
    return replace(draft, switches=draft.switches | {IGNORE_SCRIPTS})


def without_build(draft: Draft) -> Draft:
    """Tests that need nothing built run all the same."""
    return replace(draft, switches=draft.switches - {BUILD})


def next_node(draft: Draft) -> Draft:
    """The next Node of the evidence."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


FALLBACKS: tuple[Fallback, ...] = (exact_date, forgiving, without_scripts, next_node, without_build)
