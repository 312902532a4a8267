"""Calls of a run, on worker threads: verdicts on seeds, and one call for each conversation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from backends.llm.base import ContextLengthError, LanguageModel, ModelReply
from backends.llm.meter import UsageMeter
from core.errors import CancelledRunError, InputError, MergemillError
from simulators.domains.pack import DomainPack
from simulators.jobs import SimulationJob
from simulators.ledger import CallIdentity, CallLedger, Pacer, RecordedModel
from simulators.options import SimulationOptions
from simulators.parsing import parse_released, parse_turns
from simulators.prefilter import PROMPT, SeedVerdict, judge_by_model
from simulators.prompting import ConversationPrompts
from simulators.seeds.seed import Seed

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
MAX_FAILURES_IN_ROW = 10
"""Calls in a row that fail before no more are begun."""
WAIT_SECONDS = 1.0
"""Longest wait for a result before Ctrl-C is noticed."""
READY_PER_WORKER = 2
"""Items handed to the pool for each worker, so that a list of any length takes little memory."""


@dataclass
class UsageTotals:
    """Sums of the calls that this process made."""

    requests: int = 0
    failed_requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def add(self, meter: UsageMeter) -> None:
        """Add what one thread's meter counted."""
        self.requests += meter.requests
        self.failed_requests += meter.failed_requests
        self.prompt_tokens += meter.prompt_tokens
        self.completion_tokens += meter.completion_tokens
        self.cost += meter.cost


@dataclass(frozen=True, kw_only=True)
class JobAnswer:
    """What came of a job: the key of the last answer in the ledger. `fresh`: answers that the endpoint gave now."""

    job: SimulationJob
    key: str = ""
    fresh: int = 0
    is_too_long: bool = False
    meter: UsageMeter = field(default_factory=UsageMeter)


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A model that writes conversations, with the ledger of its answers."""

    model: LanguageModel
    ledger: CallLedger
    pacer: Pacer
    options: SimulationOptions
    pack: DomainPack
    prompts: ConversationPrompts
    answer_tokens: int

    def simulate(self, job: SimulationJob) -> JobAnswer:
        """Return the answer for a job: the first that can be parsed, else the last of `attempts`.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        prompt, meter, fresh, key = self.prompts.render(job), UsageMeter(), 0, ""
        for attempt in range(1, self.options.attempts + 1):
            model = self._open("conversation", job.seed, self.prompts.version, sample=job.sample, attempt=attempt)
            try:
                reply = model.complete(prompt, meter=meter)
            except ContextLengthError:
                return JobAnswer(job=job, is_too_long=True, meter=meter)
            key, fresh = model.keys[-1], fresh + len(model.fresh)
            if self._is_usable(reply):
                break
        return JobAnswer(job=job, key=key, fresh=fresh, meter=meter)

    def judge(self, seed: Seed) -> tuple[SeedVerdict, UsageMeter]:
        """Return the pre-filter's verdict on a seed, and what it took.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        meter = UsageMeter()
        model = self._open("seed", seed, PROMPT)
        return judge_by_model(seed, self.pack, model, meter, model.keys), meter

    def stop(self) -> None:
        """Cancel all current and future calls."""
        self.pacer.stop()
        self.model.stop()

    def _open(self, purpose: str, seed: Seed, prompt: str, *, sample: int = 1, attempt: int = 1) -> RecordedModel:
        settings = {
            "temperature": self.options.temperature,
            "answer_tokens": self.answer_tokens,
            "prompt": prompt,
            "draw": self.options.draw,
        }
        identity = CallIdentity(purpose=purpose, seed=seed.id, sample=sample, attempt=attempt, settings=settings)
        return RecordedModel(self.model, self.ledger, identity, self.pacer)

    def _is_usable(self, reply: ModelReply) -> bool:
        if self.options.released_rules:
            return bool(parse_released(reply.text))
        return reply.finish_reason != "length" and bool(parse_turns(reply.text, self.pack.markers))


@dataclass(frozen=True, kw_only=True)
class ParallelCalls(Generic[T, R]):
    """Runs work on threads and returns the results in the order of the items.

    `report` is called in the driver's thread with each result or failure; `stop` cancels what runs.
    """

    work: Callable[[T], R]
    workers: int
    report: Callable[[T, R | MergemillError], None]
    stop: Callable[[], None]

    def run(self, items: Sequence[T]) -> list[R | MergemillError | None]:
        """Return the result or failure of each item; None for those that an outage left.

        Raises:
            InputError: the first call that ended was refused by the endpoint (a wrong key or name), or a file failed.
            KeyboardInterrupt: Ctrl-C; what was answered is in the ledger.
        """
        results: list[R | MergemillError | None] = [None] * len(items)
        running: dict[Future[R], int] = {}
        threads = ThreadPoolExecutor(self.workers, thread_name_prefix="mergemill-simulate")
        next_item, n_ended, n_failed_in_row = 0, 0, 0
        try:
            while True:
                is_outage = n_failed_in_row >= MAX_FAILURES_IN_ROW
                while len(running) < self.workers * READY_PER_WORKER and next_item < len(items) and not is_outage:
                    running[threads.submit(self.work, items[next_item])] = next_item
                    next_item += 1
                if not running:
                    return results
                done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=WAIT_SECONDS)
                for future in done:
                    at = running.pop(future)
                    results[at] = outcome = _get_outcome(future)
                    _raise_if_refused(outcome, is_first=not n_ended)
                    n_ended += 1
                    n_failed_in_row = n_failed_in_row + 1 if isinstance(outcome, MergemillError) else 0
                    self.report(items[at], outcome)
        except BaseException:
            self.stop()
            raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _get_outcome(future: Future[R]) -> R | MergemillError:
    try:
        return future.result()
    except CancelledRunError:
        raise
    except MergemillError as error:
        return error
    except Exception as error:
        log.exception("a call failed through a bug")
        return MergemillError(f"failed through a bug: {error!r}")


def _raise_if_refused(outcome: object, *, is_first: bool) -> None:
    """Raise the error of a first call that the endpoint refuses: all others would be refused, too."""
    if is_first and isinstance(outcome, InputError):
        raise outcome
