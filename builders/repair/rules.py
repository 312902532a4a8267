"""The policy that needs no model: skills that match, then what the language itself gives up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builders.repair.edits import Edit, TakeFallback, apply_all, skill_place
from builders.repair.policy import Case, GiveUp, History, Observation, Proposal
from builders.repair.refusals import RefusedEditError
from builders.repair.skills import Match, Skill, matching
from languages.draft import Draft
from languages.registry import language

FALLBACK = "(fallback)"


@dataclass
class Rules:
    """The policy."""

    case: Case
    skills: Sequence[Skill]
    name: str = "rules"

    def propose(self, observation: Observation, history: History) -> Proposal | GiveUp:
        """What skills say of single packages is tried together, what changes a choice alone, what gives one up last."""
        tried = {edit for one in history for edit in one.proposal.edits}
        alone = {(one.proposal.by, one.proposal.edits) for one in history}
        matches = [_untried(match, alone) for match in matching(self.skills, observation, self.case.tree)]
        matches = [match for match in matches if match.edits and _changes(observation.draft, match)]
        adding = [match for match in matches if match.skill.goes_together and not set(match.edits) <= tried]
        if adding:
            return _together(adding)
        if matches:
            best = matches[0]
            return Proposal(edits=best.edits, by=skill_place(best.skill.name), why=best.why)
        if not observation.hopeless:
            for fallback in language(observation.draft.language).FALLBACKS:
                edit = TakeFallback(name=fallback.__name__)
                if edit not in tried and fallback(observation.draft) != observation.draft:
                    return Proposal(edits=(edit,), by=FALLBACK, why=_first_line(fallback.__doc__))
        return GiveUp(why="no skill matches, and there is nothing left to give up")


def _changes(draft: Draft, match: Match) -> bool:
    """Whether the edits would make another draft: what is there already is not proposed again."""
    try:
        edited = apply_all(draft, match.edits, skill_place(match.skill.name))
    except RefusedEditError:
        return False
    return edited != draft


def _untried(match: Match, alone: set[tuple[str, tuple[Edit, ...]]]) -> Match:
    """The match without edits that were tried as they are."""
    tried = (skill_place(match.skill.name), match.edits) in alone
    return Match(skill=match.skill, edits=() if tried else match.edits, why=match.why)


def _together(matches: Sequence[Match]) -> Proposal:
    edits: dict[Edit, str] = {}
    for match in matches:
        for edit in match.edits:
            edits.setdefault(edit, skill_place(match.skill.name))
    names = list(dict.fromkeys(match.skill.name for match in matches))
    by = skill_place(names[0]) if len(names) == 1 else f"(skills {', '.join(names)})"
    return Proposal(
        edits=tuple(edits), places=tuple(edits.values()), by=by, why="; ".join(match.why for match in matches)
    )


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]
