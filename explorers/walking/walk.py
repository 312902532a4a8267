"""A walk from a seed: the loop of a model over a corpus, and the facts that it noted, each with a verbatim quote."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import BaseModel, Field

from backends.llm.meter import UsageMeter
from core.settings.explore import WalkSettings
from explorers.answering.matching import is_verbatim
from explorers.browse.extracts import ExtractedPages
from explorers.corpora.corpus import CorpusReader
from explorers.model_requests import (
    PROMPTS,
    ExplorerModels,
    ExplorerRole,
    RequestFailedError,
    RequestKey,
    write_schema,
)
from explorers.reasons import Reason
from explorers.walking.loop import LoopLimits, LoopResult, ToolLoop
from explorers.walking.tools import CorpusTools, PageSource
from taskdb.records.questions import WalkFact

WALK_PROMPT = "walk-1"


class NotedFact(BaseModel):
    """A fact. `page` is the URL or id of a page that was opened; `quote` stands in it word for word."""

    subject: str = Field(min_length=1)
    relation: str = Field(min_length=1)
    object: str = Field(min_length=1)
    page: str
    quote: str


class WalkNotes(BaseModel):
    """All facts of a walk, in the order of the walk."""

    facts: list[NotedFact]


@dataclass(frozen=True, kw_only=True)
class FinishedWalk:
    """A walk with its facts. `steps`: JSON lines of the calls."""

    facts: tuple[WalkFact, ...]
    pages: tuple[str, ...]
    steps: bytes
    n_calls: int


@dataclass(frozen=True, kw_only=True)
class Walker:
    """Walks over a corpus. Threads may share it."""

    corpus: CorpusReader
    models: ExplorerModels
    options: WalkSettings

    def walk(self, seed: str, subject: str, meter: UsageMeter) -> FinishedWalk:
        """Return the walk from a seed.

        Args:
            seed: name or title to begin at.
            subject: id of the seed.
            meter: meter that counts usage and cost.

        Raises:
            RequestFailedError: the seed is unknown, or the walk is too short or gave too few facts.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        if not self.corpus.search(seed, 1) and self.corpus.find_page(seed) is None:
            raise RequestFailedError(Reason.UNKNOWN_SEED, f"no page has a word of {seed}")
        loop = ToolLoop(
            models=self.models,
            model=self.models.names[ExplorerRole.WALKER],
            key=RequestKey(purpose="walk", subject=subject, prompt=WALK_PROMPT),
            tools=CorpusTools(pages=self._choose_pages(meter)),
            answer_type=WalkNotes,
            limits=LoopLimits(turns=self.options.max_calls, min_calls=self.options.min_calls),
            temperature=self.models.temperature,
        )
        values = {"seed": seed, "schema": write_schema(WalkNotes), "least": self.options.min_calls}
        messages = PROMPTS.render_conversation(WALK_PROMPT, most=self.options.max_calls, **values)
        result = loop.run(messages, meter, self._find_problem)
        if len(result.steps) < self.options.min_calls:
            detail = f"{len(result.steps)} of at least {self.options.min_calls} calls"
            raise RequestFailedError(Reason.SHORT_WALK, detail)
        if result.value is None:
            raise RequestFailedError(self._classify(result), result.problem[:500])
        lines = [json.dumps(step.to_json(), ensure_ascii=False).encode(errors="replace") for step in result.steps]
        return FinishedWalk(
            facts=tuple(self._make_fact(fact) for fact in result.value.facts),
            pages=result.pages,
            steps=b"".join(line + b"\n" for line in lines),
            n_calls=len(result.steps),
        )

    def _choose_pages(self, meter: UsageMeter) -> PageSource:
        """Return the corpus, or its pages with extracts of the model."""
        if self.options.browse == "passages":
            return self.corpus
        return ExtractedPages(corpus=self.corpus, models=self.models, meter=meter)

    def _find_problem(self, notes: WalkNotes, result: LoopResult[WalkNotes]) -> str:
        """Return why notes cannot be used: too few facts, or quotes that are not in opened pages."""
        wrong = [
            f"fact {number}: {problem}"
            for number, fact in enumerate(notes.facts, 1)
            if (problem := self._find_fact_problem(fact, result.pages))
        ]
        if wrong:
            return "; ".join(wrong)
        least = self.options.min_facts
        return "" if len(notes.facts) >= least else f"{len(notes.facts)} facts, at least {least} are needed"

    def _find_fact_problem(self, fact: NotedFact, opened: tuple[str, ...]) -> str:
        page = self.corpus.find_page(fact.page)
        if page is None or page.id not in opened:
            return f"the page {fact.page} was not opened"
        return "" if is_verbatim(fact.quote, page.text) else f"its quote is not in the page {fact.page} word for word"

    def _classify(self, result: LoopResult[WalkNotes]) -> Reason:
        if "context length" in result.problem:
            return Reason.TOO_LONG
        is_about_facts = "fact" in result.problem
        return Reason.FEW_FACTS if is_about_facts else Reason.UNUSABLE_ANSWER

    def _make_fact(self, fact: NotedFact) -> WalkFact:
        page = self.corpus.find_page(fact.page)
        return WalkFact(**{**fact.model_dump(), "page": page.id if page else fact.page})
