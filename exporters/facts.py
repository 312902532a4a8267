"""Facts about a task that every format carries, so that users can select tasks without the database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskdb.schema.measures import count_tokens
from taskdb.schema.task_columns import EXPORTED

if TYPE_CHECKING:
    from exporters.item import ExportItem


def build_facts(item: ExportItem) -> dict[str, Any]:
    """Return the facts about a task under the names of the view `tasks`; a fact that is not known is None.

    `difficulty` is an object: `MODEL/SCAFFOLD` -> counts. All other values are text, numbers or None.
    """
    task, row = item.task, item.facts
    difficulty = row.get("difficulty") or {}
    known = {
        "kind": task.kind.value,
        "language": task.language,
        "license": task.license,
        "tests": task.tests.value,
        "certificate": item.certificate.id if item.certificate else None,
        "n_fail_to_pass": len(task.FAIL_TO_PASS),
        "n_pass_to_pass": len(task.PASS_TO_PASS),
        "test_seconds": row.get("test_seconds", task.test_seconds),
        "statement_tokens": row.get("statement_tokens", count_tokens(task.problem_statement)),
    }
    others = {name: row.get(name) for name in EXPORTED if name not in known and name != "difficulty"}
    return known | others | {"difficulty": json.loads(difficulty) if isinstance(difficulty, str) else dict(difficulty)}
