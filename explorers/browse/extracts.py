"""Extracts of pages by a model, each with quotes that a program finds in the page; without them, the best passages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import BaseModel, Field

from backends.llm.meter import UsageMeter
from explorers.answering.matching import is_verbatim
from explorers.corpora.corpus import CorpusReader
from explorers.corpora.pages import Page
from explorers.model_requests import (
    PROMPTS,
    ExplorerModels,
    ExplorerRole,
    RequestFailedError,
    RequestKey,
    StructuredRequest,
    write_schema,
)
from explorers.search.protocol import Hit

EXTRACT_PROMPT = "extract-1"
MAX_PASSAGES = 40
"""Passages of a page that the model reads: of longer pages those that fit the query best."""


class PageExtract(BaseModel):
    """An extract. `quotes` stand in the page word for word; none where the page has nothing about the query."""

    extract: str
    quotes: list[str] = Field(default_factory=list, max_length=5)


@dataclass(frozen=True, kw_only=True)
class ExtractedPages:
    """Pages of a corpus whose passages are extracts of a model (`explorers.walking.tools.PageSource`)."""

    corpus: CorpusReader
    models: ExplorerModels
    meter: UsageMeter

    def search(self, query: str, n: int) -> list[Hit]:
        """Return the best pages for a query, as the corpus does."""
        return self.corpus.search(query, n)

    def find_page(self, page: str) -> Page | None:
        """Return a page by id or address; None where there is none."""
        return self.corpus.find_page(page)

    def find_passages(self, page: Page, query: str, n: int) -> list[str]:
        """Return an extract followed by its quotes; the best passages where the model gave none that is usable.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        if not query.strip():
            return self.corpus.find_passages(page, query, n)
        text = "\n\n".join(self.corpus.find_passages(page, query, MAX_PASSAGES))
        request = StructuredRequest(
            key=RequestKey(
                purpose="extract", subject=hashlib.sha256(page.format_line()).hexdigest(), prompt=EXTRACT_PROMPT
            ),
            model=self.models.names[ExplorerRole.WALKER],
            messages=PROMPTS.render_conversation(
                EXTRACT_PROMPT, query=query, text=f"{page.title}\n\n{text}", schema=write_schema(PageExtract)
            ),
            answer_type=PageExtract,
            check=lambda answer: _find_problem(answer, page),
        )
        try:
            answer = self.models.request(request, self.meter)
        except RequestFailedError:
            return self.corpus.find_passages(page, query, n)
        return [answer.extract, *answer.quotes] if answer.quotes else ["the page has nothing about it"]


def _find_problem(answer: PageExtract, page: Page) -> str:
    wrong = next((quote for quote in answer.quotes if not is_verbatim(quote, page.text)), "")
    if wrong:
        return f"the quote `{wrong[:80]}` is not in the page word for word"
    return "the extract has no quote" if answer.extract.strip() and not answer.quotes else ""
