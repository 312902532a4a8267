"""Quotas of a repository, over all runs: how many changes may be begun, and how many tasks certified.

A change that a quota leaves out has no record of it: it stays pending, and a run with a larger quota takes it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from core.settings.mining import QuotaSettings
from core.text import format_count
from taskdb.queries.quotas import count_by_repository
from taskdb.records.lineage import Lineage
from taskdb.store import Store

NAMED = 3
"""Repositories that the message of a run names."""


@dataclass
class RepositoryQuotas:
    """Quotas with the numbers they limit, which a run keeps up to date. None: no quota."""

    max_changes: int | None = None
    max_tasks: int | None = None
    begun: Counter[str] = field(default_factory=Counter)
    """Repository -> changes with a result after the miner, and those that this run began."""
    certified: Counter[str] = field(default_factory=Counter)
    """Repository -> certified tasks."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Candidates (ids) that this run left out -> repository."""

    def find_reached(self, repo: str, *, is_begun: bool) -> str | None:
        """Return the option of the quota by which a change of a repository waits, or None.

        `is_begun`: whether it has a result after the miner; `--quota-changes` holds back others only.
        """
        if self.max_tasks is not None and self.certified[repo] >= self.max_tasks:
            return f"--quota-tasks {self.max_tasks}"
        if self.max_changes is not None and not is_begun and self.begun[repo] >= self.max_changes:
            return f"--quota-changes {self.max_changes}"
        return None

    def admit(self, lineage: Lineage) -> bool:
        """Return whether a change may be begun or continued now, and count it."""
        repo, is_begun = lineage.candidate.repo, has_begun(lineage)
        if self.find_reached(repo, is_begun=is_begun):
            self.left_out[lineage.candidate.id] = repo
            return False
        self.begun[repo] += not is_begun
        return True

    def format_left_out(self) -> str:
        """Return which changes this run left out, in a single line; empty for none."""
        if not self.left_out:
            return ""
        by_repo = Counter(self.left_out.values())
        most = ", ".join(f"{repo} {n}" for repo, n in by_repo.most_common(NAMED))
        more = ", ..." if len(by_repo) > NAMED else ""
        repositories = format_count(len(by_repo), "repository", "repositories")
        return (
            f"waiting because of quotas: {format_count(len(self.left_out), 'change')} of {repositories} ({most}{more})"
        )


def has_begun(lineage: Lineage) -> bool:
    """Return whether a change has a result after the miner."""
    return bool(lineage.environment or lineage.verification or lineage.tasks or lineage.rejected_by)


def load_quotas(store: Store, quota: QuotaSettings) -> RepositoryQuotas:
    """Return the quotas of the settings with the numbers of the database, which are read only where there is one."""
    quotas = RepositoryQuotas(max_changes=quota.changes, max_tasks=quota.tasks)
    if quota.changes is not None or quota.tasks is not None:
        numbers = count_by_repository(store)
        quotas.begun, quotas.certified = numbers.begun, numbers.certified
    return quotas


def list_waiting(store: Store, quota: QuotaSettings) -> list[dict[str, Any]]:
    """Return for each repository whose quota is reached: repo, quota (its option), waiting (changes), most first."""
    if quota.changes is None and quota.tasks is None:
        return []
    quotas, numbers = load_quotas(store, quota), count_by_repository(store)
    waiting = []
    for repo, n_open in numbers.open.items():
        if option := quotas.find_reached(repo, is_begun=True):
            waiting.append({"repo": repo, "quota": option, "waiting": n_open})
        elif (option := quotas.find_reached(repo, is_begun=False)) and numbers.unbegun[repo]:
            waiting.append({"repo": repo, "quota": option, "waiting": numbers.unbegun[repo]})
    return sorted(waiting, key=lambda row: (-row["waiting"], row["repo"]))
