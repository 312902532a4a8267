"""The loop: build and judge; on refusal ask the policies in order, apply what they propose, build and judge anew.

An attempt that comes less far than the best before it is undone: what is proposed next edits the best draft again, and
the same draft is never built twice. Reading `mend` is reading how far it goes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builders import bases
from builders.accept import COLLECTED, Refused
from builders.attempt import Built, attempt
from builders.repair.edits import apply, in_words
from builders.repair.observe import observe
from builders.repair.policy import Case, GiveUp, Observation, Policy, Proposal, Spent, Tried
from builders.repair.refusals import RefusedEditError, leaves_out
from languages.draft import Draft
from languages.registry import language
from taskdb.records import Attempt

log = logging.getLogger(__name__)

ACCEPTED = "accepted"
REFUSED_EDIT = "refused-edit"
SEEN_BEFORE = "seen-before"
GAVE_UP = "gave-up"
NOT_BUILT = (REFUSED_EDIT, SEEN_BEFORE, GAVE_UP)
"""Reasons of attempts that came to no build."""
FIRST = "draft"
VOID = 3
"""Proposals in a row of one policy that change nothing or are refused, after which the next is asked."""
MENDS_HOPELESS = frozenset({"rules"})
"""Policies that are asked for reasons that other choices do not mend: theirs name the very case."""


@dataclass(frozen=True, kw_only=True)
class Mended:
    """What a repair came to: the image, or the refusal of the attempt that came furthest; and all attempts."""

    result: Built | Refused
    attempts: tuple[Attempt, ...]
    log: str
    """Of the refused attempts, each below a line that says why."""
    steps: tuple[tuple[Proposal, int], ...] = ()
    """Proposals that the accepted draft is made of, each with its attempt's number."""


@dataclass
class _Snapshot:
    """The best attempt so far: what is proposed next edits its draft."""

    draft: Draft
    refused: Refused
    number: int
    steps: tuple[tuple[Proposal, int], ...] = ()


@dataclass
class _State:
    started: float
    best: _Snapshot
    seen: set[str]
    history: list[Tried] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    """Policies that have given up for good."""
    tokens: int = 0
    cost: float = 0.0

    @property
    def built(self) -> int:
        return sum(one.reason not in NOT_BUILT for one in self.attempts)

    def spent(self) -> Spent:
        seconds = time.monotonic() - self.started
        return Spent(attempts=self.built, seconds=seconds, tokens=self.tokens, cost=self.cost)


def mend(case: Case, policies: Sequence[Policy], *, started: float) -> Mended:
    """Try the first draft, then what the policies propose, within the settings' budget.

    Args:
        case: the candidate and its first draft.
        policies: asked in this order after each refusal.
        started: monotonic seconds from which `budget_seconds` counts.

    Raises:
        Transient, MachineError, IncompleteCloneError: as `builders.attempt.attempt`.
    """
    began = time.monotonic()
    first = _built(case, case.first)
    if isinstance(first, Built):
        return Mended(result=first, attempts=(_first(ACCEPTED, "", began),), log="")
    state = _State(started=started, best=_Snapshot(case.first, first, 1), seen={_key(case.first)})
    state.attempts.append(_first(first.reason, first.detail, began))
    _note(state, case, 1, first)
    while proposal := _next(state, policies, case):
        proposed, draft = proposal
        number, began = state.built + 1, time.monotonic()
        result = _built(case, draft)
        steps = (*state.best.steps, (proposed, number))
        if isinstance(result, Built):
            state.attempts.append(_attempt(proposed, number, ACCEPTED, "", began))
            return Mended(result=result, attempts=tuple(state.attempts), log="".join(state.logs), steps=steps)
        undone = result.progress() < state.best.refused.progress()
        _remember(state, proposed, draft, result, began, undone=undone)
        _note(state, case, number, result)
        if not undone:
            state.best = _Snapshot(draft, result, number, steps)
    return Mended(result=state.best.refused, attempts=tuple(state.attempts), log="".join(state.logs))


def _next(state: _State, policies: Sequence[Policy], case: Case) -> tuple[Proposal, Draft] | None:
    """The next proposal that makes a new draft, or None: nobody knows more or the budget is spent."""
    settings = case.services.settings
    observed = observe(
        state.best.draft, language(state.best.draft.language).render(state.best.draft), state.best.refused,
        attempt=state.best.number, spent=state.spent(),
    )  # fmt: skip
    for policy in policies:
        if observed.hopeless and policy.name not in MENDS_HOPELESS:
            continue
        for proposed in _asked(policy, observed, state, settings.max_attempts, settings.budget_seconds):
            draft = _edited(state, proposed, case)
            if draft is not None:
                return proposed, draft
    return None


