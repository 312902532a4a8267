"""Votes of judges on a finding that matches no known defect: whether it is true of the code under review.

Each vote quotes the code and states the behaviour that the quote implies. An invalid quote is reported to the model
once; after a second one the vote is void. Answers are cached by prompt, so the same finding gets the same votes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError
from backends.llm.structured import build_response_schema
from core.quotes import is_quoted_from
from evaluation.scoring.review_bench import VOTES, FindingVote, ReviewMaterial
from guest.scoring.findings import ReviewFinding
from verifiers.judge.client import JudgeClient
from verifiers.judge.prompting import render_conversation
from verifiers.judge.truncation import divide_budget, truncate_patch, truncate_text

PROMPT = "finding-1"
"""Name and version of the prompt, see `verifiers.judge.prompting`."""
CONTEXT_LINES = 60
"""Number of lines before and after the finding in the excerpt."""
VOID = "void"


class FindingAnswer(BaseModel):
    """Whether a finding is true of the code."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False}
    )

    behaviour: str
    """What the code does at this place, in one or two sentences."""
    quote: str
    """The line of the code or diff that decides, copied; empty only for `unclear`."""
    verdict: Literal["valid", "invalid", "unclear"]


def name_judge(client: JudgeClient) -> str:
    """Return the name of the models that vote, such as `M` or `M+N`."""
    return "+".join(_list_models(client))


def _list_models(client: JudgeClient) -> tuple[str, ...]:
    return tuple(client.judge.models) or (client.model.name,)


@dataclass(frozen=True, kw_only=True)
class FindingJudge:
    """Puts findings of a review to judges.

    Attributes:
        client: models, budget and cached answers.
        material: texts under review.
        instructions: the task's text, as the reviewer got it.
    """

    client: JudgeClient
    material: ReviewMaterial
    instructions: str

    def collect_votes(self, finding: ReviewFinding) -> tuple[FindingVote, ...]:
        """Return `VOTES` votes on a finding whose file exists, of each judging model in turn.

        Raises:
            Transient: the endpoint failed.
            InputError: the endpoint rejects key, model or request.
        """
        names = _list_models(self.client)
        return tuple(
            self._collect_vote(finding, names[place % len(names)], 1 + place // len(names)) for place in range(VOTES)
        )

    def _collect_vote(self, finding: ReviewFinding, model: str, sample: int) -> FindingVote:
        try:
            answer = self.client.query(
                lambda room: self._build_question(finding, room),
                FindingAnswer,
                name=model,
                sample=sample,
                check=lambda value: self._find_invalid_quote(value, finding),
            )
        except BudgetExceededError as error:
            return FindingVote(VOID, problem=f"the budget is exceeded: {error}")
        except ContextLengthError as error:
            return FindingVote(VOID, problem=f"too long for the model: {error}")
        if answer.value is None:
            return FindingVote(VOID, problem=answer.problem)
        return FindingVote(answer.value.verdict, answer.value.quote, answer.value.behaviour)

    def _build_question(self, finding: ReviewFinding, room: int) -> tuple[Message, ...]:
        rows = self.material.read(finding.path).split("\n")
        first = max(finding.first_line - CONTEXT_LINES, 1)
        excerpt = "\n".join(rows[first - 1 : finding.last_line + CONTEXT_LINES])
        texts = (self.instructions, self.material.diff, excerpt, finding.claim)
        shares = divide_budget([len(text) for text in texts], room)
        return render_conversation(
            PROMPT,
            schema=json.dumps(build_response_schema(FindingAnswer).schema),
            instructions=truncate_text(self.instructions, shares[0]),
            diff=truncate_patch(self.material.diff, shares[1]),
            path=finding.path,
            first=first,
            excerpt=truncate_text(excerpt, shares[2]),
            claim=truncate_text(finding.claim, shares[3]),
            lines=f"{finding.first_line}-{finding.last_line}",
        )

    def _find_invalid_quote(self, answer: FindingAnswer, finding: ReviewFinding) -> str:
        """Describe a quote that is missing or does not occur; empty if there is none."""
        if not answer.behaviour.strip():
            return "behaviour: it is empty"
        if not answer.quote.strip():
            return "" if answer.verdict == "unclear" else f"quote: it is required for `{answer.verdict}`"
        added = "\n".join(line[1:] for line in self.material.diff.splitlines())
        if not is_quoted_from(answer.quote, self.material.read(finding.path), self.material.diff, added):
            return f"quote: {answer.quote[:80]!r} occurs neither in the code nor in the diff"
        return ""
