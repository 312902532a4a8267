"""Repair loop: build and accept; after a rejection query the policies in order, apply their edits and build again.

An attempt that comes less far than the best is undone: the next proposal edits the best draft again. The same plan
is never built twice. An accepted build in which the change's own tests fail is kept while a few further attempts look
for a better attempt. `repair_build` contains the limits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builders import bases
from builders.acceptance import MIN_COLLECTED, BuildRejection, Reason
from builders.attempt import AcceptedBuild, GoldFailure, run_attempt
from builders.causes import name_cause, name_gold_cause
from builders.repair.edit_application import apply_edit
from builders.repair.edit_checks import RejectedEditError, check_kept_tests
from builders.repair.edits import format_edit
from builders.repair.observation import build_observation
from builders.repair.policy import NoProposal, Observation, Policy, Proposal, ProposalOutcome, RepairCase, RepairUsage
from builders.repair.rules import VERSION_ORIGIN
from languages.base import NARROWING
from languages.draft import PlanDraft
from languages.registry import get_language
from taskdb.records import Attempt

log = logging.getLogger(__name__)

ACCEPTED = "accepted"
REJECTED_EDIT = "rejected-edit"
DUPLICATE_PLAN = "duplicate-plan"
GAVE_UP = "gave-up"
REASONS_WITHOUT_BUILD = (REJECTED_EDIT, DUPLICATE_PLAN, GAVE_UP)
"""Reasons of attempts without a build."""
FIRST_DRAFT = "draft"
MAX_VOID_PROPOSALS = 3
"""Limit of consecutive proposals of a policy that are rejected or give a known plan; then the next is queried."""
MAX_GOLD_ATTEMPTS = 4
"""Limit of attempts after an accepted build, to make the change's own tests pass; those of other versions of the
language do not count, which end with the versions that the repository supports."""
POLICIES_FOR_GOLD_TESTS = frozenset({"nearest", "rules"})
"""Policies that are queried for tests of the change; a model would be paid for a build that is accepted already."""
POLICIES_FOR_UNREPAIRABLE = frozenset({"rules"})
"""Policies that are queried for unrepairable reasons, because their skills can list such a reason."""


@dataclass(frozen=True, kw_only=True)
class RepairResult:
    """Result of a repair: the accepted build, or the rejection of the attempt that came furthest; and all attempts."""

    result: AcceptedBuild | BuildRejection
    attempts: tuple[Attempt, ...]
    log: str
    """Logs of the rejected attempts, each below a line with its reason."""
    number: int = 1
    """Number of the attempt that gave the result."""
    steps: tuple[tuple[Proposal, int], ...] = ()
    """Proposals in the accepted draft, each with its attempt's number."""


@dataclass
class _BestAttempt:
    """The best attempt so far; the next proposal edits its draft."""

    draft: PlanDraft
    rejection: BuildRejection
    number: int
    steps: tuple[tuple[Proposal, int], ...] = ()


@dataclass
class _RepairState:
    started: float
    best: _BestAttempt
    tried_keys: set[str]
    history: list[ProposalOutcome] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    finished_policies: set[str] = field(default_factory=set)
    """Names of policies whose last answer was final."""
    tokens: int = 0
    cost: float = 0.0

    @property
    def has_spent_gold_attempts(self) -> bool:
        accepted = [attempt.number for attempt in self.attempts if attempt.reason == Reason.GOLD_TESTS_FAIL]
        versions = sum(
            attempt.proposed_by == VERSION_ORIGIN and attempt.reason not in REASONS_WITHOUT_BUILD
            for attempt in self.attempts
        )
        return bool(accepted) and self.build_count - versions - accepted[0] >= MAX_GOLD_ATTEMPTS

    @property
    def build_count(self) -> int:
        return sum(attempt.reason not in REASONS_WITHOUT_BUILD for attempt in self.attempts)

    def measure_usage(self) -> RepairUsage:
        seconds = time.monotonic() - self.started
        return RepairUsage(attempts=self.build_count, seconds=seconds, tokens=self.tokens, cost=self.cost)


