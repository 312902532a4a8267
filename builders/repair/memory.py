"""Store of the edits that repaired a repository's commits; those of the commit nearest in time are tried first.

A small file for each commit. The stored edits save attempts: they are built and accepted like any other proposal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backends.services import Services
from builders.repair.edits import DraftEdit, dump_edit, parse_edit
from builders.repair.policy import NoProposal, Observation, Proposal, ProposalHistory, RepairCase

FOLDER = "repairs"
NEAREST_ORIGIN = "(nearest)"


@dataclass
class NearestRepairPolicy:
    """Policy `nearest`: propose once the edits of the nearest repaired commit of the same repository and language."""

    case: RepairCase
    name: str = "nearest"
    _was_queried: bool = field(default=False)

    def propose(self, observation: Observation, history: ProposalHistory) -> Proposal | NoProposal:
        """Return all edits of the nearest repair."""
        del observation, history
        repair = None if self._was_queried else load_nearest_repair(self.case)
        self._was_queried = True
        if repair is None:
            return NoProposal(rationale="no other commit of this repository was repaired", is_final=True)
        commit, edits, origins = repair
        rationale = f"it repaired {commit[:12]} of the same repository"
        return Proposal(edits=edits, origins=origins, proposed_by=NEAREST_ORIGIN, rationale=rationale)


def save_repair(case: RepairCase, proposals: Sequence[Proposal]) -> None:
    """Store the edits of an accepted draft, each with its origin."""
    edits = [
        {"edit": dump_edit(edit), "origin": proposal.origins[at] if proposal.origins else proposal.proposed_by}
        for proposal in proposals
        for at, edit in enumerate(proposal.edits)
    ]
    if not edits:
        return
    folder = _get_repair_folder(case)
    folder.mkdir(parents=True, exist_ok=True)
    commit = case.candidate.base_commit
    repair = {"repo": case.candidate.repo, "commit": commit, "day": case.first_draft.day.isoformat(), "edits": edits}
    scratch = folder / f"{commit}.new"
    scratch.write_text(json.dumps(repair), encoding="utf-8")
    scratch.replace(folder / f"{commit}.json")


def load_nearest_repair(case: RepairCase) -> tuple[str, tuple[DraftEdit, ...], tuple[str, ...]] | None:
    """Return (commit, edits, origins) of the repaired commit that is nearest in time, None when there is none."""
    repairs = [repair for file in sorted(_get_repair_folder(case).glob("*.json")) if (repair := _read_repair(file))]
    if not repairs:
        return None
    day = case.first_draft.day
    nearest = min(repairs, key=lambda repair: (abs((date.fromisoformat(repair["day"]) - day).days), repair["commit"]))
    try:
        edits = tuple(parse_edit(edit["edit"]) for edit in nearest["edits"])
    except ValidationError:  # of another version of mergemill
        return None
    return nearest["commit"], edits, tuple(edit["origin"] for edit in nearest["edits"])


def _read_repair(file: Path) -> dict[str, Any] | None:
    try:
        repair = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return repair if isinstance(repair, dict) and {"day", "commit", "edits"} <= repair.keys() else None


def _get_repair_folder(case: RepairCase) -> Path:
    services: Services = case.services
    key = hashlib.sha256(f"{case.candidate.repo}\n{case.first_draft.language}".encode()).hexdigest()[:16]
    return services.settings.storage.store_dir / FOLDER / key
