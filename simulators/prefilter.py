"""Pre-filter of seeds: format by rules, completeness and logic by a structured answer of a model.

Three heads as in the paper, all of which must hold. A verdict of the model counts only where both of its quotes stand
in the seed. The released code has no pre-filter, so profile `simia` skips it unless it is switched on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field

from backends.llm.base import ContextLengthError, LanguageModel, Message
from backends.llm.meter import UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import build_response_schema, request_structured
from core.quotes import is_quoted_from
from simulators.conversation import DialogueTurn, TurnRole
from simulators.domains.pack import DomainPack
from simulators.post_processing.further_checks import NEXT_ROLES
from simulators.prompting import PROMPT_DIR
from simulators.seeds.seed import Seed

PROMPT = "seed-1"
_PROMPTS = PromptTemplates(PROMPT_DIR)


class SeedReason(StrEnum):
    """Why a seed is not used."""

    MALFORMED = "seed-malformed"
    INCOMPLETE = "seed-incomplete"
    ILLOGICAL = "seed-illogical"
    UNJUDGED = "seed-unjudged"
    """The model gave no valid verdict. The seed is named, so that a person can look at it."""


class SeedHead(BaseModel):
    """Whether one thing holds of the conversation, why, and the words of one line that show it."""

    holds: bool
    because: str = Field(min_length=1, max_length=1000)
    quote: str = Field(max_length=2000)


class SeedOpinion(BaseModel):
    """A verdict on a conversation."""

    completeness: SeedHead
    logic: SeedHead


@dataclass(frozen=True, kw_only=True)
class SeedVerdict:
    """Verdict that the pre-filter decided. `reason` is None for a seed that is used."""

    seed: Seed
    reason: SeedReason | None = None
    detail: str = ""
    opinion: dict[str, Any] | None = None
    keys: tuple[str, ...] = ()
    """Answers in the ledger that it is from."""

    def to_json(self) -> dict[str, Any]:
        """Return the verdict with the seed's provenance."""
        return {
            **self.seed.describe(),
            "used": self.reason is None,
            "reason": self.reason.value if self.reason else None,
            "detail": self.detail,
            "opinion": self.opinion,
            "answers": list(self.keys),
        }


def judge_by_rules(seed: Seed) -> SeedVerdict:
    """Return the verdict of the rules: roles take turns, calls are JSON, the agent ends it."""
    problem = next((violation for rule in FORMAT_RULES if (violation := rule(seed))), "")
    return SeedVerdict(seed=seed, reason=SeedReason.MALFORMED if problem else None, detail=problem)


def judge_by_model(
    seed: Seed, pack: DomainPack, model: LanguageModel, meter: UsageMeter, keys: list[str]
) -> SeedVerdict:
    """Return the verdict of the rules, and where they find nothing, that of the model.

    Args:
        seed: seed to judge.
        pack: domain of the seed; the seed's own system text goes before the policy of the pack.
        model: model that judges.
        meter: meter that counts usage.
        keys: keys of the answers that `model` returns, for the record.

    Raises:
        Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
    """
    by_rules = judge_by_rules(seed)
    if by_rules.reason is not None:
        return by_rules
    if seed.is_solved is False:
        return SeedVerdict(seed=seed, reason=SeedReason.INCOMPLETE, detail="its source records that it was not solved")
    try:
        answer = request_structured(
            model,
            _render_prompt(seed, pack),
            SeedOpinion,
            meter=meter,
            check=lambda opinion: _check_quotes(opinion, seed),
        )
    except ContextLengthError as error:
        return SeedVerdict(seed=seed, reason=SeedReason.UNJUDGED, detail=str(error))
    if answer.value is None:
        return SeedVerdict(seed=seed, reason=SeedReason.UNJUDGED, detail=answer.problem, keys=tuple(keys))
    opinion = answer.value
    heads = ((opinion.completeness, SeedReason.INCOMPLETE), (opinion.logic, SeedReason.ILLOGICAL))
    failing = next(((head, reason) for head, reason in heads if not head.holds), None)
    return SeedVerdict(
        seed=seed,
        reason=failing[1] if failing else None,
        detail=failing[0].because if failing else "",
        opinion=opinion.model_dump(),
        keys=tuple(keys),
    )


def _render_prompt(seed: Seed, pack: DomainPack) -> tuple[Message, ...]:
    schema = json.dumps(build_response_schema(SeedOpinion).schema)
    policy = seed.conversation.system or pack.policy
    return _PROMPTS.render_conversation(PROMPT, schema=schema, policy=policy, conversation=seed.text)


def _check_quotes(opinion: SeedOpinion, seed: Seed) -> str:
    """Return the problem with the quotes of an opinion, empty where they stand in the seed."""
    for name, head in (("completeness", opinion.completeness), ("logic", opinion.logic)):
        if not is_quoted_from(head.quote, seed.text):
            return f"the quote of {name} does not stand in the conversation"
    return ""


# ------------------------------------------------------------------------------------------------------- rules


def find_unread_call(seed: Seed) -> str:
    """Return which call turn is not the JSON of a call, empty where each is."""
    for number, turn in enumerate(seed.conversation.body, 1):
        if turn.role is TurnRole.FUNCTION_CALL and not turn.calls:
            return f"turn {number} is no call: {turn.text[:60]!r}"
    return ""


def find_empty_turn(seed: Seed) -> str:
    """Return which turn is empty, empty where none is."""
    for number, turn in enumerate(seed.conversation.body, 1):
        if not turn.text.strip() and not turn.calls:
            return f"turn {number} ({turn.role.value}) is empty"
    return ""


def find_wrong_turn(seed: Seed) -> str:
    """Return the problem with the order of roles, empty where nothing is.

    Results of parallel calls, and text of the agent before its call, may be turns of their own here.
    """
    body = _merge_neighbours(seed.conversation.body)
    if not body:
        return "there is no turn but the system's"
    before: TurnRole | None = None
    for number, turn in enumerate(body, 1):
        allowed = (*NEXT_ROLES.get(before, ()), *((TurnRole.FUNCTION_CALL,) if before is TurnRole.ASSISTANT else ()))
        if turn.role not in allowed:
            return f"turn {number} is {turn.role.value} after {before.value if before else 'nothing'}"
        before = turn.role
    if not any(turn.is_agent for turn in body):
        return "the agent has no turn"
    return ""


def _merge_neighbours(turns: tuple[DialogueTurn, ...]) -> list[DialogueTurn]:
    merged: list[DialogueTurn] = []
    for turn in turns:
        if merged and turn.role is TurnRole.OBSERVATION and merged[-1].role is TurnRole.OBSERVATION:
            continue
        merged.append(turn)
    return merged


FORMAT_RULES: tuple[Callable[[Seed], str], ...] = (find_empty_turn, find_unread_call, find_wrong_turn)
"""Each returns the problem with a seed, empty where nothing is; the first that finds something decides."""
