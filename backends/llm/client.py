"""The openai SDK, and the only file that imports it: chat completions at any address that speaks OpenAI's protocol.

Streams are read to the word that they are done; one that ends without it was cut and is asked for again. The SDK's own
retries are not used: they see neither cut streams nor budgets. What an endpoint does not know (tools, streams, schemas
of answers, names of parameters) it says once, and is not asked for again.
"""

from __future__ import annotations

import copy
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import openai
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backends.llm import faults, words
from backends.llm.answers import LENGTH, Answer
from backends.llm.base import ContextFullError, Message, Reply, Shape, Tool, estimate
from backends.llm.faults import Fault, FaultyError, Meaning
from backends.llm.meter import BudgetSpentError, Meter, Prices, Usage
from mergemill.config import Settings
from mergemill.errors import InputError, MachineError, Stopped

ATTEMPTS = 6
"""How often one question is asked before its faults are told."""
LONGEST_PAUSE = 120.0
"""Seconds between two attempts; an endpoint that asks for more is left for the next run."""
GLANCE = 0.2
"""Seconds after which one looks up from a silent endpoint, to see whether to stop."""
LOOK_SECONDS = 10.0
"""What `models` waits."""
NO_KEY = "none"
"""What is sent where no key is set: the SDK wants one, local servers none."""
DISPENSABLE = frozenset(
    {Meaning.NO_TOOLS, Meaning.NO_SHAPE, Meaning.NO_STREAM_OPTIONS, Meaning.NO_STREAM, Meaning.OTHER_LIMIT}
)
SHOWN = 300
"""Characters of an endpoint's own words that are passed on."""


class _LacksError(Exception):
    """The endpoint does not know something that can be done without."""

    def __init__(self, what: Meaning) -> None:
        super().__init__(what)
        self.what = what


class _Fetch(Protocol):
    """Reads an answer until it is done or `gone()`: nobody waits for it any more."""

    def __call__(self, answer: Answer, gone: Callable[[], bool]) -> None: ...


