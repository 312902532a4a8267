"""Records of exploring: corpora, walks over them, questions, their certificates and rejections.

A corpus has walks, a walk has a question, which rounds of evolution turn into harder questions: the chain of a walk. A
certificate states the findings of the gates. As in `taskdb.records`, a record with a certificate is not rejected,
whatever rejections it has from before.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated, Literal

from taskdb.records.base import MEASURED, ArtifactHash, Part, Record
from taskdb.records.worlds import GateFinding

CORPUS = "corpus"
"""Environment of questions."""


class ExploreStep(StrEnum):
    """The steps from a seed to a certified question, in their order; `gate` and `evolve` alternate."""

    WALK = "walk"
    WRITE = "write"
    EVOLVE = "evolve"
    GATE = "gate"


class AnswerType(StrEnum):
    """Kinds of short answers."""

    NAME = "name"
    TITLE = "title"
    DATE = "date"
    NUMBER = "number"
    SYMBOL = "symbol"
    COMMIT = "commit"


class ClueOperation(StrEnum):
    """Operation that made the present form of a clue."""

    NONE = "none"
    """It stands as it was written first."""
    REMOVE = "remove"
    """It is no longer in the question; its entity may not be named there."""
    BLUR = "blur"
    """Its value is less exact than its entity."""
    REPLACE = "replace"
    """It took the place of a more obvious clue."""


def compute_seed_id(corpus: str, seed: str) -> str:
    """Return the id of a seed of a corpus (by id): the sha256 (hex) of both."""
    return hashlib.sha256(f"{corpus}\n{seed}".encode(errors="replace")).hexdigest()


class LicenseCount(Part):
    """Number of pages under a licence."""

    license: str
    """SPDX expression, `NOASSERTION` where a page names none."""
    pages: int


class Corpus(Record):
    """A collection of pages with an index. Of several of a name the newest counts."""

    name: str
    language: str
    """Name of the Snowball stemmer of its words, such as `english`."""
    n_pages: int
    pages_sha256: str
    """Sha256 (hex) of its pages, as JSON lines by id."""
    index_sha256: str
    """Sha256 (hex) of the files of its index."""
    licenses: tuple[LicenseCount, ...]
    """By licence."""
    source: Annotated[str, MEASURED] = ""
    """Folder or file as the user named it, or `changes`."""
    n_left_out: Annotated[int, MEASURED] = 0
    """Files or rows without a page: no text, unreadable, or a duplicate id."""


class WalkFact(Part):
    """A statement that a page supports."""

    subject: str
    relation: str
    object: str
    page: str
    """Id of the page."""
    quote: str
    """Verbatim words of the page."""


class Walk(Record):
    """A walk of a model over a corpus from a seed, with the facts that it noted."""

    parent: str
    """Id of the Corpus."""
    corpus: str
    """Name of the Corpus."""
    name: str
    """`CORPUS-` and the beginning of the seed's id."""
    seed: str
    facts: tuple[WalkFact, ...]
    """In the order of the model; each quote is in its page."""
    pages: tuple[str, ...]
    """Ids of the pages that it opened, in the order of the first visits."""
    steps: ArtifactHash
    """JSON lines: each call of a tool with its result."""
    n_calls: int
    model: str
    prompt: str
    """Name and version of the prompt."""


class Clue(Part):
    """A statement of a question about the answer or something linked to it, with the page that supports it."""

    text: str
    """The clue in its present form, as the question has it."""
    operation: ClueOperation = ClueOperation.NONE
    page: str
    """Id of the page."""
    quote: str
    """Verbatim words of the page."""
    entity: str = ""
    """Name, date or number that the fact states and that a blur or removal hides."""
    value: str = ""
    """Wording that stands for the entity in the clue, such as `the 1970s`; empty where it states the entity."""
    relation: str = ""
    """Relation of the fact; for pages of changes an attribute, by which a program decides on the clue."""


class Question(Record):
    """A question with a short answer that its clues single out."""

    parent: str
    """Id of the Walk, or of the question of an earlier round that it was made of."""
    walk: str
    """Id of the Walk."""
    corpus: str
    """Id of the Corpus."""
    name: str
    """`WALK.ROUND`."""
    environment: Literal["corpus"] = "corpus"
    round: int
    """0 for the question as it was first written."""
    text: str
    answer: str
    aliases: tuple[str, ...] = ()
    answer_type: AnswerType
    answer_page: str
    """Id of the page about the answer."""
    clues: tuple[Clue, ...]
    license: str
    """SPDX expression: the licences of its quoted pages."""
    model: str
    prompt: str


class SampleCount(Part):
    """Outcome of a model's samples of a question."""

    model: str
    attempts: int
    """Samples with a verdict."""
    solved: int
    turns: tuple[int, ...] = ()
    """Turns of the samples that were right."""

    @property
    def mean_turns(self) -> float | None:
        """Average turns of the right samples; None without any."""
        return sum(self.turns) / len(self.turns) if self.turns else None


class Rival(Part):
    """Another answer that was examined and does not fulfil every clue."""

    answer: str
    origin: Literal["agent", "shared", "query"]
    """Second agent, to which the answer was given as wrong; wrong answer that several solvers share; query over all
    entities."""
    fails: str
    """Text of the first clue that it does not fulfil; empty where it brought no evidence at all."""
    detail: str = ""


class QuestionCertificate(Record):
    """Proof that a question has a single supported answer, is not known without a search, and can be solved."""

    parent: str
    """Id of the Question."""
    name: str
    entry_rank: int | None
    """Rank of the answer's page for the question itself, from 1; null where the search does not return it."""
    gates: tuple[GateFinding, ...]
    """In the order of the gates."""
    solvers: tuple[SampleCount, ...]
    closed_book: tuple[SampleCount, ...]
    """Samples without tools."""
    rivals: tuple[Rival, ...] = ()
    path: ArtifactHash
    """JSON: calls `{"tool", "arguments", "result"}` of a right sample, `result` the sha256 of its text, seen again when
    they were replayed."""
    n_path_calls: int
    evidence: tuple[str, ...]
    """Ids of the pages that the clues and the right sample quote."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
    """JSON lines of the samples and rivals."""


class QuestionRejection(Record):
    """Reason that a seed, a walk, a question or a round of evolution was rejected."""

    parent: str
    """Id of the Walk or Question, or of a seed (`compute_seed_id`)."""
    walk: str = ""
    """Id of the Walk; empty for a seed."""
    name: str
    corpus: str
    """Id of the Corpus."""
    step: ExploreStep
    round: int = 0
    """Round of the question that was rejected, or that did not come into being."""
    reason: str
    """A value of `explorers.reasons.Reason`."""
    detail: Annotated[str, MEASURED] = ""
    """A line for people."""
    entry_rank: Annotated[int | None, MEASURED] = None
    solvers: Annotated[tuple[SampleCount, ...], MEASURED] = ()
    """Samples of a question that reached the solvers: the curves by round count them, too."""
    log: Annotated[ArtifactHash | None, MEASURED] = None
