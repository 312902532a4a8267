"""Model requests for a case: model, settings, budget and cached answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from backends.llm.answers import AnswerCache
from backends.llm.base import ContextLengthError, LanguageModel, Message
from backends.llm.meter import TokenBudget, UsageMeter
from backends.llm.structured import StructuredAnswer, request_structured
from core.config import Settings
from core.settings.models import JudgeSettings, LlmSettings
from taskdb.artifacts import Artifacts
from verifiers.judge.truncation import MIN_CHARS, compute_char_budget

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class JudgeClient:
    """All requests for a case, under a budget of tokens, money and time."""

    model: LanguageModel
    llm: LlmSettings
    judge: JudgeSettings
    artifacts: Artifacts
    answers: AnswerCache
    meter: UsageMeter
    deadline: float
    """Monotonic time in seconds after which no request is sent."""

    @classmethod
    def from_settings(cls, model: LanguageModel, settings: Settings, artifacts: Artifacts) -> JudgeClient:
        """Start a budget with the limits of the settings."""
        return cls(
            model=model,
            llm=settings.llm,
            judge=settings.judge,
            artifacts=artifacts,
            answers=AnswerCache(settings.storage.store_dir / "answers"),
            meter=UsageMeter(TokenBudget.from_settings(settings.budget)),
            deadline=time.monotonic() + settings.budget.seconds,
        )

    def query(
        self,
        question: Callable[[int], Sequence[Message]],
        schema: type[T],
        *,
        name: str = "",
        sample: int = 1,
        check: Callable[[T], str] = lambda _: "",
    ) -> StructuredAnswer[T]:
        """Request a structured answer (`backends.llm.structured.request_structured`).

        Args:
            question: function that builds the conversation with texts cut to a number of characters, which is halved
                while the endpoint rejects the prompt as too long.
            schema: schema of the answer.
            name: name of another model at the same endpoint.
            sample: number of the answer among several to the same question.
            check: function that returns the problem with a valid answer, or an empty text.

        Raises:
            ContextLengthError: the endpoint rejects even the shortest prompt.
        """
        room = compute_char_budget(self.llm.context, self.llm.answer_tokens)
        model = self.model.get_model(name) if name else self.model
        while True:
            try:
                return request_structured(
                    model,
                    question(room),
                    schema,
                    meter=self.meter,
                    sample=sample,
                    check=check,
                    answers=self.answers,
                    deadline=self.deadline,
                )
            except ContextLengthError:
                room //= 2
                if room < MIN_CHARS:
                    raise

    def store_transcript(self, messages: Sequence[Message]) -> str:
        """Store a conversation; return its artifact hash."""
        return self.artifacts.put_text(
            json.dumps([{"role": message.role, "text": message.text} for message in messages], indent=1)
        )
