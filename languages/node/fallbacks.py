"""Fallbacks of Node drafts, in the order in which repair tries them if nothing else is known to help."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from languages.base import Fallback
from languages.draft import PlanDraft
from languages.node.plan import drop_build, select_changed_packages
from languages.node.switches import IGNORE_SCRIPTS, RELAXED_PEERS

LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")


def use_exact_date(draft: PlanDraft) -> PlanDraft:
    """Allow packages up to the change's own date if there is no lock file."""
    if any(path.rpartition("/")[2] in LOCKS for path, _ in draft.manifests):
        return draft
    return replace(draft, exclude_newer=draft.day + timedelta(days=1))


def relax_peer_dependencies(draft: PlanDraft) -> PlanDraft:
    """Accept unmet peer dependencies and a lock file older than package.json."""
    return replace(draft, switches=draft.switches | {RELAXED_PEERS})


def drop_install_scripts(draft: PlanDraft) -> PlanDraft:
    """Run no install scripts of packages."""
    return replace(draft, switches=draft.switches | {IGNORE_SCRIPTS})


def select_next_node(draft: PlanDraft) -> PlanDraft:
    """Select the next Node version of the evidence."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


FALLBACKS: tuple[Fallback, ...] = (
    select_changed_packages,
    use_exact_date,
    relax_peer_dependencies,
    drop_install_scripts,
    select_next_node,
    drop_build,
)