class ChatModel:
    """See `backends.llm.base.Model`. Thread-safe.

    Args:
        settings: address, model, key, limits and prices.
        first_pause: seconds before the first repetition; later ones wait longer.

    Raises:
        MachineError: the CA bundle cannot be read.
    """

    def __init__(self, settings: Settings, *, first_pause: float = 1.0) -> None:
        key = settings.found_llm_key()
        self.name = settings.model or ""
        self.context_tokens = settings.llm_context
        self._url = settings.llm
        self._secret = key.get_secret_value() if key else ""
        self._timeout = settings.llm_timeout
        self._answer_tokens = settings.llm_answer_tokens
        self._prices = Prices.of(settings)
        self._first_pause = first_pause
        self._without: frozenset[Meaning] = frozenset()
        self._others: dict[str, ChatModel] = {self.name: self}
        self._stopping = threading.Event()
        self._client = openai.OpenAI(
            base_url=self._url, api_key=self._secret or NO_KEY, max_retries=0, timeout=self._timeout,
            http_client=openai.DefaultHttpxClient(verify=_trust(settings)),
        )  # fmt: skip

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        meter: Meter,
        deadline: float | None = None,
        shape: Shape | None = None,
    ) -> Reply:
        """See `backends.llm.base.Model`."""
        started = time.monotonic()
        until = float("inf") if deadline is None else deadline
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS), wait=self._wait, retry=retry_if_exception(_passes),
            sleep=lambda seconds: self._pause(seconds, until), reraise=True,
        )  # fmt: skip
        reply: Reply = retrying(self._attempt, messages, tools, shape, meter, until)
        return _timed(reply, time.monotonic() - started)

    def models(self) -> list[str]:
        """The models that the endpoint names; empty where it answers but does not tell.

        Raises:
            Transient, InputError: as `complete`.
        """
        try:
            return sorted(str(model.id) for model in self._client.models.list(timeout=LOOK_SECONDS).data or ())
        except openai.APIStatusError as error:
            if error.status_code in {404, 405, 501}:
                return []
            raise self._meant(_fault(error), frozenset()) from error
        except openai.APIError as error:
            raise FaultyError(f"{self._url} does not answer: {self._shown(str(error))}") from error
        except (ValueError, AttributeError, TypeError) as error:
            raise InputError(f"{self._url} gives no list of models", advice=faults.ADVICE[Meaning.WRONG]) from error

    def other(self, name: str) -> ChatModel:
        """See `backends.llm.base.Model`."""
        if name not in self._others:
            twin = copy.copy(self)
            twin.name, twin._without = name, frozenset()
            self._others.setdefault(name, twin)
        return self._others[name]

    def stop(self) -> None:
        """See `backends.llm.base.Model`."""
        self._stopping.set()

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _attempt(
        self, messages: Sequence[Message], tools: Sequence[Tool], shape: Shape | None, meter: Meter, until: float
    ) -> Reply:
        """Ask once; again at once, and then always, without what the endpoint does not know."""
        while True:
            try:
                return self._ask(messages, tools, shape, meter, until)
            except _LacksError as lack:
                self._without |= {lack.what}

    def _ask(
        self, messages: Sequence[Message], tools: Sequence[Tool], shape: Shape | None, meter: Meter, until: float
    ) -> Reply:
        """One request, counted whatever comes of it."""
        meter.check()
        started, answer, without = time.monotonic(), Answer(), self._without
        if started >= until:
            raise BudgetSpentError("the time is used up")
        sent = estimate(messages)
        request = self._request(messages, tools, without)
        if shape is not None and Meaning.NO_SHAPE not in without:
            request["response_format"] = _held_to(shape)
        try:
            self._within(min(self._timeout, until - started), answer, self._fetching(request, without))
        except Exception as error:
            usage = answer.usage(sent) if answer.pieces or isinstance(error, _TimeUpError) else Usage()
            meter.add(usage, self._prices.cost(usage), time.monotonic() - started, failed=True)
            raise
        usage = answer.usage(sent)
        meter.add(usage, cost := self._prices.cost(usage), time.monotonic() - started)
        return self._reply(answer, tools, without, usage, cost)

    def _request(
        self, messages: Sequence[Message], tools: Sequence[Tool], without: frozenset[Meaning]
    ) -> dict[str, Any]:
        """The parameters of a request."""
        stream = Meaning.NO_STREAM not in without
        limit = "max_completion_tokens" if Meaning.OTHER_LIMIT in without else "max_tokens"
        request: dict[str, Any] = {"model": self.name, "stream": stream, limit: self._answer_tokens}
        if stream and Meaning.NO_STREAM_OPTIONS not in without:
            request["stream_options"] = {"include_usage": True}
        if Meaning.NO_TOOLS in without:
            return request | {"messages": words.in_words(messages, tools)}
        if tools:
            request["tools"] = [_declared(tool) for tool in tools]
        return request | {"messages": [_sent(message) for message in messages]}

    def _fetching(self, request: Mapping[str, Any], without: frozenset[Meaning]) -> _Fetch:
        def fetch(answer: Answer, gone: Callable[[], bool]) -> None:
            try:
                self._read(request, answer, gone)
                self._check_whole(answer)
            except openai.APIStatusError as error:
                raise self._meant(_fault(error), without) from error
            except openai.APITimeoutError as error:
                raise _TimeUpError(f"{self._url} did not answer in time") from error
            except openai.APIConnectionError as error:
                raise FaultyError(f"the connection to {self._url} failed: {self._shown(_root(error))}") from error
            except openai.APIError as error:  # within a stream
                raise self._meant(Fault(status=0, code=error.code or "", message=error.message), without) from error
            except ValueError as error:  # no JSON
                raise FaultyError(f"{self._url} talks nonsense: {self._shown(str(error))}") from error

        return fetch

    def _read(self, request: Mapping[str, Any], answer: Answer, gone: Callable[[], bool]) -> None:
        raw = self._client.chat.completions.with_raw_response.create(**request)
        if not request["stream"]:
            answer.take(json.loads(raw.http_response.content))
            return
        if "json" in raw.headers.get("content-type", ""):
            raw.http_response.close()
            raise _LacksError(Meaning.NO_STREAM)
        with raw.parse() as stream:
            for piece in stream:
                answer.take(piece.to_dict(mode="python", warnings=False) if hasattr(piece, "to_dict") else piece)
                if gone():
                    return

    def _check_whole(self, answer: Answer) -> None:
        if answer.finish is None:
            raise FaultyError(f"{self._url} broke off in the middle of an answer")

    def _within(self, seconds: float, answer: Answer, fetch: _Fetch) -> None:
        """Read in a thread, and wait for it no longer than so: an endpoint that drips is given up like a silent one."""
        over, gone = threading.Event(), threading.Event()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                fetch(answer, gone.is_set)
            except BaseException as error:  # noqa: BLE001 - told to the thread that waits
                raised.append(error)
            finally:
                over.set()

        threading.Thread(target=run, name="model", daemon=True).start()
        end = time.monotonic() + seconds
        try:
            while not over.wait(max(min(GLANCE, end - time.monotonic()), 0.0)):
                self._check_stopped()
                if time.monotonic() >= end:
                    raise _TimeUpError(f"{self._url} did not finish its answer in {seconds:.0f} s")
        finally:
            gone.set()
        if raised:
            raise raised[0]

    def _meant(self, fault: Fault, without: frozenset[Meaning]) -> Exception:
        """A fault as the exception that says what to do."""
        what, said = faults.meaning(fault), self._shown(fault.message)
        if what in DISPENSABLE and what not in without:
            return _LacksError(what)
        if what is Meaning.CONTEXT:
            return ContextFullError(f"the conversation is too long for {self.name}: {said}", advice="see --llm-context")
        if what is Meaning.AGAIN:
            return FaultyError(f"{self._url} answers {fault.status or 'an error'}: {said}", after=fault.after)
        advice = faults.ADVICE.get(what, faults.ADVICE[Meaning.WRONG])
        return InputError(f"{self._url} refuses {self.name} with {fault.status}: {said}", advice=advice)

    def _reply(
        self, answer: Answer, tools: Sequence[Tool], without: frozenset[Meaning], usage: Usage, cost: float
    ) -> Reply:
        text, calls = answer.text, answer.calls()
        if tools and not calls:
            # Also of models that have tool calls: some fall back into writing them.
            names = {tool.name for tool in tools} if Meaning.NO_TOOLS in without else ()
            text, calls = words.read_calls(text, names, cut=answer.finish == LENGTH)
        return Reply(
            text=text, tool_calls=calls, usage=usage, cost=cost, finish=answer.finish or "", reasoning=answer.reasoning
        )

    def _wait(self, state: RetryCallState) -> float:
        """What the endpoint asks for, or longer each time."""
        own = wait_random_exponential(self._first_pause, LONGEST_PAUSE / 2)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(own, error.after if isinstance(error, FaultyError) else 0.0)

    def _pause(self, seconds: float, until: float) -> None:
        if time.monotonic() + seconds >= until:
            raise BudgetSpentError("the time is used up while waiting for the endpoint")
        self._stopping.wait(seconds)
        self._check_stopped()

    def _check_stopped(self) -> None:
        if self._stopping.is_set():
            raise Stopped("stopped while a model was asked")

    def _shown(self, text: str) -> str:
        """Somebody else's words on one line, without the key."""
        line = " ".join(text.split())
        return (line.replace(self._secret, "...") if self._secret else line)[:SHOWN]


