"""Who is asked about one case, and what it may cost: model, settings, meter and answers kept from earlier times."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from backends.llm.base import ContextFullError, Message, Model
from backends.llm.meter import Budget, Meter
from backends.llm.structured import Answered, structured
from mergemill.config import Settings
from taskdb.answers import Answers
from taskdb.artifacts import Artifacts
from verifiers.judge.showing import LEAST, room_for

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """All questions about one case, under one budget of tokens, money and time."""

    model: Model
    settings: Settings
    artifacts: Artifacts
    answers: Answers
    meter: Meter
    deadline: float
    """Monotonic seconds after which nothing is asked any more."""

    @classmethod
    def begin(cls, model: Model, settings: Settings, artifacts: Artifacts) -> Asking:
        """The budgets of the settings, from now on."""
        return cls(
            model=model, settings=settings, artifacts=artifacts, answers=Answers(settings.store_dir / "answers"),
            meter=Meter(Budget.of(settings)), deadline=time.monotonic() + settings.budget_seconds,
        )  # fmt: skip

    def ask(
        self,
        question: Callable[[int], Sequence[Message]],
        wanted: type[T],
        *,
        name: str = "",
        sample: int = 1,
        check: Callable[[T], str] = lambda _: "",
    ) -> Answered[T]:
        """See `backends.llm.structured.structured`.

        Args:
            question: the question, its texts cut to so many characters; asked with half as many where the endpoint
                finds it too long.
            wanted: the form of the answer.
            name: of another model at the same place.
            sample: which of several answers to the same question.
            check: what is wrong with an answer that fits the form.
        """
        room = room_for(self.settings.llm_context, self.settings.llm_answer_tokens)
        model = self.model.other(name) if name else self.model
        while True:
            try:
                return structured(
                    model, question(room), wanted, meter=self.meter, sample=sample, check=check, answers=self.answers,
                    deadline=self.deadline,
                )  # fmt: skip
            except ContextFullError:
                room //= 2
                if room < LEAST:
                    raise

    def keep(self, talk: Sequence[Message]) -> str:
        """Artifact of what was asked and answered."""
        return self.artifacts.put_text(json.dumps([{"role": one.role, "text": one.text} for one in talk], indent=1))
