"""Calls of the simulator and the judge for episodes, each recorded in the ledger before its answer is used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from backends.llm.base import (
    ContextLengthError,
    LanguageModel,
    Message,
    ModelReply,
    ResponseSchema,
    estimate_tokens,
)
from backends.llm.ledger import CallIdentity, CallLedger, Pacer, RecordedModel
from backends.llm.meter import UsageMeter
from backends.llm.response import FINISH_LENGTH
from core.errors import CancelledRunError, InputError, Transient
from simulators.environment.episode import CallNote


class PlayerError(Exception):
    """No usable answer of simulator or judge; the text is the reason. The episode stays as it was."""

    def __init__(self, message: str, notes: Sequence[CallNote] = ()) -> None:
        super().__init__(message)
        self.notes = tuple(notes)


class OverlongError(PlayerError):
    """The conversation exceeds the context of simulator or judge."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A usable answer without its reasoning, and all calls that were made for it."""

    text: str
    notes: tuple[CallNote, ...]


@dataclass(frozen=True, kw_only=True)
class SimulatorCalls:
    """A model, with the ledger of its answers. Threads may share it."""

    model: LanguageModel
    ledger: CallLedger
    settings: Mapping[str, Any]
    """Values that determine its answers besides messages: temperature, limits, versions."""
    pacer: Pacer = field(default_factory=lambda: Pacer(0.0))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _locks: dict[tuple[object, ...], tuple[threading.Lock, list[None]]] = field(default_factory=dict)

    def request(
        self,
        messages: Sequence[Message],
        *,
        purpose: str,
        sample: str,
        episode: str,
        turn: int,
        attempts: range,
        check: Callable[[str], str],
        allow_cut: bool = False,
        schema: ResponseSchema | None = None,
    ) -> Answered:
        """Return the first usable answer of some attempts.

        Args:
            messages: the prompt.
            purpose: `step`, `judge` or `opening`.
            sample: id of the sample.
            episode: id of the episode, or the text else makes the call one of its own.
            turn: number of the agent's turn, from 0.
            attempts: numbers of the attempts, from 1.
            check: function that returns why an answer cannot be used, empty where it can.
            allow_cut: whether an answer that was cut off at its limit can be used.
            schema: schema of the answer, for endpoints that enforce it.

        Raises:
            PlayerError: no answer can be used, or the endpoint gave none.
            OverlongError: the prompt exceeds the context of the model.
            CancelledRunError: `stop` was called.
        """
        notes: list[CallNote] = []
        problem = ""
        if estimate_tokens(messages) > self.model.context_tokens:
            raise OverlongError(f"the prompt exceeds the context of {self.model.name}")
        for attempt in attempts:
            identity = CallIdentity(
                purpose=purpose,
                seed=sample,
                attempt=attempt,
                settings={**self.settings, "episode": episode, "turn": turn},
            )
            recorded = RecordedModel(self.model, self.ledger, identity, self.pacer)
            reply = self._complete(recorded, messages, schema, (purpose, sample, episode, turn, attempt), notes)
            text = cut_reasoning(reply.text)
            problem = check(text)
            if not problem and reply.finish_reason == FINISH_LENGTH and not allow_cut:
                problem = "the answer reached --llm-answer-tokens"
            notes.append(
                CallNote(
                    purpose=purpose,
                    turn=turn,
                    attempt=attempt,
                    key=recorded.keys[-1],
                    answer=reply.text,
                    used=not problem,
                )
            )
            if not problem:
                return Answered(text=text, notes=tuple(notes))
        raise PlayerError(f"no usable answer of {self.model.name} in {len(attempts)} requests: {problem}", notes)

    def stop(self) -> None:
        """Cancel all current and future calls."""
        self.pacer.stop()
        self.model.stop()

    def _complete(
        self,
        recorded: RecordedModel,
        messages: Sequence[Message],
        schema: ResponseSchema | None,
        key: tuple[object, ...],
        notes: Sequence[CallNote],
    ) -> ModelReply:
        try:
            with self._hold(key):  # an equal call of another thread, as of a group's first message, is made once
                return recorded.complete(messages, meter=UsageMeter(), response_schema=schema)
        except CancelledRunError:
            raise
        except ContextLengthError as error:
            raise OverlongError(str(error), notes) from error
        except (Transient, InputError) as error:
            raise PlayerError(error.format_line(), notes) from error

    @contextmanager
    def _hold(self, key: tuple[object, ...]) -> Iterator[None]:
        """Hold the lock of a call, which lasts as long as somebody waits for it."""
        with self._guard:
            lock, waiting = self._locks.setdefault(key, (threading.Lock(), []))
            waiting.append(None)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                waiting.pop()
                if not waiting:
                    self._locks.pop(key, None)


def cut_reasoning(text: str) -> str:
    """Return an answer without everything up to `</think>`."""
    before, mark, after = text.partition("</think>")
    return (after if mark else before).strip()
