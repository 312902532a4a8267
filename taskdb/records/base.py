"""Base classes of records and their identity by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict


class _MeasuredMarker:
    """Marker of measured fields: they are stored but excluded from the record's identity."""


class _LaterMarker:
    """Marker of fields added to a record after others were stored: identifying only where they differ from the default.

    A record without the field and a record with its default are the same record, so ids stored before stay valid.
    """


MEASURED = _MeasuredMarker()
LATER = _LaterMarker()
Seconds = Annotated[float, MEASURED]
ArtifactHash = str
TestId = str


class Record(BaseModel):
    """Base of all records: frozen, keyword-only, identified by content."""

    # Validators are built when a record is first read: most commands read none.
    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,), defer_build=True)

    @cached_property
    def id(self) -> str:
        """Sha256 (hex) of the canonical JSON of the record's class and identifying fields."""
        body = self.model_dump(mode="json", exclude=_collect_excluded_fields(self))
        text = json.dumps({"record": type(self).__name__, **body}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, see pydantic; with other fields that identify it, it has an id of its own."""
        copy = super().model_copy(update=update, deep=deep)
        if any(MEASURED not in type(copy).model_fields[name].metadata for name in update or ()):
            copy.__dict__.pop("id", None)  # of the original, where that was read
        return copy


class Part(BaseModel):
    """Base of the parts of records: frozen, without identity."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def _collect_excluded_fields(model: BaseModel) -> dict[str, Any]:
    """Return the fields of a record and of its parts that do not identify it, as `exclude` of `model_dump`.

    These are measured fields, and later fields that have their default; in sequences of parts, only the latter.
    """
    excluded_fields: dict[str, Any] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        is_default = LATER in field.metadata and value == field.get_default(call_default_factory=True)
        if MEASURED in field.metadata or is_default:
            excluded_fields[name] = True
        elif isinstance(value, Part) and (inner := _collect_excluded_fields(value)):
            excluded_fields[name] = inner
        elif isinstance(value, tuple) and value and isinstance(value[0], Part):
            excluded_fields |= _collect_from_parts(name, value)
    return excluded_fields


def _collect_from_parts(name: str, parts: tuple[Part, ...]) -> dict[str, Any]:
    """Return the later fields with their defaults of a sequence of parts: its name -> index -> fields."""
    excluded = {}
    for index, part in enumerate(parts):
        fields = type(part).model_fields.items()
        later = {
            key: True
            for key, field in fields
            if LATER in field.metadata and getattr(part, key) == field.get_default(call_default_factory=True)
        }
        if later:
            excluded[index] = later
    return {name: excluded} if excluded else {}
