"""Base classes of records and their identity by content."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict


class _MeasuredMarker:
    """Marker of measured fields: they are stored but excluded from the record's identity."""


MEASURED = _MeasuredMarker()
Seconds = Annotated[float, MEASURED]
ArtifactHash = str
TestId = str


class Record(BaseModel):
    """Base of all records: frozen, keyword-only, identified by content."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    @cached_property
    def id(self) -> str:
        """Sha256 (hex) of the canonical JSON of the record's class and identifying fields."""
        body = self.model_dump(mode="json", exclude=_collect_measured_fields(self))
        text = json.dumps({"record": type(self).__name__, **body}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class Part(BaseModel):
    """Base of the parts of records: frozen, without identity."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _collect_measured_fields(model: BaseModel) -> dict[str, Any]:
    """Return the measured fields of a record and of its parts, as `exclude` of `model_dump`."""
    found: dict[str, Any] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if MEASURED in field.metadata:
            found[name] = True
        elif isinstance(value, Part) and (inner := _collect_measured_fields(value)):
            found[name] = inner
    return found
