"""Calls of a run: verdicts on seeds, and a call for each conversation."""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.llm.base import ContextLengthError, LanguageModel, ModelReply
from backends.llm.ledger import CallIdentity, CallLedger, Pacer, RecordedModel
from backends.llm.meter import UsageMeter
from simulators.domains.pack import DomainPack
from simulators.jobs import SimulationJob
from simulators.options import SimulationOptions
from simulators.parsing import parse_released, parse_turns
from simulators.prefilter import PROMPT, SeedVerdict, judge_by_model
from simulators.prompting import ConversationPrompts
from simulators.seeds.seed import Seed


@dataclass(frozen=True, kw_only=True)
class JobAnswer:
    """Result that came of a job: the key of the last answer in the ledger.

    `fresh`: answers that the endpoint gave now.
    """

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
        """Return the pre-filter's verdict on a seed, and the usage that it took.

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
