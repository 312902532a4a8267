"""Input of the gates of a question, and their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from backends.llm.meter import UsageMeter
from core.settings.explore import QuestionGateSettings
from explorers.answering.agent import AnswerSample
from explorers.corpora.corpus import CorpusReader
from explorers.corpora.pages import Page
from explorers.gates.benchmarks import Benchmarks
from explorers.model_requests import ExplorerModels
from explorers.reasons import Reason
from taskdb.records.questions import Clue, ClueOperation, Question, Rival, SampleCount, Walk
from taskdb.records.worlds import GateFinding


@dataclass(frozen=True, kw_only=True)
class GateFailure:
    """Why a gate rejects a question."""

    reason: Reason
    detail: str


@dataclass(frozen=True, kw_only=True)
class GateSubject:
    """A question with all that its gates read.

    `answer` and `aliases` are those of the first question of its walk; `others` are name and text of questions of other
    walks; `places` maps a place to a larger one.
    """

    question: Question
    walk: Walk
    answer: str
    aliases: tuple[str, ...]
    corpus: CorpusReader
    models: ExplorerModels
    options: QuestionGateSettings
    meter: UsageMeter
    others: Sequence[tuple[str, str]] = ()
    benchmarks: Benchmarks = field(default_factory=Benchmarks)
    places: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def active_clues(self) -> list[Clue]:
        """Clues that the question has, without those that were removed."""
        return [clue for clue in self.question.clues if clue.operation is not ClueOperation.REMOVE]

    @cached_property
    def quoted_pages(self) -> list[Page]:
        """Pages that the clues or the facts of the walk quote, by id."""
        keys = {clue.page for clue in self.question.clues} | {fact.page for fact in self.walk.facts}
        pages = [self.corpus.find_page(key) for key in sorted(keys)]
        return [page for page in pages if page is not None]

    def find_page_of(self, clue: Clue) -> Page | None:
        """Return the page of a clue; None where the corpus has none."""
        return self.corpus.find_page(clue.page)


@dataclass(kw_only=True)
class GateFindings:
    """Measurements of the gates. `path` has the calls of a right sample that was replayed; `log` lines for people."""

    gates: list[GateFinding] = field(default_factory=list)
    entry_rank: int | None = None
    closed: list[AnswerSample] = field(default_factory=list)
    samples: list[AnswerSample] = field(default_factory=list)
    solvers: tuple[SampleCount, ...] = ()
    closed_book: tuple[SampleCount, ...] = ()
    rivals: list[Rival] = field(default_factory=list)
    path: list[dict[str, Any]] = field(default_factory=list)
    evidence: tuple[str, ...] = ()
    log: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, value: float, limit: float | None = None, detail: str = "") -> None:
        """Add a value that a gate measured."""
        self.gates.append(GateFinding(name=name, value=value, limit=limit, detail=detail))
