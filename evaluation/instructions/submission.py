"""Submission to a task of instructions: the patch, and the answers of the model that the conversation consists of."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InputError
from core.validation import describe_invalid
from evaluation.instructions.actions import ModelAnswer

NO_LOG = "no-log"
"""Why a submission without the answers of its rollout has no value: nothing can be known of what was done."""


class SubmittedAnswer(BaseModel):
    """An answer of the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exchange: int
    """Number of the recorded exchange."""
    turn: int = 1
    """Turn of the user that it belongs to, from 1."""
    message: dict[str, Any]
    """Message of the assistant, in the form of OpenAI's chat completions."""


class BrokenInstruction(BaseModel):
    """An instruction whose check failed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Name of its constraint."""
    text: str
    """Its wording."""
    quote: str
    """A line that shows it; empty where something is missing."""


class FeedbackTurn(BaseModel):
    """Turn of the user that named broken instructions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turn: int
    constraints: tuple[str, ...]
    """Names of the constraints."""


class InstructionSubmission(BaseModel):
    """A patch with the conversation that led to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    patch: str = ""
    """Patch as text."""
    patch_base64: str = ""
    """Patch in base64, where it is not UTF-8."""
    answers: tuple[SubmittedAnswer, ...]
    not_delivered: tuple[str, ...] = Field(default=())
    """Names of the constraints whose wording was in no request."""
    feedback: FeedbackTurn | None = None
    """Null where no broken instructions were named."""

    @property
    def patch_bytes(self) -> bytes:
        """The patch as it was collected."""
        return base64.b64decode(self.patch_base64) if self.patch_base64 else self.patch.encode()

    def list_answers(self) -> list[ModelAnswer]:
        """Return the answers in the form that actions are read from."""
        return [
            ModelAnswer(exchange=answer.exchange, turn=answer.turn, message=answer.message) for answer in self.answers
        ]


def write_submission(
    patch: bytes,
    answers: Sequence[ModelAnswer],
    not_delivered: Sequence[str] = (),
    feedback: FeedbackTurn | None = None,
) -> bytes:
    """Return a submission as JSON; equal submissions give equal bytes."""
    try:
        encoded = {"patch": patch.decode()}
    except UnicodeDecodeError:
        encoded = {"patch_base64": base64.b64encode(patch).decode()}
    fields = {
        **encoded,
        "answers": [
            {"exchange": answer.exchange, "turn": answer.turn, "message": dict(answer.message)} for answer in answers
        ],
        "not_delivered": list(not_delivered),
        **({"feedback": feedback.model_dump(mode="json")} if feedback else {}),
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def read_submission(data: bytes) -> InstructionSubmission:
    """Return the submission of JSON.

    Raises:
        InputError: it is another document, such as a plain patch.
    """
    try:
        return InstructionSubmission.model_validate(json.loads(data))
    except ValidationError as error:
        raise InputError(f"the submission: {describe_invalid(error.errors())}", advice=_ADVICE) from error
    except ValueError as error:
        raise InputError("the submission is no JSON of a patch and a conversation", advice=_ADVICE) from error


_ADVICE = "it is an object with `patch` and `answers`; docs/guide/derive/instructions.md has an example"


def extract_patch(submission: bytes) -> bytes:
    """Return the patch of a submission that may have a conversation; another submission is itself its patch."""
    if not submission.startswith(b'{"answers":'):
        return submission
    try:
        return read_submission(submission).patch_bytes
    except InputError:
        return submission
