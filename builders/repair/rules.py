"""Policy `rules`, which needs no model: skills that match, what conflicts, trials, versions and fallbacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from builders.acceptance import Reason
from builders.causes import find_gold_cause
from builders.repair.edit_application import apply_edits
from builders.repair.edit_checks import RejectedEditError
from builders.repair.edits import (
    DraftEdit,
    RelaxDependency,
    RemoveDependency,
    SetLanguageVersion,
    UseFallback,
    format_skill_origin,
)
from builders.repair.policy import NoProposal, Observation, Proposal, ProposalHistory, RepairCase
from builders.repair.skills import Skill, SkillMatch, find_matches
from builders.repair.trials import find_helpful_trial
from languages.base import NARROWING
from languages.draft import PlanDraft
from languages.registry import get_language

CONFLICT_ORIGIN = "(conflict)"
FALLBACK_ORIGIN = "(fallback)"
TRIAL_ORIGIN = "(trial)"
VERSION_ORIGIN = "(version)"
DECLARED_BY_CHANGE = "the change itself declares it"
"""Note of a version that the merge declares and the base commit does not."""
MAX_VERSIONS_FOR_GOLD_TESTS = 6
"""Limit of versions of the language that are tried for the change's own tests."""


@dataclass
class RulePolicy:
    """Policy that proposes edits of matching skills, then to give up blamed versions, then the language's fallbacks.

    Where the base tree's tests pass and the change's do not, other surroundings are tried, then other versions of the
    language; both come before fallbacks.
    """

    case: RepairCase
    skills: Sequence[Skill]
    name: str = "rules"
    _tried_images: set[str] = field(default_factory=set)

    def propose(self, observation: Observation, history: ProposalHistory) -> Proposal | NoProposal:
        """Return combined edits of packages and variables first, others one at a time, conflicts, and fallbacks."""
        tried = {edit for outcome in history for edit in outcome.proposal.edits}
        alone = {(outcome.proposal.proposed_by, outcome.proposal.edits) for outcome in history}
        matches = [_drop_tried_edits(match, alone) for match in find_matches(self.skills, observation, self.case.tree)]
        matches = [match for match in matches if match.edits and _changes_draft(observation.draft, match)]
        combinable = [match for match in matches if match.skill.is_combinable and not set(match.edits) <= tried]
        if combinable:
            return _combine_matches(combinable)
        if matches:
            best = matches[0]
            return Proposal(
                edits=best.edits, proposed_by=format_skill_origin(best.skill.name), rationale=best.rationale
            )
        return _give_up_blamed(observation, tried) or self._propose_without_skill(observation, tried)

    def _propose_without_skill(self, observation: Observation, tried: set[DraftEdit]) -> Proposal | NoProposal:
        """Return surroundings and versions for tests of the change, then the fallbacks of the language."""
        if observation.reason is Reason.GOLD_TESTS_FAIL:
            if find_gold_cause(observation.report, observation.expected_files) is Reason.NEEDS_NETWORK:
                return NoProposal(rationale="the change's own tests need the network")
            if following := self._try_surroundings(observation) or _select_version(observation.draft, tried):
                return following
        if observation.is_unrepairable:
            return NoProposal(rationale="no skill lists the reason")
        return _select_fallback(observation, tried) or NoProposal(rationale="no skill matches, and no fallback is left")

    def _try_surroundings(self, observation: Observation) -> Proposal | None:
        """Return the proposal of a trial that makes more of the change's tests pass; once for each image."""
        if not observation.image or observation.image in self._tried_images:
            return None
        self._tried_images.add(observation.image)
        trial = find_helpful_trial(self.case, observation)
        if trial is None:
            return None
        return Proposal(edits=trial.edits, proposed_by=TRIAL_ORIGIN, rationale=trial.reason)


def _give_up_blamed(observation: Observation, tried: set[DraftEdit]) -> Proposal | None:
    """Return the proposal that gives up a version that the message of a failed install blames, or else the package."""
    if observation.reason is not Reason.DEPENDENCIES_FAILED:
        return None
    draft = observation.draft
    for dependency in get_language(draft.language).find_conflicts(observation.log, draft):
        edit: DraftEdit = RelaxDependency(requirement=dependency.source.text)
        rationale = "{} conflicts with what the project requires, or cannot be built"
        if apply_edits(draft, (edit,), CONFLICT_ORIGIN) == draft:
            edit = RemoveDependency(name=dependency.source.distribution_name)
            rationale = "{} cannot be built, and the project does not declare it"
        if edit not in tried:
            where = f"{dependency.source.text} of {dependency.source.path}:{dependency.source.line}"
            return Proposal(edits=(edit,), proposed_by=CONFLICT_ORIGIN, rationale=rationale.format(where))
    return None


def _select_fallback(observation: Observation, tried: set[DraftEdit]) -> Proposal | None:
    """Return the proposal of the language's next fallback that changes the draft."""
    for fallback in get_language(observation.draft.language).fallbacks:
        edit = UseFallback(name=fallback.__name__)
        if observation.reason is Reason.GOLD_TESTS_FAIL and edit.name == NARROWING:
            continue  # the change's own tests run already
        if edit not in tried and fallback(observation.draft) != observation.draft:
            return Proposal(edits=(edit,), proposed_by=FALLBACK_ORIGIN, rationale=_get_first_line(fallback.__doc__))
    return None


def _select_version(draft: PlanDraft, tried: set[DraftEdit]) -> Proposal | None:
    """Return the proposal of the next version that the repository supports, in the order of its evidence."""
    others = sorted(draft.versions[1:], key=lambda version: version.note != DECLARED_BY_CHANGE)
    for version in others[:MAX_VERSIONS_FOR_GOLD_TESTS]:
        edit = SetLanguageVersion(version=version.value)
        if edit not in tried:
            where = f"{version.path}:{version.line}" if version.line else version.path
            rationale = f"the change's own tests fail with {draft.versions[0].value}; {where} supports {version.value}"
            return Proposal(edits=(edit,), proposed_by=VERSION_ORIGIN, rationale=rationale)
    return None


def _changes_draft(draft: PlanDraft, match: SkillMatch) -> bool:
    """Return whether the edits change the draft and are allowed."""
    try:
        edited = apply_edits(draft, match.edits, format_skill_origin(match.skill.name))
    except RejectedEditError:
        return False
    return edited != draft


def _drop_tried_edits(match: SkillMatch, alone: set[tuple[str, tuple[DraftEdit, ...]]]) -> SkillMatch:
    """Return the match without its edits if they were tried in the same form."""
    tried = (format_skill_origin(match.skill.name), match.edits) in alone
    return SkillMatch(skill=match.skill, edits=() if tried else match.edits, rationale=match.rationale)


def _combine_matches(matches: Sequence[SkillMatch]) -> Proposal:
    edits: dict[DraftEdit, str] = {}
    for match in matches:
        for edit in match.edits:
            edits.setdefault(edit, format_skill_origin(match.skill.name))
    names = list(dict.fromkeys(match.skill.name for match in matches))
    origin = format_skill_origin(names[0]) if len(names) == 1 else f"(skills {', '.join(names)})"
    return Proposal(
        edits=tuple(edits),
        origins=tuple(edits.values()),
        proposed_by=origin,
        rationale="; ".join(match.rationale for match in matches),
    )


def _get_first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0]
