"""Requests to models: by role, recorded in the ledger, and made again with the problem where an answer is unusable."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from backends.llm.base import ContextLengthError, LanguageModel, Message, ModelReply
from backends.llm.ledger import CallIdentity, CallLedger, Pacer, RecordedModel
from backends.llm.meter import UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.response import FINISH_LENGTH
from backends.llm.structured import NO_ANSWER, UnusableAnswerError, build_response_schema, parse_answer
from explorers.reasons import Reason

M = TypeVar("M", bound=BaseModel)
PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")
AGAIN = """\
That answer cannot be used: {problem}
Answer again, in full and in the form that was asked for."""


class ExplorerRole(StrEnum):
    """Work that a model does here. Each role may have a model of its own."""

    WALKER = "walker"
    WRITER = "writer"
    """Questions and their evolution."""
    JUDGE = "judge"
    RIVAL = "rival"
    """Search for other answers."""


class RequestFailedError(Exception):
    """No answer to a request was usable: the record is rejected. `reason` is why, the text the detail."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class RequestKey:
    """Names of a request: `purpose`, id of its `subject`, `prompt` (folder of the template), number of the sample."""

    purpose: str
    subject: str
    prompt: str
    sample: int = 1


@dataclass(frozen=True, kw_only=True)
class StructuredRequest(Generic[M]):
    """A request for a JSON object. `check` returns the problem with an answer of the type, or an empty text."""

    key: RequestKey
    model: str
    messages: Sequence[Message]
    answer_type: type[M]
    check: Callable[[M], str] = lambda _: ""
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True)
class ExplorerModels:
    """The models of a run, with the ledger of their answers. Threads may share it.

    `open_model` returns the model of a name at a temperature, None for the endpoint's own; `names` has the model of
    each role, `solvers` those that answer questions. `draw` is part of each call's identity: another draw gives other
    answers to the same requests.
    """

    open_model: Callable[[str, float | None], LanguageModel]
    names: Mapping[ExplorerRole, str]
    solvers: tuple[str, ...]
    ledger: CallLedger
    pacer: Pacer
    attempts: int
    temperature: float | None
    answer_tokens: int
    draw: int

    def open(self, model: str, key: RequestKey, attempt: int = 1, temperature: float | None = None) -> RecordedModel:
        """Return the recorded model of a name for the calls of a request."""
        settings = {
            "temperature": temperature,
            "answer_tokens": self.answer_tokens,
            "prompt": key.prompt,
            "draw": self.draw,
        }
        identity = CallIdentity(
            purpose=key.purpose, seed=key.subject, sample=key.sample, attempt=attempt, settings=settings
        )
        return RecordedModel(self.open_model(model, temperature), self.ledger, identity, self.pacer)

    def request(self, request: StructuredRequest[M], meter: UsageMeter) -> M:
        """Return the first usable answer; each problem is sent back until the attempts are used up.

        Raises:
            RequestFailedError: none was usable.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        schema = build_response_schema(request.answer_type)
        conversation, problem = list(request.messages), ""
        for attempt in range(1, self.attempts + 1):
            model = self.open(request.model, request.key, attempt, request.temperature)
            try:
                reply = model.complete(conversation, meter=meter, response_schema=schema)
            except ContextLengthError as error:
                raise RequestFailedError(Reason.TOO_LONG, f"{request.key.purpose}: {error}") from error
            try:
                return read_answer(reply, request.answer_type, request.check)
            except UnusableAnswerError as error:
                problem = str(error)
            # Only the last answer is sent back, so that the prompt does not grow with every attempt.
            conversation = [*request.messages, *repeat_request(reply, problem)]
        raise RequestFailedError(Reason.UNUSABLE_ANSWER, f"{request.key.purpose}: {problem}"[:500])


def read_answer(reply: ModelReply, answer_type: type[M], check: Callable[[M], str] = lambda _: "") -> M:
    """Return the answer in a reply.

    Raises:
        UnusableAnswerError: it is cut off, of another form, or fails the check.
    """
    if reply.finish_reason == FINISH_LENGTH:
        raise UnusableAnswerError("it was cut off at the limit of an answer: write less")
    value = parse_answer(reply.text, answer_type)
    if problem := check(value):
        raise UnusableAnswerError(problem)
    return value


def repeat_request(reply: ModelReply, problem: str) -> tuple[Message, Message]:
    """Return an unusable reply and the message that demands another."""
    answer = Message(role="assistant", text=reply.text or NO_ANSWER)
    return answer, Message(role="user", text=AGAIN.format(problem=problem))


def write_json(value: object) -> str:
    """Return a value as JSON for a prompt."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def write_schema(answer_type: type[BaseModel]) -> str:
    """Return the JSON schema of an answer for a prompt."""
    return json.dumps(answer_type.model_json_schema(), ensure_ascii=False)
