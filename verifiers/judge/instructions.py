"""Judged items: instructions that no program can decide are decided by a model, with a quote for each vote.

A vote whose quote does not occur in the answer that it names is reported to the model once; after a second one it does
not count. Without a majority of valid votes an item is void, and never counts as broken. Answers are cached by prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError
from backends.llm.structured import build_response_schema
from backends.services import Services
from core.quotes import is_quoted_from
from evaluation.instructions.actions import ActionKind, AgentAction, list_action_texts
from evaluation.instructions.evidence import CheckState, CheckVerdict, RolloutEvidence
from taskdb.records.instructions import BoundConstraint
from verifiers.judge.client import JudgeClient
from verifiers.judge.prompting import render_conversation
from verifiers.judge.truncation import truncate_text

PROMPT, CHECKLIST_PROMPT = "instruction-1", "checklist-1"
"""Names and versions of the prompts, without and with messages of the user, see `verifiers.judge.prompting`."""
N_VOTES = 3
MAX_CALL_CHARS = 2_000
"""Characters of the arguments of a call that the model reads."""
MAX_MESSAGE_CHARS = 8_000
"""Characters of a message of the user that it reads."""


class ItemVote(BaseModel):
    """Whether an instruction was followed."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )

    why: str
    """One sentence."""
    exchange: int
    """Number of the answer that the quote is from."""
    quote: str
    """Words of that answer, copied."""
    followed: Literal["yes", "no"]


def make_instruction_judge(services: Services, messages: Sequence[str] = ()) -> InstructionJudge | None:
    """Return the judge of the services' model; None without a model. `messages`: as of `InstructionJudge`."""
    if services.model is None:
        return None
    client = JudgeClient.from_settings(services.model, services.settings, services.artifacts)
    return InstructionJudge(client, messages)


@dataclass(frozen=True)
class InstructionJudge:
    """Decides the judged items of rollouts."""

    client: JudgeClient
    messages: Sequence[str] = ()
    """Messages of the user that the model is shown; none where the question is enough."""

    def collect_votes(self, constraint: BoundConstraint, evidence: RolloutEvidence) -> list[ItemVote]:
        """Return the valid votes on an item, at most N_VOTES.

        Raises:
            Transient: the endpoint failed.
            InputError: the endpoint rejects key, model or request.
        """
        texts = gather_texts(evidence.actions)
        votes = []
        for sample in range(1, N_VOTES + 1):
            try:
                answer = self.client.query(
                    lambda room: self._build_question(constraint, texts, room),
                    ItemVote,
                    sample=sample,
                    check=lambda vote: _find_invalid_quote(vote, texts),
                )
            except (BudgetExceededError, ContextLengthError):
                break
            if answer.value is not None:
                votes.append(answer.value)
        return votes

    def decide(self, constraint: BoundConstraint, evidence: RolloutEvidence) -> CheckVerdict | None:
        """Return the verdict of a majority of all votes; None where there is none."""
        if not evidence.answers:
            return CheckVerdict(state=CheckState.FAILED, quote="there is no answer")
        votes = self.collect_votes(constraint, evidence)
        for followed, state in (("yes", CheckState.PASSED), ("no", CheckState.FAILED)):
            own = [vote for vote in votes if vote.followed == followed]
            if 2 * len(own) > N_VOTES:
                return CheckVerdict(state=state, exchange=own[0].exchange, quote=own[0].quote[:200])
        return None

    def _build_question(self, constraint: BoundConstraint, texts: dict[int, str], room: int) -> tuple[Message, ...]:
        conversation = "\n\n".join(f"--- answer {exchange}\n{text}" for exchange, text in texts.items())
        values = {
            "schema": json.dumps(build_response_schema(ItemVote).schema),
            "instruction": constraint.text,
            "question": str(constraint.arguments["question"]),
            "conversation": truncate_text(conversation, room),
        }
        if not self.messages:
            return render_conversation(PROMPT, **values)
        messages = [truncate_text(message, MAX_MESSAGE_CHARS) for message in self.messages]
        return render_conversation(CHECKLIST_PROMPT, messages=messages, **values)


def gather_texts(actions: Sequence[AgentAction]) -> dict[int, str]:
    """Return number of an exchange -> text of its answer with its calls, those of thoughts left out."""
    parts: dict[int, list[str]] = {}
    calls = set[tuple[int, int]]()
    for action in actions:
        if action.kind is ActionKind.THINK:
            continue
        key = (action.exchange, action.call)
        if action.call >= 0 and key in calls:
            continue  # another action of the same call
        calls.add(key)
        text = "\n".join(list_action_texts(action))
        shown = f"[{action.tool}] {text[:MAX_CALL_CHARS]}" if action.call >= 0 else text
        parts.setdefault(action.exchange, []).append(shown)
    return {exchange: "\n".join(texts) for exchange, texts in parts.items()}


def _find_invalid_quote(vote: ItemVote, texts: dict[int, str]) -> str:
    """Return why a vote does not count: it names no answer, or its quote is not in it; empty where it counts."""
    if vote.exchange not in texts:
        return f"exchange: there is no answer {vote.exchange}"
    if not vote.quote.strip():
        return "quote: it is empty"
    return (
        "" if is_quoted_from(vote.quote, texts[vote.exchange]) else f"quote: {vote.quote[:80]!r} does not occur there"
    )
