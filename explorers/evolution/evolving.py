"""A round of evolution: a model applies operations to clues and returns the whole question with the table of clues."""

from __future__ import annotations

from dataclasses import dataclass

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
from explorers.questions.writing import list_numbered_facts
from taskdb.records.questions import Clue, Question, Walk

EVOLVE_PROMPT = "evolve-1"


@dataclass(frozen=True, kw_only=True)
class QuestionEvolver:
    """Makes harder questions of questions. Threads may share it."""

    corpus: CorpusReader
    models: ExplorerModels

    def evolve(self, question: Question, walk: Walk, number: int, problem: str, meter: UsageMeter) -> Question:
        """Return the question of the next round.

        Args:
            question: question that it is made of.
            walk: walk of both, all of whose facts the model sees.
            number: round, which is later than the next of the question where rounds in between failed.
            problem: why the round before failed; empty where it did not.
            meter: meter that counts usage and cost.

        Raises:
            RequestFailedError: no answer was usable.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        model = self.models.names[ExplorerRole.WRITER]
        table = [
            {
                **clue.model_dump(mode="json", exclude={"page", "quote", "relation"}),
                "fact": find_fact_number(clue, walk),
            }
            for clue in question.clues
        ]
        request = StructuredRequest(
            key=RequestKey(purpose="evolve", subject=question.id, prompt=EVOLVE_PROMPT, sample=number),
            model=model,
            messages=PROMPTS.render_conversation(
                EVOLVE_PROMPT,
                question=question.text,
                answer=write_json({"answer": question.answer, "aliases": list(question.aliases)}),
                clues=write_json(table),
                facts=write_json(list_numbered_facts(walk.facts)),
                number=number,
                problem=problem,
                schema=write_schema(QuestionDraft),
            ),
            answer_type=QuestionDraft,
            check=lambda draft: self._find_problem(draft, question, walk),
            temperature=self.models.temperature,
        )
        draft = self.models.request(request, meter)
        evolved = make_question(draft, walk, self.corpus, parent=question, model=model, prompt=EVOLVE_PROMPT)
        return evolved.model_copy(update={"round": number, "name": f"{walk.name}.{number}"})

    def _find_problem(self, draft: QuestionDraft, question: Question, walk: Walk) -> str:
        """Return the problem with a draft: its form, or that it changes no clue."""
        if problem := find_draft_problem(draft, walk.facts, self.corpus):
            return problem
        if draft.question.split() == question.text.split():
            return "the question is the one that it was made of"
        return ""


def find_fact_number(clue: Clue, walk: Walk) -> int:
    """Return the number of the fact of a clue, from 1; 0 where the walk has none with its quote."""
    return next(
        (
            number
            for number, fact in enumerate(walk.facts, 1)
            if (fact.page, fact.quote, fact.relation) == (clue.page, clue.quote, clue.relation)
        ),
        0,
    )
