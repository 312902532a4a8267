"""Pages of a corpus, and problems of files and rows that are none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

NO_ASSERTION = "NOASSERTION"
"""Licence of a page that names none."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page. `links` are ids or addresses of other pages, `date` is ISO 8601 or empty, `license` an SPDX expression.

    `attributes` has facts that a program read: relation -> values. Pages of changes have them, and `type` among them.
    """

    id: str
    url: str
    title: str
    text: str
    links: tuple[str, ...] = ()
    date: str = ""
    license: str = NO_ASSERTION
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the page as JSON data, without attributes where it has none."""
        data = asdict(self)
        data["links"] = list(self.links)
        data["attributes"] = {name: list(values) for name, values in self.attributes.items()}
        return data if self.attributes else {name: value for name, value in data.items() if name != "attributes"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Page:
        """Return the page of a line of a corpus."""
        attributes = {name: tuple(values) for name, values in data.get("attributes", {}).items()}
        return cls(**{**data, "links": tuple(data["links"]), "attributes": attributes})

    def format_line(self) -> bytes:
        """Return the page as a line of a corpus: canonical JSON."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode(errors="replace") + b"\n"


@dataclass(frozen=True, kw_only=True)
class PageProblem:
    """A file or row without a page. `place` names it, such as `pages.jsonl:3`."""

    place: str
    detail: str

    def format_line(self) -> str:
        """Return the problem as a line for people."""
        return f"{self.place}: {self.detail}"