def repair_build(case: RepairCase, policies: Sequence[Policy], *, started: float) -> RepairResult:
    """Try the first draft, then the edits that the policies propose, within the settings' budget.

    Args:
        case: the candidate and its first draft.
        policies: queried in this order after each rejection.
        started: monotonic seconds from which `budget_seconds` counts.

    Raises:
        Transient, MachineError, IncompleteCloneError: as `builders.attempt.run_attempt`.
    """
    began = time.monotonic()
    first = _build_draft(case, case.first_draft)
    if isinstance(first, AcceptedBuild):
        return RepairResult(result=first, attempts=(_create_first_attempt(ACCEPTED, "", began),), log="")
    state = _RepairState(
        started=started,
        best=_BestAttempt(case.first_draft, first, 1),
        # A policy may propose a plan again; a second build of it would have the same result.
        tried_keys={_compute_draft_key(case.first_draft)},
    )
    state.attempts.append(_create_first_attempt(first.reason, first.detail, began))
    _append_log(state, case, 1, first)
    while following := _find_next_draft(state, policies, case):
        proposal, draft = following
        number, began = state.build_count + 1, time.monotonic()
        result = _build_draft(case, draft, state.best.rejection)
        steps = (*state.best.steps, (proposal, number))
        if isinstance(result, AcceptedBuild):
            state.attempts.append(_create_attempt(proposal, number, ACCEPTED, "", began))
            return _create_result(state, result, number, steps)
        # The next proposal edits the best draft, so that an edit that makes things worse does not spoil the later ones.
        rolled_back = not _is_progress(result, state.best.rejection)
        _record_outcome(state, proposal, draft, result, began, rolled_back=rolled_back)
        _append_log(state, case, number, result)
        if not rolled_back:
            state.best = _BestAttempt(draft, result, number, steps)
    best = state.best
    # An image whose build was accepted is kept although the change's own tests fail, unless a known cause rules it out.
    if isinstance(best.rejection, GoldFailure):
        named = name_gold_cause(best.rejection)
        if named is None:
            return _create_result(state, best.rejection.accepted, best.number, best.steps)
        return _create_result(state, named, best.number, ())
    return _create_result(state, name_cause(best.rejection), best.number, ())


def _is_progress(result: BuildRejection, best: BuildRejection) -> bool:
    """Return whether an attempt came as far as the best; from an accepted build only further attempts lead away."""
    progress, before = result.measure_progress(), best.measure_progress()
    return progress > before if isinstance(best, GoldFailure) else progress >= before


def _create_result(
    state: _RepairState,
    result: AcceptedBuild | BuildRejection,
    number: int,
    steps: tuple[tuple[Proposal, int], ...],
) -> RepairResult:
    return RepairResult(
        result=result, attempts=tuple(state.attempts), log="".join(state.logs), number=number, steps=steps
    )


def _find_next_draft(
    state: _RepairState, policies: Sequence[Policy], case: RepairCase
) -> tuple[Proposal, PlanDraft] | None:
    """Return the next proposal that gives a new draft, or None: no policy has a proposal or the budget is spent."""
    if state.has_spent_gold_attempts:
        return None
    settings = case.services.settings
    observation = build_observation(
        state.best.draft,
        get_language(state.best.draft.language).render_plan(state.best.draft),
        state.best.rejection,
        attempt=state.best.number,
        usage=state.measure_usage(),
        image=state.best.rejection.accepted.image.name if isinstance(state.best.rejection, GoldFailure) else "",
    )
    for policy in policies:
        if observation.is_unrepairable and policy.name not in POLICIES_FOR_UNREPAIRABLE:
            continue
        if observation.reason is Reason.GOLD_TESTS_FAIL and policy.name not in POLICIES_FOR_GOLD_TESTS:
            continue
        for proposal in _request_proposals(
            policy, observation, state, settings.build.max_attempts, settings.budget.seconds
        ):
            draft = _apply_proposal(state, proposal, case)
            if draft is not None:
                return proposal, draft
    return None


def _request_proposals(
    policy: Policy, observation: Observation, state: _RepairState, max_attempts: int, budget_seconds: float
) -> Iterator[Proposal]:
    """Yield a policy's proposals until a proposal gives a new draft, or the policy or the budget has no more."""
    for _ in range(MAX_VOID_PROPOSALS):
        usage = state.measure_usage()
        # The budget is compared before each answer, which costs time and may cost tokens.
        if policy.name in state.finished_policies or usage.attempts >= max_attempts or usage.seconds >= budget_seconds:
            return
        answer = policy.propose(replace(observation, usage=usage), tuple(state.history))
        state.tokens += answer.tokens
        state.cost += answer.cost
        if isinstance(answer, NoProposal):
            if answer.is_final:
                state.finished_policies.add(policy.name)
            # An answer of a model without edits is recorded for its cost alone.
            if answer.tokens:
                state.attempts.append(_create_give_up_attempt(policy, answer, state))
            return
        yield answer


