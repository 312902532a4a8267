"""Chat completions of any endpoint with OpenAI's API. The only file that imports the openai SDK.

A stream that ends without a finish reason was interrupted and is requested again. The SDK's own retries are disabled,
because they handle neither interrupted streams nor budgets. A feature that an endpoint rejects once (tools, streams,
response schemas, parameter names) is not requested from it again.
"""

from __future__ import annotations

import copy
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import openai
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backends.llm import error_responses, text_tool_calls
from backends.llm.api_messages import build_api_message, build_api_tool, build_response_format
from backends.llm.base import ContextLengthError, Message, ModelReply, ResponseSchema, Tool, estimate_tokens
from backends.llm.error_responses import ErrorKind, ErrorResponse, RetryableError
from backends.llm.meter import BudgetExceededError, TokenPrices, TokenUsage, UsageMeter
from backends.llm.response import FINISH_LENGTH, EmbeddingResponse, ResponseAccumulator
from core.errors import CancelledRunError, InputError, MachineError
from core.settings.machine import HostSettings
from core.settings.models import LlmSettings

MAX_ATTEMPTS = 6
"""Requests for a reply before its error is raised."""
MAX_RETRY_DELAY = 120.0
"""Most seconds between two attempts; a longer Retry-After is an error."""
STOP_POLL_SECONDS = 0.2
"""Seconds between two checks of `stop` while a response is read."""
LIST_MODELS_TIMEOUT = 10.0
"""Seconds that `list_models` waits."""
PLACEHOLDER_KEY = "none"
"""Key that is sent where none is set: the SDK requires a key, local servers do not."""
OPTIONAL_FEATURES = frozenset(
    {
        ErrorKind.TOOLS_UNSUPPORTED,
        ErrorKind.SCHEMA_UNSUPPORTED,
        ErrorKind.STREAM_OPTIONS_UNSUPPORTED,
        ErrorKind.STREAM_UNSUPPORTED,
        ErrorKind.MAX_TOKENS_UNSUPPORTED,
    }
)
MAX_MESSAGE_CHARS = 300
"""Characters of an endpoint's message that are shown."""


class UnsupportedFeatureError(Exception):
    """The endpoint lacks an optional feature."""

    def __init__(self, feature: ErrorKind) -> None:
        super().__init__(feature)
        self.feature = feature


class ResponseReader(Protocol):
    """Reads a response into `answer` until it ends or `is_abandoned()` is true."""

    def __call__(self, answer: ResponseAccumulator, is_abandoned: Callable[[], bool]) -> None:
        """Read the answer to its end."""


