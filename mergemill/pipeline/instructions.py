"""Votes of the judge on items that no program can decide, for the gates of instruction tasks."""

from __future__ import annotations

from backends.services import Services
from derivers.instructions.gates import VoteCollector
from evaluation.instructions.evidence import RolloutEvidence
from taskdb.records.instructions import BoundConstraint
from verifiers.judge.instructions import make_instruction_judge


def make_vote_collector(services: Services) -> VoteCollector | None:
    """Return the function that lets the model vote; None without a model."""
    judge = make_instruction_judge(services)
    if judge is None:
        return None

    def collect_votes(constraint: BoundConstraint, evidence: RolloutEvidence) -> list[str]:
        return [vote.followed for vote in judge.collect_votes(constraint, evidence)]

    return collect_votes
