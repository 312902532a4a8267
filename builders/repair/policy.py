"""Who proposes edits, and on what they decide: the same for rules and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from backends.services import Services
from backends.testing.outcomes import Report
from backends.tree import Tree
from builders.accept import Reason
from builders.repair.edits import Edit
from languages.draft import Draft
from taskdb.records import BuildPlan, Candidate


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the repair of one candidate has cost so far."""

    attempts: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Observation:
    """An attempt that was refused: the one that came furthest so far, not always the last."""

    draft: Draft
    plan: BuildPlan
    reason: Reason
    detail: str
    """A line for people."""
    log: str
    """All that the failed step or the tests printed."""
    tail: str
    """The log's end, at most TAIL characters."""
    lines: tuple[str, ...]
    """Lines of the log, and messages of failed tests with how often each came, that seem to say most."""
    report: Report | None
    """Of the tests, where they ran."""
    discovered: tuple[str, ...]
    """Test files that should have been collected, where the tests ran."""
    attempt: int
    """The number of that attempt, 1 for the first draft."""
    spent: Spent
    hopeless: bool = False
    """Whether the reason is one that other versions do not mend; only what knows the very case proposes then."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Edits to try together."""

    edits: tuple[Edit, ...]
    why: str
    """A line for people."""
    by: str
    """The edits' place in the evidence: `(skill NAME)`, `(agent)`, `(nearest)`, `(fallback)`."""
    places: tuple[str, ...] = ()
    """Who first proposed each edit, where that is not `by` (what mended another commit)."""
    tokens: int = 0
    """What thinking about it cost."""
    cost: float = 0.0
    transcript: str = ""
    """Artifact hash of a model's conversation up to here."""


@dataclass(frozen=True, kw_only=True)
class GiveUp:
    """Nothing to propose."""

    why: str
    final: bool = False
    """Whether asking again, after another's attempt, is useless."""
    tokens: int = 0
    cost: float = 0.0
    transcript: str = ""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A proposal and what came of it."""

    number: int
    """Of the attempt; 1 is the first draft, which nobody proposed."""
    proposal: Proposal
    draft: Draft
    reason: str
    """A `Reason`, `refused-edit` when it was not built at all (`detail` says why), or `seen-before`."""
    detail: str
    undone: bool
    """Whether it came less far than what was before it, so that its edits are not there any more."""
    seconds: float = 0.0


History = Sequence[Tried]
"""All proposals so far, oldest first."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is to be mended, for who makes policies."""

    candidate: Candidate
    tree: Tree
    first: Draft
    """Before any edit."""
    services: Services


class Policy(Protocol):
    """Proposes what to try next."""

    name: str
    """`nearest`, `rules` or `llm`."""

    def propose(self, observation: Observation, history: History) -> Proposal | GiveUp:
        """Edits of `observation.draft`, or why there are none.

        Raises:
            Transient: the engine or a model's endpoint failed.
        """
        ...
