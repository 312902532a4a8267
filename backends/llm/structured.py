"""Structured answers: JSON that is validated against a pydantic model, and requested once more where it is invalid.

Malformed JSON is repaired if possible, except for an answer that was cut off at its limit, because half an answer is
another answer. Validation errors are sent back to the model once. The caller receives a valid value or the problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

from backends.llm.base import LanguageModel, Message, ModelReply, ResponseSchema
from backends.llm.response import FINISH_LENGTH

if TYPE_CHECKING:
    from backends.llm.answers import AnswerCache
    from backends.llm.meter import UsageMeter

T = TypeVar("T", bound=BaseModel)
MAX_REQUESTS = 2
"""Requests for an answer."""
NO_ANSWER = "[no answer]"
"""Replaces an empty answer, which some endpoints reject as a message."""
RETRY_MESSAGE = """\
That is not the answer that was asked for: {problem}
Answer again, with the one JSON object and nothing else."""
MAX_ANSWER_CHARS = 200_000
"""A longer answer is not parsed."""
MAX_REPORTED_ERRORS = 8
"""Validation errors that are sent back."""
_THINKING_BLOCK = re.compile(r"\A.*</think(ing)?>", re.DOTALL)
_FENCED_BLOCK = re.compile(r"```[ \t]*(?:json)?[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


class UnusableAnswerError(Exception):
    """An answer is not usable; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class StructuredAnswer(Generic[T]):
    """Result of a request. `value` is None when no answer was usable; `problem` is then the reason."""

    value: T | None
    problem: str
    messages: tuple[Message, ...]
    """The whole conversation, prompt first."""
    is_cached: bool
    """Whether the answer is from the cache, and the model was not called."""


def build_response_schema(answer_type: type[BaseModel]) -> ResponseSchema:
    """Return the schema of a pydantic model, whose docstrings are part of it."""
    return ResponseSchema(name=answer_type.__name__.lower(), schema=answer_type.model_json_schema())


def request_structured(
    model: LanguageModel,
    prompt: Sequence[Message],
    answer_type: type[T],
    *,
    meter: UsageMeter,
    sample: int = 1,
    check: Callable[[T], str] = lambda _: "",
    answers: AnswerCache | None = None,
    deadline: float | None = None,
) -> StructuredAnswer[T]:
    """Request an answer of the type `answer_type`.

    Args:
        model: model that answers.
        prompt: the conversation so far; it describes the answer, schema included.
        answer_type: type of the answer.
        meter: meter that counts usage and cost.
        sample: number of this answer among several to the same prompt, from 1.
        check: function that returns the problem with an answer of that type, or an empty text.
        answers: cache of valid answers.
        deadline: deadline as in `LanguageModel.complete`.

    Raises:
        Transient, ContextLengthError, BudgetExceededError, InputError, CancelledRunError: as `LanguageModel.complete`.
    """
    key = [model.name, str(sample), answer_type.__name__, *(f"{message.role}:{message.text}" for message in prompt)]
    if answers is not None and (known := _parse_cached(answers.get(key), answer_type, check)) is not None:
        value, text = known
        cached = (*prompt, Message(role="assistant", text=text))
        return StructuredAnswer(value=value, problem="", messages=cached, is_cached=True)
    conversation, problem = list(prompt), ""
    for attempt in range(1, MAX_REQUESTS + 1):
        reply = model.complete(
            conversation, meter=meter, deadline=deadline, response_schema=build_response_schema(answer_type)
        )
        conversation.append(Message(role="assistant", text=reply.text or NO_ANSWER))
        try:
            value = _parse_reply(reply, answer_type, check)
        except UnusableAnswerError as unusable:
            problem = str(unusable)
        else:
            if answers is not None:
                answers.put(key, reply.text)
            return StructuredAnswer(value=value, problem="", messages=tuple(conversation), is_cached=False)
        if attempt < MAX_REQUESTS:
            conversation.append(Message(role="user", text=RETRY_MESSAGE.format(problem=problem)))
    return StructuredAnswer(value=None, problem=problem, messages=tuple(conversation), is_cached=False)


def parse_answer(text: str, answer_type: type[T]) -> T:
    """Parse the answer in a text; malformed JSON is repaired if possible.

    Raises:
        UnusableAnswerError: there is none, or it is not valid.
    """
    data = find_json_object(text)
    if data is None:
        raise UnusableAnswerError("there is no JSON object in it")
    try:
        return answer_type.model_validate(data)
    except ValidationError as error:
        raise UnusableAnswerError(_describe_errors(error)) from error


def find_json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in an answer, repaired if possible; None where there is none."""
    return _find_object(_THINKING_BLOCK.sub("", text)) if len(text) <= MAX_ANSWER_CHARS else None


def _parse_cached(text: str | None, answer_type: type[T], check: Callable[[T], str]) -> tuple[T, str] | None:
    if text is None:
        return None
    try:
        value = parse_answer(text, answer_type)
    except UnusableAnswerError:
        return None
    return None if check(value) else (value, text)


def _parse_reply(reply: ModelReply, answer_type: type[T], check: Callable[[T], str]) -> T:
    if reply.finish_reason == FINISH_LENGTH:
        raise UnusableAnswerError("it was cut off at the limit of an answer: write less")
    value = parse_answer(reply.text, answer_type)
    if problem := check(value):
        raise UnusableAnswerError(problem)
    return value


def _find_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a text: all of it, a fenced block, or from its first to its last brace."""
    fenced = _FENCED_BLOCK.findall(text)
    start, end = text.find("{"), text.rfind("}")
    bare = text[start : end + 1] if 0 <= start < end else ""
    for candidate in (text, *fenced, bare):
        data = _load_or_none(candidate, json.loads)
        if isinstance(data, dict):
            return data
    for candidate in (*fenced, text[start:] if start >= 0 else ""):
        data = _load_or_none(candidate, json_repair.loads) if candidate else None
        if isinstance(data, dict) and data:
            return data
    return None


def _load_or_none(text: str, load: Callable[..., Any]) -> Any:
    """Return the parsed text; None when it cannot be parsed, or is nested too deeply."""
    try:
        return load(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _describe_errors(error: ValidationError) -> str:
    """Return the validation errors with their locations, without the model's values."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    descriptions = [
        f"{'.'.join(map(str, error['loc'])) or 'the object'}: {error['msg']}" for error in errors[:MAX_REPORTED_ERRORS]
    ]
    more = f" (and {len(errors) - MAX_REPORTED_ERRORS} more)" if len(errors) > MAX_REPORTED_ERRORS else ""
    return "; ".join(descriptions) + more
