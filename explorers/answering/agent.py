"""The agent that answers a question: with the two tools, or without any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from backends.llm.meter import UsageMeter
from explorers.answering.checks import AnswerChecker, FinalAnswer
from explorers.corpora.corpus import CorpusReader
from explorers.model_requests import (
    PROMPTS,
    ExplorerModels,
    RequestFailedError,
    RequestKey,
    StructuredRequest,
    write_schema,
)
from explorers.walking.loop import LoopLimits, ToolLoop
from explorers.walking.tools import CorpusTools, ToolStep
from taskdb.records.questions import Question, SampleCount

SOLVE_PROMPT, CLOSED_PROMPT = "solve-1", "closed-1"


@dataclass(frozen=True, kw_only=True)
class AnswerSample:
    """An answer of a model. `is_right` is None without a verdict; `turns` are requests."""

    model: str
    number: int
    answer: FinalAnswer
    is_right: bool | None
    turns: int
    n_malformed: int = 0
    steps: list[ToolStep] = field(default_factory=list)

    def to_json(self, kind: str) -> dict[str, Any]:
        """Return the sample as a line of a log."""
        return {
            "kind": kind,
            "model": self.model,
            "sample": self.number,
            "answer": self.answer.model_dump(),
            "right": self.is_right,
            "turns": self.turns,
            "malformed": self.n_malformed,
            "steps": [step.to_json() for step in self.steps],
        }


@dataclass(frozen=True, kw_only=True)
class AnswerAgent:
    """Answers questions over a corpus. Threads may share it."""

    corpus: CorpusReader
    models: ExplorerModels
    max_turns: int

    def solve(self, question: Question, model: str, number: int, meter: UsageMeter) -> AnswerSample:
        """Return a sample with the two tools; an unusable answer becomes an empty text.

        Args:
            question: the question.
            model: name of the model.
            number: number of the sample, from 1.
            meter: meter that counts usage and cost.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        loop = ToolLoop(
            models=self.models,
            model=model,
            key=RequestKey(purpose="solve", subject=question.id, prompt=SOLVE_PROMPT, sample=number),
            tools=CorpusTools(pages=self.corpus),
            answer_type=FinalAnswer,
            limits=LoopLimits(turns=self.max_turns),
            temperature=self.models.temperature,
        )
        schema = write_schema(FinalAnswer)
        messages = PROMPTS.render_conversation(SOLVE_PROMPT, question=question.text, schema=schema, most=self.max_turns)
        result = loop.run(messages, meter)
        answer = result.value or FinalAnswer(answer="")
        return AnswerSample(
            model=model,
            number=number,
            answer=answer,
            is_right=self._check(answer, question, meter),
            turns=result.turns,
            n_malformed=result.n_malformed,
            steps=result.steps,
        )

    def answer_without_tools(self, question: Question, model: str, number: int, meter: UsageMeter) -> AnswerSample:
        """Return a sample without tools; arguments and errors as of `solve`."""
        request = StructuredRequest(
            key=RequestKey(purpose="closed", subject=question.id, prompt=CLOSED_PROMPT, sample=number),
            model=model,
            messages=PROMPTS.render_conversation(
                CLOSED_PROMPT, question=question.text, schema=write_schema(FinalAnswer)
            ),
            answer_type=FinalAnswer,
            temperature=self.models.temperature,
        )
        try:
            answer = self.models.request(request, meter)
        except RequestFailedError:
            answer = FinalAnswer(answer="")
        is_right = self._check(answer, question, meter)
        return AnswerSample(model=model, number=number, answer=answer, is_right=is_right, turns=1)

    def _check(self, answer: FinalAnswer, question: Question, meter: UsageMeter) -> bool | None:
        return AnswerChecker(models=self.models).check(answer.answer, question, meter)


def count_samples(samples: list[AnswerSample]) -> tuple[SampleCount, ...]:
    """Return the counts of samples by model, in the order of the models."""
    counts = []
    for model in dict.fromkeys(sample.model for sample in samples):
        judged = [sample for sample in samples if sample.model == model and sample.is_right is not None]
        right = [sample for sample in judged if sample.is_right]
        turns = tuple(sample.turns for sample in right)
        counts.append(SampleCount(model=model, attempts=len(judged), solved=len(right), turns=turns))
    return tuple(counts)
