"""The first form of a question: clues from the facts of a walk, each naming its fact, and a short answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backends.llm.meter import UsageMeter
from explorers.corpora.corpus import CorpusReader
from explorers.model_requests import (
    PROMPTS,
    ExplorerModels,
    ExplorerRole,
    RequestKey,
    StructuredRequest,
    write_json,
    write_schema,
)
from explorers.questions.drafts import QuestionDraft, find_draft_problem, make_question
from taskdb.records.questions import Question, Walk, WalkFact

WRITE_PROMPT = "write-1"


def list_numbered_facts(facts: Sequence[WalkFact]) -> list[dict[str, Any]]:
    """Return facts with their numbers, for a prompt."""
    return [{"fact": number, **fact.model_dump()} for number, fact in enumerate(facts, 1)]


@dataclass(frozen=True, kw_only=True)
class QuestionWriter:
    """Writes questions from walks. Threads may share it."""

    corpus: CorpusReader
    models: ExplorerModels

    def write(self, walk: Walk, meter: UsageMeter) -> Question:
        """Return the question of a walk.

        Raises:
            RequestFailedError: no answer was usable.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        model = self.models.names[ExplorerRole.WRITER]
        request = StructuredRequest(
            key=RequestKey(purpose="write", subject=walk.id, prompt=WRITE_PROMPT),
            model=model,
            messages=PROMPTS.render_conversation(
                WRITE_PROMPT,
                seed=walk.seed,
                facts=write_json(list_numbered_facts(walk.facts)),
                schema=write_schema(QuestionDraft),
            ),
            answer_type=QuestionDraft,
            check=lambda draft: find_draft_problem(draft, walk.facts, self.corpus),
            temperature=self.models.temperature,
        )
        draft = self.models.request(request, meter)
        return make_question(draft, walk, self.corpus, parent=None, model=model, prompt=WRITE_PROMPT)
