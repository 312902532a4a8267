"""Complete a statement with a model; a rejected addition is written again, with the objection, a few times."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError
from backends.llm.structured import build_response_schema
from taskdb.records.verdicts import Completion, QuotedClaim
from verifiers.judge.case import JudgeCase
from verifiers.judge.client import JudgeClient
from verifiers.judge.completion.checks import MAX_LENGTH, MIN_LENGTH, CompletionDraft, FindingSource, find_objection
from verifiers.judge.completion.interfaces import find_interfaces
from verifiers.judge.prompting import render_conversation, render_message
from verifiers.judge.truncation import truncate_case

PROMPT = "complete-2"
"""Name and version of the prompt, see `verifiers.judge.prompting`."""
MAX_ROUNDS = 3
"""Maximum number of attempts."""


class CompletionAnswer(BaseModel):
    """The addition to the statement."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )
    addition: str
    """The text that is appended to the statement, without any part of the statement itself."""


def complete(
    case: JudgeCase, client: JudgeClient, findings: FindingSource, missing: Sequence[QuotedClaim] = ()
) -> Completion | None:
    """Complete the statement of a case; return None if nothing is missing.

    Args:
        case: the statement, and what the tests require.
        client: model and budget.
        findings: function that returns what the rules find missing in a statement; an accepted addition leaves nothing.
        missing: what models reported as missing.

    Raises:
        Transient: the endpoint failed.
        InputError: the endpoint rejects key, model or request.
        Stopped: the user interrupted.
    """
    problems = findings(case.statement)
    if not problems and not missing:
        return None
    started, meter = time.monotonic(), client.meter
    tokens, cost = meter.tokens, meter.cost
    missing_items = [(finding.detail, finding.quote) for finding in problems] + [
        (claim.claim, claim.quote) for claim in missing
    ]
    writer = _CompletionWriter(case, client, findings, missing_items)
    addition = writer.write()
    return Completion(
        model=client.model.name,
        prompt=PROMPT,
        addition=addition,
        rejected=tuple(writer.rejections),
        tokens=meter.tokens - tokens,
        cost=meter.cost - cost,
        seconds=time.monotonic() - started,
        transcript=client.store_transcript(writer.transcript) if writer.transcript else None,
    )


class _CompletionWriter:
    """Writes one addition.

    Attributes:
        rejections: objections to the attempts so far.
        transcript: the last conversation.
    """

    def __init__(
        self, case: JudgeCase, client: JudgeClient, findings: FindingSource, missing_items: Sequence[tuple[str, str]]
    ) -> None:
        self.rejections: list[str] = []
        self.transcript: tuple[Message, ...] = ()
        self._case = case
        self._client = client
        self._findings = findings
        self._missing = missing_items
        self._interfaces = find_interfaces(case)
        self._retries: tuple[Message, ...] = ()

    def write(self) -> str:
        """Return the accepted addition; empty if there is none."""
        for _ in range(MAX_ROUNDS):
            try:
                answer = self._client.query(
                    lambda room: (*self._build_question(room), *self._retries), CompletionAnswer
                )
            except (BudgetExceededError, ContextLengthError) as error:
                self.rejections.append(f"no further attempt: {error}")
                return ""
            self.transcript = answer.messages
            if answer.value is None:
                self.rejections.append(f"no usable answer: {answer.problem}")
                return ""
            text = answer.value.addition.strip()
            draft = CompletionDraft(case=self._case, text=text, findings=self._findings, interfaces=self._interfaces)
            if not (objection := find_objection(draft)):
                return text
            self.rejections.append(objection)
            self._retries = (*self._retries, answer.messages[-1], render_message(PROMPT, "again", objection=objection))
        return ""

    def _build_question(self, room: int) -> tuple[Message, ...]:
        case = self._case
        texts = truncate_case(case, room)
        return render_conversation(
            PROMPT,
            repo=case.repo,
            schema=json.dumps(build_response_schema(CompletionAnswer).schema),
            statement=texts.statement,
            gold_patch=texts.gold_patch,
            test_patch=texts.test_patch,
            missing=self._missing,
            interfaces=[(interface.signature, interface.path) for interface in self._interfaces],
            least=MIN_LENGTH,
            most=MAX_LENGTH,
        )
