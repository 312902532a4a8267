"""Answers that are data: asked for with a schema, read with suspicion, asked for once more, then refused.

An answer that is no JSON is repaired where that is possible; one that was cut at its limit is not, because half an
answer is another answer. What does not fit the schema is told back once. There is no third time and no default: who
asks gets what was asked for, or the reason why not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import json_repair
from pydantic import BaseModel, ValidationError

from backends.llm.answers import LENGTH
from backends.llm.base import Message, Model, Reply, Shape

if TYPE_CHECKING:
    from backends.llm.meter import Meter
    from taskdb.answers import Answers

T = TypeVar("T", bound=BaseModel)
ASKED = 2
"""How often one answer is asked for."""
NO_ANSWER = "[no answer]"
"""Stands for an empty answer, which some endpoints do not take back."""
AGAIN = """\
That is not the answer that was asked for: {problem}
Answer again, with the one JSON object and nothing else."""
LONGEST = 200_000
"""Characters of an answer that are read; more is no answer to anything."""
TOLD = 8
"""Faults of an answer that are told back."""
_THOUGHT = re.compile(r"\A.*</think(ing)?>", re.DOTALL)
_FENCED = re.compile(r"```[ \t]*(?:json)?[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


class UnusableError(Exception):
    """An answer is not what was asked for; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Answered(Generic[T]):
    """What came of a question. `value` is None when no answer could be used; `problem` then says why."""

    value: T | None
    problem: str
    talk: tuple[Message, ...]
    """All that was said, the question first."""
    kept: bool
    """Whether the answer is from an earlier time: nobody was asked."""


def shape_of(wanted: type[BaseModel]) -> Shape:
    """What an endpoint is told: the schema of a pydantic model, whose docstrings are part of it."""
    return Shape(name=wanted.__name__.lower(), schema=wanted.model_json_schema())


def structured(
    model: Model,
    question: Sequence[Message],
    wanted: type[T],
    *,
    meter: Meter,
    sample: int = 1,
    check: Callable[[T], str] = lambda _: "",
    answers: Answers | None = None,
    deadline: float | None = None,
) -> Answered[T]:
    """Ask for an answer of the form `wanted`.

    Args:
        model: who is asked.
        question: the conversation so far; it says what is wanted, schema included.
        wanted: the form of the answer.
        meter: counts what it costs.
        sample: which of several answers to the same question this is, from 1.
        check: what is wrong with an answer that fits the form, or nothing.
        answers: where good answers are kept; one that is there is not asked for.
        deadline: as in `Model.complete`.

    Raises:
        Transient, ContextFullError, BudgetSpentError, InputError, Stopped: as `Model.complete`.
    """
    key = [model.name, str(sample), wanted.__name__, *(f"{one.role}:{one.text}" for one in question)]
    if answers is not None and (known := _known(answers.get(key), wanted, check)) is not None:
        value, text = known
        talk = (*question, Message(role="assistant", text=text))
        return Answered(value=value, problem="", talk=talk, kept=True)
    talked, problem = list(question), ""
    for attempt in range(1, ASKED + 1):
        reply = model.complete(talked, meter=meter, deadline=deadline, shape=shape_of(wanted))
        talked.append(Message(role="assistant", text=reply.text or NO_ANSWER))
        try:
            value = _read_reply(reply, wanted, check)
        except UnusableError as unusable:
            problem = str(unusable)
        else:
            if answers is not None:
                answers.put(key, reply.text)
            return Answered(value=value, problem="", talk=tuple(talked), kept=False)
        if attempt < ASKED:
            talked.append(Message(role="user", text=AGAIN.format(problem=problem)))
    return Answered(value=None, problem=problem, talk=tuple(talked), kept=False)


def read(text: str, wanted: type[T]) -> T:
    """The answer in a text, repaired where that is possible.

    Raises:
        UnusableError: there is none, or it does not fit.
    """
    data = _object(_THOUGHT.sub("", text)) if len(text) <= LONGEST else None
    if data is None:
        raise UnusableError("there is no JSON object in it")
    try:
        return wanted.model_validate(data)
    except ValidationError as error:
        raise UnusableError(_in_words(error)) from error


def _known(text: str | None, wanted: type[T], check: Callable[[T], str]) -> tuple[T, str] | None:
    if text is None:
        return None
    try:
        value = read(text, wanted)
    except UnusableError:
        return None
    return None if check(value) else (value, text)


def _read_reply(reply: Reply, wanted: type[T], check: Callable[[T], str]) -> T:
    if reply.finish == LENGTH:
        raise UnusableError("it was cut off at the limit of an answer: write less")
    value = read(reply.text, wanted)
    if problem := check(value):
        raise UnusableError(problem)
    return value


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object of a text: the whole, what is fenced in it, or what is between its first and last brace."""
    fenced = _FENCED.findall(text)
    start, end = text.find("{"), text.rfind("}")
    bare = text[start : end + 1] if 0 <= start < end else ""
    for found in (text, *fenced, bare):
        data = _loaded(found, json.loads)
        if isinstance(data, dict):
            return data
    for found in (*fenced, text[start:] if start >= 0 else ""):
        data = _loaded(found, json_repair.loads) if found else None
        if isinstance(data, dict) and data:
            return data
    return None


def _loaded(text: str, load: Callable[..., Any]) -> Any:
    """What a reader of JSON makes of a text; None when it cannot, be it for a thousand braces."""
    try:
        return load(text, strict=False)
    except (ValueError, RecursionError):
        return None


def _in_words(error: ValidationError) -> str:
    """What does not fit, each with its place: what was written is the model's own and is not repeated."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"{'.'.join(map(str, fault['loc'])) or 'the object'}: {fault['msg']}" for fault in faults[:TOLD]]
    more = f" (and {len(faults) - TOLD} more)" if len(faults) > TOLD else ""
    return "; ".join(told) + more