def _apply_proposal(state: _RepairState, proposal: Proposal, case: RepairCase) -> PlanDraft | None:
    """Return the best draft with the proposal's edits; record the outcome and return None if it must not be built."""
    began = time.monotonic()
    draft = state.best.draft
    try:
        for at, edit in enumerate(proposal.edits):
            draft = apply_edit(draft, edit, proposal.origins[at] if proposal.origins else proposal.proposed_by)
        error = check_draft(case, draft)
    except RejectedEditError as rejected:
        error = str(rejected)
    if error or _compute_draft_key(draft) in state.tried_keys:
        reason = REJECTED_EDIT if error else DUPLICATE_PLAN
        rejection = replace(state.best.rejection, detail=error or "this plan was tried before")
        _record_outcome(state, proposal, draft, rejection, began, rolled_back=True, reason=reason)
        return None
    state.tried_keys.add(_compute_draft_key(draft))
    return draft


def _build_draft(
    case: RepairCase, draft: PlanDraft, best: BuildRejection | None = None
) -> AcceptedBuild | BuildRejection:
    return run_attempt(
        get_language(draft.language).render_plan(draft),
        case.tree,
        case.candidate,
        case.services,
        accepted_before=best if isinstance(best, GoldFailure) else None,
    )


def check_draft(case: RepairCase, draft: PlanDraft) -> str:
    """Return why a draft must not be built (too few of the tests remain, or no base exists), or an empty string."""
    first, version = case.first_draft, draft.versions[0].value
    if version != first.versions[0].value and version not in bases.list_available_versions(
        draft.language, case.services
    ):
        return f"this machine has no base with {draft.language} {version}"
    if draft.test == first.test:
        return ""
    language = get_language(draft.language)
    if any((evidence.choice, evidence.value) == ("fallback", NARROWING) for evidence in draft.evidence):
        narrow = next(fallback for fallback in language.fallbacks if fallback.__name__ == NARROWING)
        # The fallback leaves out tests on purpose, so the draft is compared with the narrowed first draft.
        first = narrow(first)
    before, after = (
        language.find_test_files(case.tree, language.render_plan(plan_draft)) for plan_draft in (first, draft)
    )
    return check_kept_tests(before, after, case.candidate.test_files, MIN_COLLECTED)


def _compute_draft_key(draft: PlanDraft) -> str:
    """Return the id of a draft's plan without its evidence; equal keys give equal builds."""
    return get_language(draft.language).render_plan(draft).model_copy(update={"evidence": ()}).id


def _record_outcome(
    state: _RepairState,
    proposal: Proposal,
    draft: PlanDraft,
    rejection: BuildRejection,
    began: float,
    *,
    rolled_back: bool,
    reason: str = "",
) -> None:
    reason, number = reason or rejection.reason, state.build_count + 1
    seconds = time.monotonic() - began
    state.history.append(
        ProposalOutcome(
            number=number,
            proposal=proposal,
            draft=draft,
            reason=reason,
            detail=rejection.detail,
            rolled_back=rolled_back,
            seconds=seconds,
        )
    )
    state.attempts.append(_create_attempt(proposal, number, reason, rejection.detail, began, rolled_back=rolled_back))


def _append_log(state: _RepairState, case: RepairCase, number: int, rejection: BuildRejection) -> None:
    log.info("%s: attempt %d rejected: %s: %s", case.candidate.name, number, rejection.reason, rejection.detail)
    state.logs.append(f"===== attempt {number}: {rejection.reason}: {rejection.detail}\n{rejection.log}\n")


def _create_first_attempt(reason: str, detail: str, began: float) -> Attempt:
    seconds = time.monotonic() - began
    return Attempt(
        number=1, proposed_by=FIRST_DRAFT, rationale="", edits=(), reason=reason, detail=detail, seconds=seconds
    )


def _create_attempt(
    proposal: Proposal, number: int, reason: str, detail: str, began: float, *, rolled_back: bool = False
) -> Attempt:
    return Attempt(
        number=number,
        proposed_by=proposal.proposed_by,
        rationale=proposal.rationale,
        edits=tuple(format_edit(edit) for edit in proposal.edits),
        reason=reason,
        detail=detail,
        rolled_back=rolled_back,
        seconds=time.monotonic() - began,
        tokens=proposal.tokens,
        cost=proposal.cost,
        transcript=proposal.transcript or None,
    )


def _create_give_up_attempt(policy: Policy, answer: NoProposal, state: _RepairState) -> Attempt:
    """Return an attempt that records the cost of an answer without edits."""
    return Attempt(
        number=state.build_count + 1,
        proposed_by=policy.name,
        rationale=answer.rationale,
        edits=(),
        reason=GAVE_UP,
        detail=answer.rationale,
        rolled_back=True,
        tokens=answer.tokens,
        cost=answer.cost,
        transcript=answer.transcript or None,
    )