class _TimeUpError(FaultyError):
    """No answer in time: it is not known what it cost, so it is estimated."""


def _passes(error: BaseException) -> bool:
    return isinstance(error, FaultyError) and error.after <= LONGEST_PAUSE


def _trust(settings: Settings) -> ssl.SSLContext:
    bundle = settings.found_ca_bundle()
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise MachineError(f"cannot read the CA bundle {bundle}: {error}", advice="correct --ca-bundle") from error


def _fault(error: openai.APIStatusError) -> Fault:
    body = error.body
    said = body.get("message") if isinstance(body, Mapping) else body
    return Fault(
        status=error.status_code, code=f"{error.code or ''} {error.type or ''}".strip(),
        message=said if isinstance(said, str) else error.message,
        after=faults.seconds_to_wait({name.lower(): value for name, value in error.response.headers.items()}),
    )  # fmt: skip


def _root(error: BaseException) -> str:
    """The words of the error at the bottom: the SDK's own are `Connection error.`."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)


def _timed(reply: Reply, seconds: float) -> Reply:
    return Reply(**{**vars(reply), "seconds": seconds})


def _declared(tool: Tool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": about}


def _held_to(shape: Shape) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": shape.name, "strict": True, "schema": dict(shape.schema)}}


def _sent(message: Message) -> dict[str, Any]:
    """A message as the API wants it. Arguments that could not be understood are sent as none: servers choke on them."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments or {})}}
        for c in message.calls
    ]
    return {"role": message.role, "content": message.text or None, "tool_calls": calls}
