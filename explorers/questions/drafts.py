"""Drafts: questions as a model returns them, by numbers of facts of the walk, and as they become records."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from explorers.corpora.corpus import CorpusReader
from taskdb.records.questions import AnswerType, Clue, ClueOperation, Question, Walk, WalkFact


class ClueDraft(BaseModel):
    """A clue. `fact`: number of the fact that it states, from 1; `operation` that this round or an earlier one applied.

    `entity`: the name, date or number of the fact that a `blur` or `remove` hides; `value`: the wording that stands for
    it in a blurred clue, such as "the 1970s".
    """

    text: str = Field(min_length=1)
    fact: int = Field(ge=1)
    operation: ClueOperation = ClueOperation.NONE
    entity: str = ""
    value: str = ""


class QuestionDraft(BaseModel):
    """A whole question with the table of its clues. `answer_page`: id of the page about the answer."""

    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    aliases: list[str] = Field(default_factory=list)
    answer_type: AnswerType
    answer_page: str
    clues: list[ClueDraft] = Field(min_length=2)


def find_draft_problem(draft: QuestionDraft, facts: Sequence[WalkFact], corpus: CorpusReader) -> str:
    """Return the problem with the form of a draft; empty for none."""
    unknown = [clue.fact for clue in draft.clues if clue.fact > len(facts)]
    if unknown:
        return f"there is no fact {unknown[0]}, they are numbered from 1 to {len(facts)}"
    if corpus.find_page(draft.answer_page) is None:
        return f"answer_page: there is no page {draft.answer_page}"
    for clue in draft.clues:
        if clue.operation in (ClueOperation.BLUR, ClueOperation.REMOVE) and not clue.entity:
            return f"the clue of fact {clue.fact} has no `entity`, which its {clue.operation} hides"
        if clue.operation is ClueOperation.BLUR and not clue.value:
            return f"the blurred clue of fact {clue.fact} has no `value`"
    if all(clue.operation is ClueOperation.REMOVE for clue in draft.clues):
        return "every clue is removed"
    return ""


def make_clues(draft: QuestionDraft, walk: Walk, parent: Question | None) -> tuple[Clue, ...]:
    """Return the clues of a draft; those of its parent that it dropped count as removed."""
    clues = [_make_clue(clue, walk.facts[clue.fact - 1]) for clue in draft.clues]
    kept = {(clue.page, clue.quote, clue.relation) for clue in clues}
    dropped = [clue for clue in (parent.clues if parent else ()) if (clue.page, clue.quote, clue.relation) not in kept]
    return (*clues, *(clue.model_copy(update={"operation": ClueOperation.REMOVE}) for clue in dropped))


def _make_clue(clue: ClueDraft, fact: WalkFact) -> Clue:
    return Clue(
        text=clue.text,
        operation=clue.operation,
        page=fact.page,
        quote=fact.quote,
        entity=clue.entity or fact.object,
        value=clue.value,
        relation=fact.relation,
    )


def make_question(
    draft: QuestionDraft, walk: Walk, corpus: CorpusReader, *, parent: Question | None, model: str, prompt: str
) -> Question:
    """Return the record of a draft that `find_draft_problem` finds nothing wrong with.

    Args:
        draft: the question as a model returned it.
        walk: walk whose facts it names.
        corpus: the corpus.
        parent: question of an earlier round that it was made of; None for the first.
        model: name of the model that wrote it.
        prompt: name and version of the prompt.
    """
    clues = make_clues(draft, walk, parent)
    page = corpus.find_page(draft.answer_page)
    pages = [corpus.find_page(clue.page) for clue in clues]
    licenses = sorted({quoted.license for quoted in (page, *pages) if quoted is not None})
    number = parent.round + 1 if parent else 0
    return Question(
        parent=parent.id if parent else walk.id,
        walk=walk.id,
        corpus=walk.parent,
        name=f"{walk.name}.{number}",
        round=number,
        text=" ".join(draft.question.split()),
        answer=draft.answer.strip(),
        aliases=tuple(dict.fromkeys(alias.strip() for alias in draft.aliases if alias.strip())),
        answer_type=draft.answer_type,
        answer_page=page.id if page else draft.answer_page,
        clues=clues,
        license=" AND ".join(f"({name})" if " OR " in name else name for name in licenses),
        model=model,
        prompt=prompt,
    )
