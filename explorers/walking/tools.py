"""The two tools of walks and answers, `search` and `browse`, over a corpus. Results are texts, pages are data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from backends.llm.base import Tool, ToolCall
from explorers.corpora.pages import Page
from explorers.search.protocol import Hit

HITS = 10
"""Pages that a query returns."""
PASSAGES = 5
"""Passages of a page that `browse` returns."""
MAX_QUERIES = 5
SEARCH = Tool(
    name="search",
    description="Search the corpus. Returns title, URL and a snippet of the best pages for each query.",
    parameters={
        "type": "object",
        "properties": {
            "queries": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_QUERIES}
        },
        "required": ["queries"],
        "additionalProperties": False,
    },
)
BROWSE = Tool(
    name="browse",
    description="Open a page by its URL. Returns its passages that fit the query best, verbatim.",
    parameters={
        "type": "object",
        "properties": {"url": {"type": "string"}, "query": {"type": "string"}},
        "required": ["url", "query"],
        "additionalProperties": False,
    },
)
TOOLS = (SEARCH, BROWSE)


class PageSource(Protocol):
    """Search and pages that the tools work on, such as a corpus."""

    def search(self, query: str, n: int) -> list[Hit]:
        """Return the best pages for a query; see `explorers.search.protocol.PageSearch`."""
        ...

    def find_page(self, page: str) -> Page | None:
        """Return a page by id or address; None where there is none."""
        ...

    def find_passages(self, page: Page, query: str, n: int) -> list[str]:
        """Return the passages of a page that fit a query best, verbatim, in its order."""
        ...


@dataclass(frozen=True, kw_only=True)
class ToolStep:
    """A call of a tool and its result. `page`: id of the page that it opened, or empty; `is_malformed`: no result."""

    tool: str
    arguments: Mapping[str, Any] | None
    result: str
    page: str = ""
    is_malformed: bool = False

    @property
    def digest(self) -> str:
        """Sha256 (hex) of the result."""
        return hashlib.sha256(self.result.encode(errors="replace")).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON data."""
        return {"tool": self.tool, "arguments": self.arguments, "result": self.result, "page": self.page}


@dataclass(frozen=True, kw_only=True)
class CorpusTools:
    """The tools over pages. A wrong call has a result that names the problem, as an error is no end."""

    pages: PageSource

    def call(self, call: ToolCall) -> ToolStep:
        """Return the step of a model's call."""
        if call.arguments is None:
            return self._refuse(call, f"the arguments cannot be read: {call.problem}")
        if call.name == SEARCH.name:
            return self._search(call, call.arguments)
        if call.name == BROWSE.name:
            return self._browse(call, call.arguments)
        return self._refuse(call, f"there is no tool {call.name}; the tools are search and browse")

    def _search(self, call: ToolCall, arguments: Mapping[str, Any]) -> ToolStep:
        queries = arguments.get("queries")
        if not isinstance(queries, list) or not queries or not all(isinstance(query, str) for query in queries):
            return self._refuse(call, "`queries` is a list of texts, at least a text")
        parts = [self._write_hits(query, self.pages.search(query, HITS)) for query in queries[:MAX_QUERIES]]
        return ToolStep(tool=call.name, arguments=arguments, result="\n\n".join(parts))

    def _browse(self, call: ToolCall, arguments: Mapping[str, Any]) -> ToolStep:
        url, query = arguments.get("url"), arguments.get("query", "")
        if not isinstance(url, str) or not isinstance(query, str):
            return self._refuse(call, "`url` and `query` are texts")
        page = self.pages.find_page(url)
        if page is None:
            return ToolStep(tool=call.name, arguments=arguments, result=f"error: there is no page {url}")
        passages = self.pages.find_passages(page, query, PASSAGES)
        result = "\n".join([f"title: {page.title}", f"url: {page.url}", f"id: {page.id}", "", "\n\n".join(passages)])
        return ToolStep(tool=call.name, arguments=arguments, result=result, page=page.id)

    def _write_hits(self, query: str, hits: Sequence[Hit]) -> str:
        lines = [f"query: {query}"]
        lines += [f"{rank}. {hit.title}\n   url: {hit.url}\n   {hit.snippet}" for rank, hit in enumerate(hits, 1)]
        return "\n".join(lines if hits else [*lines, "no page"])

    def _refuse(self, call: ToolCall, problem: str) -> ToolStep:
        return ToolStep(tool=call.name, arguments=call.arguments, result=f"error: {problem}", is_malformed=True)
