"""What mended a repository's other commits, remembered in the store: the nearest by date is tried first.

One small file for each commit. It only shortens the way: what it proposes is built and judged like anything else.
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
from builders.repair.edits import Edit, edit_of, to_data
from builders.repair.policy import Case, GiveUp, History, Observation, Proposal

FOLDER = "mended"
PLACE = "(nearest)"


@dataclass
class Nearest:
    """The policy: once, what mended the nearest verified environment of the same repository and language."""

    case: Case
    name: str = "nearest"
    _asked: bool = field(default=False)

    def propose(self, observation: Observation, history: History) -> Proposal | GiveUp:
        """The edits of the nearest, all at once."""
        del observation, history
        found = None if self._asked else recall(self.case)
        self._asked = True
        if found is None:
            return GiveUp(why="no other commit of this repository was mended", final=True)
        commit, edits, places = found
        return Proposal(edits=edits, places=places, by=PLACE, why=f"it mended {commit[:12]} of the same repository")


def remember(case: Case, proposals: Sequence[Proposal]) -> None:
    """Keep the edits that an accepted draft is made of, with who proposed each."""
    edits = [
        {"edit": to_data(edit), "place": proposal.places[at] if proposal.places else proposal.by}
        for proposal in proposals
        for at, edit in enumerate(proposal.edits)
    ]
    if not edits:
        return
    folder = _folder(case)
    folder.mkdir(parents=True, exist_ok=True)
    commit = case.candidate.base_commit
    said = {"repo": case.candidate.repo, "commit": commit, "day": case.first.day.isoformat(), "edits": edits}
    scratch = folder / f"{commit}.new"
    scratch.write_text(json.dumps(said), encoding="utf-8")
    scratch.replace(folder / f"{commit}.json")


def recall(case: Case) -> tuple[str, tuple[Edit, ...], tuple[str, ...]] | None:
    """(commit, edits, places) of the commit nearest in time that was mended, None when there is none."""
    known = [said for file in sorted(_folder(case).glob("*.json")) if (said := _read(file))]
    if not known:
        return None
    day = case.first.day
    said = min(known, key=lambda one: (abs((date.fromisoformat(one["day"]) - day).days), one["commit"]))
    try:
        edits = tuple(edit_of(one["edit"]) for one in said["edits"])
    except ValidationError:  # of another version of mergemill
        return None
    return said["commit"], edits, tuple(one["place"] for one in said["edits"])


def _read(file: Path) -> dict[str, Any] | None:
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) and {"day", "commit", "edits"} <= said.keys() else None


def _folder(case: Case) -> Path:
    services: Services = case.services
    key = hashlib.sha256(f"{case.candidate.repo}\n{case.first.language}".encode()).hexdigest()[:16]
    return services.settings.store_dir / FOLDER / key
