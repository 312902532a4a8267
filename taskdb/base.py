"""What records are made of: identity by content, and what is left out of it."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict


class _Measured:
    """Marks a field that was measured rather than found out: stored, but not part of the record's identity."""


MEASURED = _Measured()
Seconds = Annotated[float, MEASURED]
ArtifactHash = str
TestId = str


class Record(BaseModel):
    """Base of all records: frozen, keyword-only, identified by content."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    @cached_property
    def id(self) -> str:
        """Sha256 (hex) of the canonical JSON of the kind of record and its identifying fields."""
        body = self.model_dump(mode="json", exclude=_measured(self))
        text = json.dumps({"record": type(self).__name__, **body}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class Part(BaseModel):
    """Base of the parts of records: frozen, with no identity of their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _measured(model: BaseModel) -> dict[str, Any]:
    """The fields of a record that were measured, and those of its parts, as `model_dump` takes them to be left out."""
    found: dict[str, Any] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if MEASURED in field.metadata:
            found[name] = True
        elif isinstance(value, Part) and (inner := _measured(value)):
            found[name] = inner
    return found