class ChatModel:
    """Model of an OpenAI-compatible endpoint; see `backends.llm.base.LanguageModel`. Thread-safe.

    Args:
        llm: address, model, key, limits and prices.
        host: CA bundle.
        first_pause: seconds before the first retry; later ones wait longer.
        temperature: temperature of sampling; None for the endpoint's own.

    Raises:
        MachineError: the CA bundle cannot be read.
    """

    def __init__(
        self, llm: LlmSettings, host: HostSettings, *, first_pause: float = 1.0, temperature: float | None = None
    ) -> None:
        key = llm.find_key()
        self.name = llm.model or ""
        self.context_tokens = llm.context
        self._url = llm.url
        self._secret = key.get_secret_value() if key else ""
        self._timeout = llm.timeout
        self._answer_tokens = llm.answer_tokens
        self._prices = TokenPrices.from_settings(llm)
        self._first_pause = first_pause
        self._temperature = temperature
        self._unsupported: frozenset[ErrorKind] = frozenset()
        self._models: dict[str, ChatModel] = {self.name: self}
        self._stopping = threading.Event()
        self._client = openai.OpenAI(
            base_url=self._url,
            api_key=self._secret or PLACEHOLDER_KEY,
            # Retries are made here, where the deadline and a stop are known.
            max_retries=0,
            timeout=self._timeout,
            http_client=openai.DefaultHttpxClient(verify=_create_ssl_context(host.find_ca_bundle())),
        )

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        meter: UsageMeter,
        deadline: float | None = None,
        response_schema: ResponseSchema | None = None,
        request_key: str = "",
    ) -> ModelReply:
        """See `backends.llm.base.LanguageModel`."""
        started = time.monotonic()
        until = float("inf") if deadline is None else deadline
        retrying = Retrying(
            stop=stop_after_attempt(MAX_ATTEMPTS),
            wait=self._compute_retry_delay,
            retry=retry_if_exception(_is_retryable),
            sleep=lambda seconds: self._sleep(seconds, until),
            reraise=True,
        )
        # A repeated request with the same key is answered from the server's cache, where it has one, and paid once.
        more: dict[str, Any] = {}
        if response_schema is not None:
            more["response_format"] = build_response_format(response_schema)
        if request_key:
            more["extra_headers"] = {"Idempotency-Key": request_key}
        reply: ModelReply = retrying(self._complete_without_unsupported, messages, tools, more, meter, until)
        return _replace_seconds(reply, time.monotonic() - started)

    def embed(self, texts: Sequence[str], *, meter: UsageMeter, request_key: str = "") -> list[list[float]]:
        """See `backends.llm.base.EmbeddingModel`."""
        retrying = Retrying(
            stop=stop_after_attempt(MAX_ATTEMPTS),
            wait=self._compute_retry_delay,
            retry=retry_if_exception(_is_retryable),
            sleep=lambda seconds: self._sleep(seconds, float("inf")),
            reraise=True,
        )
        vectors: list[list[float]] = retrying(self._request_embeddings, texts, meter, request_key)
        return vectors

    def list_models(self) -> list[str]:
        """Return the names of the endpoint's models; empty where it does not list them.

        Raises:
            Transient, InputError: as `complete`.
        """
        try:
            return sorted(str(model.id) for model in self._client.models.list(timeout=LIST_MODELS_TIMEOUT).data or ())
        except openai.APIStatusError as error:
            # Servers without this route still answer completions.
            if error.status_code in {404, 405, 501}:
                return []
            raise self._translate_error(_parse_error_response(error), frozenset()) from error
        except openai.APIError as error:
            raise RetryableError(f"{self._url} does not answer: {self._redact(str(error))}") from error
        except (ValueError, AttributeError, TypeError) as error:
            raise InputError(
                f"{self._url} does not list its models", advice=error_responses.ADVICE[ErrorKind.OTHER]
            ) from error

    def get_model(self, name: str) -> ChatModel:
        """See `backends.llm.base.LanguageModel`."""
        if name not in self._models:
            # The copy shares connections and limits; features are rejected by model, so they are learnt again.
            model = copy.copy(self)
            model.name, model._unsupported = name, frozenset()
            self._models.setdefault(name, model)
        return self._models[name]

    def stop(self) -> None:
        """See `backends.llm.base.LanguageModel`."""
        self._stopping.set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _complete_without_unsupported(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        more: Mapping[str, Any],
        meter: UsageMeter,
        until: float,
    ) -> ModelReply:
        """Send a request; repeat it at once without a feature that the endpoint rejects, for this model's lifetime."""
        while True:
            try:
                return self._send_request(messages, tools, more, meter, until)
            # Remembered for the model: finding out again would cost a request each time.
            except UnsupportedFeatureError as error:
                self._unsupported |= {error.feature}

    def _send_request(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        more: Mapping[str, Any],
        meter: UsageMeter,
        until: float,
    ) -> ModelReply:
        """Send a request with `more` parameters; its usage is counted whether it succeeds or not."""
        meter.check()
        started, answer, without = time.monotonic(), ResponseAccumulator(), self._unsupported
        if started >= until:
            raise BudgetExceededError("the time is used up")
        prompt_tokens = estimate_tokens(messages)
        request = {**self._build_request(messages, tools, without), **more}
        if ErrorKind.SCHEMA_UNSUPPORTED in without:
            request.pop("response_format", None)

        def read(answer: ResponseAccumulator, is_abandoned: Callable[[], bool]) -> None:
            self._read_response(request, answer, is_abandoned)

        try:
            self._read_with_timeout(min(self._timeout, until - started), answer, self._make_reader(read, without))
        except Exception as error:
            usage = (
                answer.count_usage(prompt_tokens)
                if answer.chunk_count or isinstance(error, ResponseTimeoutError)
                else TokenUsage()
            )
            meter.add(usage, self._prices.compute_cost(usage), time.monotonic() - started, failed=True)
            raise
        usage = answer.count_usage(prompt_tokens)
        meter.add(usage, cost := self._prices.compute_cost(usage), time.monotonic() - started)
        return self._build_reply(answer, tools, without, usage, cost)

    def _build_request(
        self, messages: Sequence[Message], tools: Sequence[Tool], without: frozenset[ErrorKind]
    ) -> dict[str, Any]:
        """Return the parameters of a request."""
        stream = ErrorKind.STREAM_UNSUPPORTED not in without
        limit = "max_completion_tokens" if ErrorKind.MAX_TOKENS_UNSUPPORTED in without else "max_tokens"
        request: dict[str, Any] = {"model": self.name, "stream": stream, limit: self._answer_tokens}
        if self._temperature is not None:
            request["temperature"] = self._temperature
        if stream and ErrorKind.STREAM_OPTIONS_UNSUPPORTED not in without:
            request["stream_options"] = {"include_usage": True}
        if ErrorKind.TOOLS_UNSUPPORTED in without:
            return request | {"messages": text_tool_calls.build_text_messages(messages, tools)}
        if tools:
            request["tools"] = [build_api_tool(tool) for tool in tools]
        return request | {"messages": [build_api_message(message) for message in messages]}

    def _make_reader(self, read: ResponseReader, without: frozenset[ErrorKind] = OPTIONAL_FEATURES) -> ResponseReader:
        """Return a reader that raises the errors of this package in place of the SDK's."""

        def read_response(answer: ResponseAccumulator, is_abandoned: Callable[[], bool]) -> None:
            try:
                read(answer, is_abandoned)
                self._check_finished(answer)
            except openai.APIStatusError as error:
                raise self._translate_error(_parse_error_response(error), without) from error
            except openai.APITimeoutError as error:
                raise ResponseTimeoutError(f"{self._url} did not answer in time") from error
            except openai.APIConnectionError as error:
                raise RetryableError(
                    f"the connection to {self._url} failed: {self._redact(_find_root_message(error))}"
                ) from error
            except openai.APIError as error:  # within a stream
                raise self._translate_error(
                    ErrorResponse(status=0, code=error.code or "", message=error.message), without
                ) from error
            except ValueError as error:  # not JSON
                raise RetryableError(f"{self._url} returned invalid JSON: {self._redact(str(error))}") from error

        return read_response

    def _read_response(
        self, request: Mapping[str, Any], answer: ResponseAccumulator, is_abandoned: Callable[[], bool]
    ) -> None:
        raw = self._client.chat.completions.with_raw_response.create(**request)
        if not request["stream"]:
            answer.add_chunk(json.loads(raw.http_response.content))
            return
        if "json" in raw.headers.get("content-type", ""):
            raw.http_response.close()
            raise UnsupportedFeatureError(ErrorKind.STREAM_UNSUPPORTED)
        with raw.parse() as stream:
            for chunk in stream:
                answer.add_chunk(chunk.to_dict(mode="python", warnings=False) if hasattr(chunk, "to_dict") else chunk)
                if is_abandoned():
                    return

    def _request_embeddings(self, texts: Sequence[str], meter: UsageMeter, request_key: str) -> list[list[float]]:
        """Send a request for embeddings; its usage is counted whether it succeeds or not."""
        meter.check()
        started, response = time.monotonic(), EmbeddingResponse()
        headers = {"Idempotency-Key": request_key} if request_key else {}

        def request(answer: ResponseAccumulator, is_abandoned: Callable[[], bool]) -> None:
            del is_abandoned
            raw = self._client.embeddings.with_raw_response.create(
                model=self.name, input=list(texts), encoding_format="float", extra_headers=headers
            )
            response.read(json.loads(raw.http_response.content), len(texts))
            answer.finish_reason = "stop"

        try:
            self._read_with_timeout(self._timeout, ResponseAccumulator(), self._make_reader(request))
        except Exception:
            meter.add(TokenUsage(), 0.0, time.monotonic() - started, failed=True)
            raise
        usage = TokenUsage(prompt_tokens=response.prompt_tokens)
        meter.add(usage, self._prices.compute_cost(usage), time.monotonic() - started)
        return response.vectors

    def _check_finished(self, answer: ResponseAccumulator) -> None:
        if answer.finish_reason is None:
            raise RetryableError(f"{self._url} interrupted its answer")

    def _read_with_timeout(self, seconds: float, answer: ResponseAccumulator, read: ResponseReader) -> None:
        """Read a response in a thread with a total time limit, which slow streams cannot extend.

        Raises:
            ResponseTimeoutError: the time is up.
            CancelledRunError: `stop` was called.
        """
        has_ended, is_abandoned = threading.Event(), threading.Event()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                read(answer, is_abandoned.is_set)
            except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
                raised.append(error)
            finally:
                has_ended.set()

        threading.Thread(target=run, name="model", daemon=True).start()
        end = time.monotonic() + seconds
        try:
            while not has_ended.wait(max(min(STOP_POLL_SECONDS, end - time.monotonic()), 0.0)):
                self._raise_if_stopped()
                if time.monotonic() >= end:
                    raise ResponseTimeoutError(f"{self._url} did not finish its answer in {seconds:.0f} s")
        finally:
            is_abandoned.set()
        if raised:
            raise raised[0]

    def _translate_error(self, response: ErrorResponse, without: frozenset[ErrorKind]) -> Exception:
        """Return the exception for an error response."""
        kind, message = error_responses.classify_error(response), self._redact(response.message)
        if kind in OPTIONAL_FEATURES and kind not in without:
            return UnsupportedFeatureError(kind)
        if kind is ErrorKind.CONTEXT_LENGTH:
            return ContextLengthError(
                f"the conversation is too long for {self.name}: {message}", advice="see --llm-context"
            )
        if kind is ErrorKind.RETRYABLE:
            return RetryableError(
                f"{self._url} answers {response.status or 'an error'}: {message}", after=response.retry_after
            )
        advice = error_responses.ADVICE.get(kind, error_responses.ADVICE[ErrorKind.OTHER])
        return InputError(f"{self._url} rejects {self.name} with {response.status}: {message}", advice=advice)

    def _build_reply(
        self,
        answer: ResponseAccumulator,
        tools: Sequence[Tool],
        without: frozenset[ErrorKind],
        usage: TokenUsage,
        cost: float,
    ) -> ModelReply:
        text, calls = answer.text, answer.build_tool_calls()
        if tools and not calls:
            # Models with tool calls write them as text now and then.
            names = {tool.name for tool in tools} if ErrorKind.TOOLS_UNSUPPORTED in without else ()
            text, calls = text_tool_calls.extract_tool_calls(text, names, cut=answer.finish_reason == FINISH_LENGTH)
        return ModelReply(
            text=text,
            tool_calls=calls,
            usage=usage,
            cost=cost,
            finish_reason=answer.finish_reason or "",
            reasoning=answer.reasoning,
        )

    def _compute_retry_delay(self, state: RetryCallState) -> float:
        """Return the endpoint's Retry-After or an exponential delay, whichever is longer."""
        delay = wait_random_exponential(self._first_pause, MAX_RETRY_DELAY / 2)(state)
        error = state.outcome.exception() if state.outcome else None
        return max(delay, error.retry_after if isinstance(error, RetryableError) else 0.0)

    def _sleep(self, seconds: float, until: float) -> None:
        if time.monotonic() + seconds >= until:
            raise BudgetExceededError("the time is used up while waiting for the endpoint")
        self._stopping.wait(seconds)
        self._raise_if_stopped()

    def _raise_if_stopped(self) -> None:
        if self._stopping.is_set():
            raise CancelledRunError("stopped during a model request")

    def _redact(self, text: str) -> str:
        """Return an endpoint's message on a single line, truncated, without the key."""
        line = " ".join(text.split())
        return (line.replace(self._secret, "...") if self._secret else line)[:MAX_MESSAGE_CHARS]


class ResponseTimeoutError(RetryableError):
    """The answer did not complete in time; its usage is estimated."""


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, RetryableError) and error.retry_after <= MAX_RETRY_DELAY


@cache
def _create_ssl_context(bundle: Path | None) -> ssl.SSLContext:
    """Return the context of all clients that trust a bundle: a hundred certificates are read for it."""
    try:
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise MachineError(f"cannot read the CA bundle {bundle}: {error}", advice="correct --ca-bundle") from error


def _parse_error_response(error: openai.APIStatusError) -> ErrorResponse:
    body = error.body
    message = body.get("message") if isinstance(body, Mapping) else body
    return ErrorResponse(
        status=error.status_code,
        code=f"{error.code or ''} {error.type or ''}".strip(),
        message=message if isinstance(message, str) else error.message,
        retry_after=error_responses.parse_retry_after(
            {name.lower(): value for name, value in error.response.headers.items()}
        ),
    )


def _find_root_message(error: BaseException) -> str:
    """Return the message of the root cause: the SDK's own is just `Connection error.`."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)


def _replace_seconds(reply: ModelReply, seconds: float) -> ModelReply:
    return ModelReply(**{**vars(reply), "seconds": seconds})
