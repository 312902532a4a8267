"""Requests to models: by role, recorded in the ledger, and made again with the problem where an answer is unusable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from backends.llm.base import ContextLengthError, LanguageModel, Message, ModelReply
from backends.llm.ledger import CallIdentity, CallLedger, Pacer, RecordedModel
from backends.llm.meter import UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.response import FINISH_LENGTH
from backends.llm.structured import NO_ANSWER, UnusableAnswerError, build_response_schema, parse_answer
from worlds.language import find_language_problem
from worlds.reasons import Reason

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")
AGAIN = """\
That answer cannot be used: {problem}
Answer again, in full and in the form that was asked for."""
_THINKING = re.compile(r"\A.*</think(ing)?>", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*```[ \t]*\w*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


class ModelRole(StrEnum):
    """Work that a model does here. Each role may have a model of its own."""

    WRITER = "writer"
    """Themes, programs, states, tasks, checks."""
    TESTER = "tester"
    CHECKER = "checker"
    SOLVER = "solver"


class RefusedAnswerError(UnusableAnswerError):
    """An answer breaks a rule, with the reason under which the record is rejected if no answer keeps it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class ModelQuestion(Generic[T]):
    """A question to a model.

    `purpose` and `version` (folder of the prompt) name it, `subject` is the id of the subject that it is about,
    `sample` the number of the answer among several to the same question, from 1. `read` turns the text of an answer
    into a value, or raises UnusableAnswerError. `answer_type` is that of structured answers, for endpoints that enforce
    schemas.
    """

    role: ModelRole
    purpose: str
    version: str
    subject: str
    messages: Sequence[Message]
    read: Callable[[str], T]
    attempts: int
    temperature: float | None = None
    sample: int = 1
    answer_type: type[BaseModel] | None = None


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """Value of the first usable answer; without no answer, why the last was not.

    `keys`: of the answers in the ledger.
    """

    value: T | None
    reason: Reason | None = None
    detail: str = ""
    keys: tuple[str, ...] = ()


class StepFailedError(Exception):
    """No answer to a question was usable: the record is rejected. `reason` is why, the text the detail."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class RoleModels:
    """The models of a run, with the ledger of their answers. Threads may share it.

    `open_model` returns the model of a name at a temperature, None for the endpoint's own; `names` has the model of
    each role. `draw` is part of each call's identity: another draw gives other answers to the same questions.
    """

    open_model: Callable[[str, float | None], LanguageModel]
    names: Mapping[ModelRole, str]
    ledger: CallLedger
    pacer: Pacer
    answer_tokens: int
    draw: int

    def open(self, role: ModelRole, identity: CallIdentity, temperature: float | None) -> RecordedModel:
        """Return the recorded model of a role for the calls of an identity."""
        return RecordedModel(self.open_model(self.names[role], temperature), self.ledger, identity, self.pacer)

    def make_identity(
        self,
        purpose: str,
        subject: str,
        version: str,
        *,
        temperature: float | None = None,
        sample: int = 1,
        attempt: int = 1,
    ) -> CallIdentity:
        """Return the identity of a call."""
        settings = {
            "temperature": temperature,
            "answer_tokens": self.answer_tokens,
            "prompt": version,
            "draw": self.draw,
        }
        return CallIdentity(purpose=purpose, seed=subject, sample=sample, attempt=attempt, settings=settings)

    def ask(self, question: ModelQuestion[T], meter: UsageMeter) -> Answer[T]:
        """Return the value of the first usable answer; each problem is sent back until the attempts are used up.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        schema = build_response_schema(question.answer_type) if question.answer_type else None
        conversation, reason, problem = list(question.messages), Reason.UNUSABLE_ANSWER, ""
        keys: list[str] = []
        for attempt in range(1, question.attempts + 1):
            model = self._open_attempt(question, attempt)
            try:
                reply = model.complete(conversation, meter=meter, response_schema=schema)
            except ContextLengthError as error:
                # A further attempt would be no shorter.
                return Answer(value=None, reason=Reason.TOO_LONG, detail=str(error), keys=tuple(keys))
            keys += model.keys
            try:
                value = question.read(_check_reply(reply))
            except UnusableAnswerError as error:
                reason = error.reason if isinstance(error, RefusedAnswerError) else Reason.UNUSABLE_ANSWER
                problem = str(error)
            else:
                return Answer(value=value, keys=tuple(keys))
            # Only the last answer is sent back, so that the prompt does not grow with every attempt.
            conversation = [
                *question.messages,
                Message(role="assistant", text=reply.text or NO_ANSWER),
                Message(role="user", text=AGAIN.format(problem=problem)),
            ]
        detail = f"{question.purpose}: {problem}"[:500]
        return Answer(value=None, reason=reason, detail=detail, keys=tuple(keys))

    def _open_attempt(self, question: ModelQuestion[T], attempt: int) -> RecordedModel:
        identity = self.make_identity(
            question.purpose,
            question.subject,
            question.version,
            temperature=question.temperature,
            sample=question.sample,
            attempt=attempt,
        )
        return self.open(question.role, identity, question.temperature)

    def require(self, question: ModelQuestion[T], meter: UsageMeter) -> T:
        """Return the value of the first usable answer.

        Raises:
            StepFailedError: none was.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        answer = self.ask(question, meter)
        if answer.value is None:
            raise StepFailedError(answer.reason or Reason.UNUSABLE_ANSWER, answer.detail)
        return answer.value


def make_reader(answer_type: type[M], check: Callable[[M], str] = lambda _: "") -> Callable[[str], M]:
    """Return a reader of structured answers in English.

    Args:
        answer_type: type of the answer.
        check: function that returns the problem with an answer of that type, or an empty text.
    """

    def read(text: str) -> M:
        value = parse_answer(text, answer_type)
        if problem := find_language_problem(" ".join(iterate_prose(value.model_dump()))):
            raise RefusedAnswerError(Reason.NOT_ENGLISH, f"{problem}; answer in English")
        if problem := check(value):
            raise UnusableAnswerError(problem)
        return value

    return read


def read_code(text: str) -> str:
    """Return the Python code of an answer: its fenced blocks, or all of it where there is none.

    Raises:
        UnusableAnswerError: it has an opening fence alone.
    """
    bare = _THINKING.sub("", text)
    blocks = _FENCE.findall(bare)
    if not blocks and "```" in bare:
        raise UnusableAnswerError("the block of code has no end: write it in full")
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n" if blocks else bare.strip() + "\n"


def iterate_prose(value: Any) -> list[str]:
    """Return the texts of a JSON value that are sentences rather than names and ids."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in iterate_prose(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in iterate_prose(item)]
    return [value] if isinstance(value, str) and " " in value.strip() else []


def write_json(value: object) -> str:
    """Return a value as JSON for a prompt."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def _check_reply(reply: ModelReply) -> str:
    """Return the text of a reply that is whole; raise RefusedAnswerError for another."""
    if reply.finish_reason == FINISH_LENGTH:
        raise RefusedAnswerError(Reason.TRUNCATED_ANSWER, "it was cut off at the limit of an answer: write less")
    if not reply.text.strip():
        raise RefusedAnswerError(Reason.EMPTY_ANSWER, "it is empty")
    return reply.text
