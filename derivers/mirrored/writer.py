"""The conversation with the model about one change: its prompt, and the objections to the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backends.llm.answers import AnswerCache
from backends.llm.base import ContextLengthError, LanguageModel, Message
from backends.llm.meter import BudgetExceededError, TokenBudget, UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import build_response_schema, request_structured
from backends.services import Services
from derivers.mirrored.answer import MirrorAnswer
from derivers.mirrored.gates import AnswerProgress, MirrorObjection, Reason
from derivers.mirrored.matching import MirrorPlace
from languages.registry import get_language
from taskdb.records import BuildPlan

PROMPT = "mirror-1"
"""Name and version of the prompt."""
MIN_STATEMENT_CHARS, MAX_STATEMENT_CHARS = 120, 4000
"""Length of the text of a statement."""
MAX_SOURCE_CHARS, MAX_PATCH_CHARS, MAX_ISSUE_CHARS, MAX_EXAMPLE_CHARS = 24_000, 8000, 6000, 4000
"""Characters in the prompt: of all source files, of each patch, of the issue, and of a test file."""
MAX_LISTED_FILES = 40
SHRINKING = (1, 2, 4, 8)
"""Parts of these lengths that are tried, where the endpoint rejects the prompt as too long."""
_PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")


@dataclass(frozen=True, kw_only=True)
class ModelBudget:
    """Model with the budget for a task: tokens and cost, and the monotonic time after which no request is sent."""

    model: LanguageModel
    meter: UsageMeter
    answers: AnswerCache
    deadline: float

    @classmethod
    def start(cls, model: LanguageModel, services: Services) -> ModelBudget:
        """Return a budget that starts now."""
        budget = services.settings.budget
        return cls(
            model=model,
            meter=UsageMeter(TokenBudget.from_settings(budget)),
            answers=AnswerCache(services.settings.storage.store_dir / "answers"),
            deadline=time.monotonic() + budget.seconds,
        )


@dataclass(frozen=True, kw_only=True)
class ProjectView:
    """Parts of the base tree that the model is shown. `example`: path and content of a test file; both may be empty."""

    repo: str
    plan: BuildPlan
    sources: Mapping[str, bytes]
    test_files: Sequence[str]
    example: tuple[str, str]


@dataclass(kw_only=True)
class MirrorWriter:
    """Answers about one change, written again after each objection."""

    place: MirrorPlace
    project: ProjectView
    budget: ModelBudget
    transcript: tuple[Message, ...] = ()
    """The last conversation."""
    _retries: list[Message] = field(default_factory=list)

    def write(self) -> MirrorAnswer | MirrorObjection:
        """Return the next answer, or why there is none.

        Raises:
            Transient: the endpoint failed.
            InputError: the endpoint rejects key, model or request.
        """
        for divisor in SHRINKING:
            try:
                answer = request_structured(
                    self.budget.model,
                    (*self._build_question(divisor), *self._retries),
                    MirrorAnswer,
                    meter=self.budget.meter,
                    answers=self.budget.answers,
                    deadline=self.budget.deadline,
                )
            except ContextLengthError as error:
                problem = str(error)
                continue
            except BudgetExceededError as error:
                return self._reject(Reason.OUT_OF_BUDGET, str(error))
            self.transcript = answer.messages
            return answer.value or self._reject(Reason.NO_ANSWER, answer.problem)
        return self._reject(Reason.NO_ANSWER, problem)

    def object(self, objection: MirrorObjection) -> None:
        """Add an objection to the last answer to the conversation."""
        again = _PROMPTS.render_message(PROMPT, "again", reason=objection.reason, detail=objection.detail)
        self._retries += [self.transcript[-1], again]

    @staticmethod
    def _reject(reason: Reason, detail: str) -> MirrorObjection:
        return MirrorObjection(reason=reason, detail=detail, progress=AnswerProgress.ANSWERED, is_final=True)

    def _build_question(self, divisor: int) -> tuple[Message, ...]:
        model, project = self.place.model, self.project
        example_path, example = project.example
        return _PROMPTS.render_conversation(
            PROMPT,
            schema=json.dumps(build_response_schema(MirrorAnswer).schema),
            min_chars=MIN_STATEMENT_CHARS,
            max_chars=MAX_STATEMENT_CHARS,
            other_repo=model.candidate.repo,
            statement=model.candidate.problem_statement[: MAX_ISSUE_CHARS // divisor],
            gold_patch=model.gold_patch[: MAX_PATCH_CHARS // divisor],
            test_patch=model.test_patch[: MAX_PATCH_CHARS // divisor],
            repo=project.repo,
            language=get_language(project.plan.language).title,
            framework=project.plan.test.framework,
            command=" ".join(project.plan.test.argv),
            sources=self._excerpt_sources(MAX_SOURCE_CHARS // divisor),
            test_files=list(project.test_files)[:MAX_LISTED_FILES],
            example_path=example_path,
            example=example[: MAX_EXAMPLE_CHARS // divisor],
        )

    def _excerpt_sources(self, room: int) -> list[tuple[str, str]]:
        """Return path and text of the place's files as far as there is room, at least the beginning of the first."""
        shown: list[tuple[str, str]] = []
        for path in self.place.paths:
            text = self.project.sources[path].decode(errors="replace")
            if not shown:
                text = text if len(text) <= room else text[:room].rpartition("\n")[0]
            elif len(text) > room:
                continue
            shown.append((path, text))
            room -= len(text)
        return shown
