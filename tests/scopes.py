"""Scopes with the prerequisites of their kinds, as the command line makes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mergemill.pipeline.kinds import DEFAULT_KINDS, get_prerequisites
from taskdb.records import Kind
from taskdb.records.work import Scope


def make_scope(*, kinds: Iterable[Kind] = DEFAULT_KINDS, **fields: Any) -> Scope:
    return Scope(kinds=get_prerequisites(kinds), **fields)