def _asked(
    policy: Policy, observed: Observation, state: _State, max_attempts: int, budget_seconds: float
) -> Iterator[Proposal]:
    """A policy's proposals, one after the other as each turns out to be void."""
    for _ in range(VOID):
        spent = state.spent()
        if policy.name in state.done or spent.attempts >= max_attempts or spent.seconds >= budget_seconds:
            return
        answer = policy.propose(replace(observed, spent=spent), tuple(state.history))
        state.tokens += answer.tokens
        state.cost += answer.cost
        if isinstance(answer, GiveUp):
            if answer.final:
                state.done.add(policy.name)
            if answer.tokens:
                state.attempts.append(_gave_up(policy, answer, state))
            return
        yield answer


def _edited(state: _State, proposed: Proposal, case: Case) -> Draft | None:
    """The best draft with the proposal's edits; None, and a line in the history, when that is nothing to build."""
    began = time.monotonic()
    draft = state.best.draft
    try:
        for at, edit in enumerate(proposed.edits):
            draft = apply(draft, edit, proposed.places[at] if proposed.places else proposed.by)
        why = objection(case, draft)
    except RefusedEditError as error:
        why = str(error)
    if why or _key(draft) in state.seen:
        reason = REFUSED_EDIT if why else SEEN_BEFORE
        refused = replace(state.best.refused, detail=why or "this plan was tried before")
        _remember(state, proposed, draft, refused, began, undone=True, reason=reason)
        return None
    state.seen.add(_key(draft))
    return draft


def _built(case: Case, draft: Draft) -> Built | Refused:
    return attempt(language(draft.language).render(draft), case.tree, case.candidate, case.services)


def objection(case: Case, draft: Draft) -> str:
    """Why a draft is not worth building: its tests are not the first draft's any more, or there is no such base."""
    first, version = case.first, draft.versions[0].value
    if version != first.versions[0].value and version not in bases.available(draft.language, case.services):
        return f"this machine has no base with {draft.language} {version}"
    if draft.test == first.test:
        return ""
    known = language(draft.language)
    before, after = (known.defining_files(case.tree, known.render(one)) for one in (first, draft))
    return leaves_out(before, after, case.candidate.test_files, COLLECTED)


def _key(draft: Draft) -> str:
    """What is built and run for a draft, whoever says why."""
    return language(draft.language).render(draft).model_copy(update={"evidence": ()}).id


def _remember(
    state: _State, proposed: Proposal, draft: Draft, refused: Refused, began: float, *, undone: bool, reason: str = ""
) -> None:  # fmt: skip
    reason, number = reason or refused.reason, state.built + 1
    seconds = time.monotonic() - began
    state.history.append(Tried(
        number=number, proposal=proposed, draft=draft, reason=reason, detail=refused.detail, undone=undone,
        seconds=seconds,
    ))  # fmt: skip
    state.attempts.append(_attempt(proposed, number, reason, refused.detail, began, undone=undone))


def _note(state: _State, case: Case, number: int, refused: Refused) -> None:
    log.info("%s: attempt %d refused: %s: %s", case.candidate.name, number, refused.reason, refused.detail)
    state.logs.append(f"===== attempt {number}: {refused.reason}: {refused.detail}\n{refused.log}\n")


def _first(reason: str, detail: str, began: float) -> Attempt:
    seconds = time.monotonic() - began
    return Attempt(number=1, by=FIRST, why="", edits=(), reason=reason, detail=detail, seconds=seconds)


def _attempt(
    proposed: Proposal, number: int, reason: str, detail: str, began: float, *, undone: bool = False
) -> Attempt:
    return Attempt(
        number=number, by=proposed.by, why=proposed.why, edits=tuple(in_words(edit) for edit in proposed.edits),
        reason=reason, detail=detail, undone=undone, seconds=time.monotonic() - began, tokens=proposed.tokens,
        cost=proposed.cost, transcript=proposed.transcript or None,
    )  # fmt: skip


def _gave_up(policy: Policy, answer: GiveUp, state: _State) -> Attempt:
    """What thinking cost is told, also where nothing came of it."""
    return Attempt(
        number=state.built + 1, by=policy.name, why=answer.why, edits=(), reason=GAVE_UP, detail=answer.why,
        undone=True, tokens=answer.tokens, cost=answer.cost, transcript=answer.transcript or None,
    )  # fmt: skip
