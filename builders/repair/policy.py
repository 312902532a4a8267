"""Interface of repair policies, the same for rules and models.

The data that they receive and the data that they return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from backends.services import Services
from backends.tree import CommitTree
from builders.acceptance import Reason
from builders.repair.edits import DraftEdit
from evaluation.reports.outcomes import EvaluationReport
from languages.draft import PlanDraft
from taskdb.records import BuildPlan, Candidate


@dataclass(frozen=True, kw_only=True)
class RepairUsage:
    """Resources that the repair of a candidate has used so far; `cost` in the currency of the price settings."""

    attempts: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The rejected attempt that came furthest so far, which is not always the last."""

    draft: PlanDraft
    plan: BuildPlan
    reason: Reason
    detail: str
    """The failure in a single line."""
    log: str
    """Output of the failed step or of the tests."""
    tail: str
    """The log's end, at most TAIL_CHARS characters."""
    lines: tuple[str, ...]
    """Error lines of the log, and messages of failed tests with their counts."""
    report: EvaluationReport | None
    """Report of the tests, if they ran."""
    expected_files: tuple[str, ...]
    """Test files that should have been collected, if the tests ran."""
    attempt: int
    """Number of the attempt, 1 for the first draft."""
    usage: RepairUsage
    image: str = ""
    """Name of the image, where it was accepted and only the change's own tests fail."""
    is_unrepairable: bool = False
    """Whether no change of versions repairs the reason; then only skills that list the reason apply."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Edits to try together."""

    edits: tuple[DraftEdit, ...]
    rationale: str
    """The reason for the edits in a single line."""
    proposed_by: str
    """Origin of the edits in the evidence: `(skill NAME)`, `(agent)`, `(nearest)`, `(conflict)`, `(trial)`,
    `(version)`, `(fallback)`."""
    origins: tuple[str, ...] = ()
    """Origin of each edit where it differs from `proposed_by`, as for the repair of another commit."""
    tokens: int = 0
    """Tokens used for this proposal."""
    cost: float = 0.0
    transcript: str = ""
    """Artifact hash of the model's conversation so far."""


@dataclass(frozen=True, kw_only=True)
class NoProposal:
    """A policy's answer without edits."""

    rationale: str
    is_final: bool = False
    """Whether the policy has no proposal after later attempts either."""
    tokens: int = 0
    cost: float = 0.0
    transcript: str = ""


@dataclass(frozen=True, kw_only=True)
class ProposalOutcome:
    """A proposal with the outcome of its attempt."""

    number: int
    """Number of the attempt; 1 is the first draft, which has no proposal."""
    proposal: Proposal
    draft: PlanDraft
    reason: str
    """A `Reason`, or `rejected-edit` or `duplicate-plan` when the draft was not built (`detail` gives the cause)."""
    detail: str
    rolled_back: bool
    """Whether the attempt came less far than the best, so that its edits were removed from the draft."""
    seconds: float = 0.0


ProposalHistory = Sequence[ProposalOutcome]
"""All proposals so far, oldest first."""


@dataclass(frozen=True, kw_only=True)
class RepairCase:
    """A candidate whose build is repaired, with all that policies need."""

    candidate: Candidate
    tree: CommitTree
    first_draft: PlanDraft
    """Draft without edits."""
    services: Services


class Policy(Protocol):
    """Proposes edits of a rejected draft."""

    name: str
    """`nearest`, `rules` or `llm`."""

    def propose(self, observation: Observation, history: ProposalHistory) -> Proposal | NoProposal:
        """Return edits of `observation.draft`, or the reason for none.

        Raises:
            Transient: the engine or a model's endpoint failed.
        """
        ...
