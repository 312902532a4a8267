"""Tasks from environments: which environments give how many further tasks, and which gave fewer than wanted.

An environment is searched in rounds. A round hands out as many tasks as the limits allow, counting what others may
still give; where these gave fewer, the next round hands out the rest. It ends when no environment may give more.

Of the tasks that are handed out for an environment a call of the deriver gives a step of at most STEP_TASKS, which are
stored together. One that gave a whole step comes again in the next round, with the progress of its search; one that
gave fewer is remembered as searched for all that were handed out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from backends.services import Services
from core.text import format_count
from mergemill.execution.environment_families import compute_plan_family
from mergemill.pipeline.search_folder import SearchFolder
from taskdb.environments import EnvironmentState
from taskdb.records import Environment, Kind
from taskdb.records.lineage import Lineage
from taskdb.records.work import Scope
from taskdb.store import Store

STEP_TASKS = 10
"""Tasks of a call of the deriver at most. A kill costs the step that is running."""


@dataclass(frozen=True, kw_only=True)
class HandedOut:
    """State of an environment when it was handed out last, and how many tasks its step was to give."""

    state: EnvironmentState
    step: int

    def has_given_all(self, now: EnvironmentState) -> bool:
        """Return whether the environment has given its whole step, so that it may give more."""
        return now.n_tasks >= self.state.n_tasks + self.step


@dataclass(frozen=True, kw_only=True)
class EnvironmentTaskRequest:
    """Tasks that are wanted from environments. None: no limit."""

    per_environment: int
    """Tasks of each kind that an environment gives in all, those of earlier calls included."""
    per_repository: int | None = None
    """Tasks of each kind that a repository has in all."""
    per_family: int | None = None
    """Tasks of each kind that the environments of a repository with the same plan have in all."""
    total: int | None = None
    """Tasks that are derived by this call."""
    seed: int = 0
    """Seed of the order of environments."""

    def place(self, environment: str) -> str:
        """Return the place of an environment (id) in the order: pseudo-random, and the same whatever else there is."""
        return hashlib.sha256(f"{self.seed} {environment}".encode()).hexdigest()


@dataclass(kw_only=True)
class EnvironmentRounds:
    """Rounds over the environments of a scope, for one kind of tasks."""

    store: Store
    services: Services
    scope: Scope
    kind: Kind
    request: EnvironmentTaskRequest
    count_left: Callable[[], int | None]
    """Returns how many further tasks the call may derive; None for any number."""
    attempted: dict[int, HandedOut] = field(default_factory=dict)
    """Change (`seq`) -> its environment as it was handed out last."""
    n_repeated: int = 0
    """How often an environment was handed out again."""
    waiting: Counter[str] = field(default_factory=Counter)
    """Option -> environments that the last round left out because of it."""
    families: dict[str, str] = field(default_factory=dict)
    """Id of an environment -> its family."""

    def count(self) -> tuple[int, int]:
        """Return how many environments may give further tasks, and how many were searched for all of them before."""
        environments = self.store.find_environments(self.scope, self.kind)
        short = [state for state in environments if state.n_tasks < self.request.per_environment]
        n_open = sum(self._may_give(state, self.request.per_environment) for state in short)
        return n_open, len(short) - n_open

    def plan(self) -> Iterator[Lineage]:
        """Yield the environments of a round, each with the number of tasks that it is to give."""
        self.waiting = Counter()
        n_left, by_repo = self.count_left(), Counter(self.store.count_tasks_by_repository(self.kind))
        by_family = dict[str, Counter[str]]()
        environments = self.store.find_environments(self.scope, self.kind)
        for state in sorted(environments, key=lambda state: self.request.place(state.environment)):
            if not self._may_give(state, self.request.per_environment):
                continue
            wanted = self.request.per_environment - state.n_tasks
            if n_left is not None and n_left <= 0:
                return
            wanted = self._limit(wanted, self.request.per_repository, by_repo[state.repo], "--per-repository")
            lineage = self.store.load_environment(state.change, self.kind) if wanted else None
            if lineage is None:
                continue
            # Of those that another driver has given meanwhile, too.
            wanted = min(wanted, self.request.per_environment - len(lineage.existing))
            wanted = wanted if n_left is None else min(wanted, n_left)
            family = self._find_family(lineage.require_environment(), state.repo)
            if state.repo not in by_family:
                by_family[state.repo] = self._count_families(state.repo)
            wanted = self._limit(wanted, self.request.per_family, by_family[state.repo][family], "--per-family")
            if wanted <= 0 or not self._may_give(state, state.n_tasks + wanted):
                continue
            by_repo[state.repo] += wanted
            by_family[state.repo][family] += wanted
            n_left = None if n_left is None else n_left - wanted
            yield self._hand_out(state, lineage, wanted)

    def _hand_out(self, state: EnvironmentState, lineage: Lineage, wanted: int) -> Lineage:
        """Return an environment with the tasks that it is to give, those of its next step, and its progress."""
        step = min(wanted, STEP_TASKS)
        is_first = state.change not in self.attempted
        self.n_repeated += not is_first
        self.attempted[state.change] = HandedOut(state=state, step=step)
        progress = b""
        # A search that is retried starts from scratch, as its failures may be gone by now.
        if not (is_first and state.reason in self.scope.retry):
            folder = SearchFolder.below(self.services.settings.storage.store_dir)
            progress = folder.load(lineage.require_environment().id, self.kind, lineage.existing)
        return replace(lineage, wanted=wanted, step=step, progress=progress, tasks=())

    def _may_give(self, state: EnvironmentState, number: int) -> bool:
        """Return whether an environment that has given fewer tasks than a number is to be searched for the rest."""
        before = self.attempted.get(state.change)
        if state.n_tasks >= number or (before is not None and before.state == state):
            return False
        is_retried = state.reason in self.scope.retry and (before is None or before.has_given_all(state))
        return is_retried or state.n_searched < number

    def _limit(self, wanted: int, limit: int | None, n_given: int, option: str) -> int:
        """Return how many of the wanted tasks a limit allows, and note the option by which an environment waits."""
        if limit is None or n_given + wanted <= limit:
            return wanted
        self.waiting[f"{option} {limit}"] += 1
        return max(0, limit - n_given)

    def _find_family(self, environment: Environment, repo: str) -> str:
        """Return the family of an environment, empty where nothing limits its tasks: logs are read to find it."""
        if self.request.per_family is None:
            return ""
        family = self.families.get(environment.id) or compute_plan_family(repo, environment, self.services)
        return self.families.setdefault(environment.id, family)

    def _count_families(self, repo: str) -> Counter[str]:
        """Return the number of tasks that each family of a repository has given."""
        if self.request.per_family is None:
            return Counter()
        numbers = self.store.count_tasks_by_environment(self.kind, repo)
        environments = self.store.get_many(Environment, sorted(numbers))
        counted = Counter[str]()
        for key, environment in environments.items():
            counted[self._find_family(environment, repo)] += numbers[key]
        return counted

    def describe_short(self) -> list[dict[str, Any]]:
        """Return the environments of this call that gave fewer tasks than wanted, in the order of the request.

        Keys: `environment` (name of its change), `kind`, `tasks`, `wanted`, `reason`, `detail`.
        """
        states = self.store.load_environment_states(sorted(self.attempted), self.kind)
        short = [state for state in states if state.n_tasks < min(self.request.per_environment, state.n_searched)]
        return [
            {
                "environment": state.name,
                "kind": self.kind.value,
                "tasks": state.n_tasks,
                "wanted": self.request.per_environment,
                "reason": state.reason,
                "detail": state.detail,
            }
            for state in sorted(short, key=lambda state: self.request.place(state.environment))
        ]

    def format_waiting(self) -> str:
        """Return which limits left environments out of the last round, in a single line; empty for none."""
        counts = [f"{format_count(n, 'environment')} ({option})" for option, n in self.waiting.items()]
        return f"waiting because of limits: {', '.join(counts)}" if counts else ""
