"""Tried edits for tests."""

from __future__ import annotations

from typing import Any

from verifiers.strength import EditKind, EditOutcome, TriedEdit


def make_edit(kind: EditKind, outcome: EditOutcome, by: str = "", **fields: Any) -> TriedEdit:
    """Return an edit of line 3 of `src/cart.py` with an outcome."""
    values = {"operator": "any", "path": "src/cart.py", "first_line": 3, "last_line": 3, "detail": ""} | fields
    return TriedEdit(kind=kind, outcome=outcome, by=by, **values)
