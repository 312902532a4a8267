"""Instruction tasks as rows of OctoCodingBench (`mergemill.bench.octo_rows`), from which they can be read again."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.instructions.wording import SOURCE_NAMES
from exporters.bundle_records import describe_record, list_artifacts
from mergemill.bench.octo_rows import OWN_KEY, SOURCES
from samplers.subjects.instructions import make_guidance
from taskdb.artifacts import Artifacts
from taskdb.records import Candidate, PullRequest, Record, Task
from taskdb.records.instructions import JUDGED, BoundConstraint, InstructionOracle, InstructionSource

SCAFFOLD = "claudecode"
"""Scaffold of a row: the benchmark's own harness needs a name, and our tasks are for any."""
IMPLEMENTED_FAMILIES = frozenset(("files", "code"))
"""Families of constraints whose items have the type `implementation`; all others have `compliance`."""
NO_CHECKLIST = "octo has rows of instruction tasks alone"

_ROW_NAMES: Mapping[InstructionSource, str] = {source: name for name, source in SOURCES.items()}


def explain_octo_exclusion(task: Task) -> str | None:
    """Return why a task cannot be a row; None where it can."""
    return None if isinstance(task.oracle, InstructionOracle) else NO_CHECKLIST


def make_octo_row(task: Task, lineage: Sequence[Record], artifacts: Artifacts, canary: str) -> dict[str, Any]:
    """Return the row of an instruction task, whose first key is OWN_KEY.

    Args:
        task: the task.
        lineage: records that it descends from, parents first, and after them its certificate if it has one.
        artifacts: store of its texts.
        canary: canary of its set.

    Raises:
        InputError: an artifact is missing.
    """
    oracle = require_checklist(task)
    if oracle.published is not None:
        bindings = {
            constraint.name: {"check": constraint.check, "arguments": constraint.arguments}
            for constraint in oracle.constraints
            if constraint.check != JUDGED
        }
        published: dict[str, Any] = json.loads(artifacts.get_text(oracle.published.row))
        return {OWN_KEY: {"canary": canary, "bindings": bindings}, **published}
    own = {
        "canary": canary,
        "records": [describe_record(record) for record in lineage],
        "artifacts": {key: _encode(artifacts.get(key)) for key in list_row_artifacts(lineage)},
    }
    return {OWN_KEY: own, **make_public_row(task)}


def list_row_artifacts(records: Iterable[Record]) -> list[str]:
    """Return the hashes of all artifacts that some records name, sorted."""
    named = (record for record in records if isinstance(record, PullRequest | Candidate | Task))
    return sorted({key for record in named for key in list_artifacts(record)})


def make_public_row(task: Task) -> dict[str, Any]:
    """Return the keys of the format for a task of our own.

    Instructions that another takes precedence over are left out, as they never count.
    """
    oracle = require_checklist(task)
    guidance = make_guidance(oracle)
    counted = [constraint for constraint in oracle.constraints if not constraint.overridden_by]
    checklist = {}
    for source, name in _ROW_NAMES.items():
        checks = [_make_check(constraint) for constraint in counted if constraint.source is source]
        if checks:
            checklist[name] = {"description": f"Instructions in {SOURCE_NAMES[source]}.", "checks": checks}
    ((main, _),) = Counter(constraint.source for constraint in counted).most_common(1)
    return {
        "instance_id": task.name,
        "user_query": [task.problem_statement, *guidance.turns],
        "system_prompt": guidance.system,
        "category": _ROW_NAMES[main],
        "image": task.image,
        "workspace_abs_path": task.require_plan().workdir,
        "scaffold": {"name": SCAFFOLD, "version": ""},
        "checklist": checklist,
    }


def require_checklist(task: Task) -> InstructionOracle:
    """Return the oracle of an instruction task."""
    if not isinstance(task.oracle, InstructionOracle):
        raise TypeError(f"{task.name} has no instructions")
    return task.oracle


def _make_check(constraint: BoundConstraint) -> dict[str, str]:
    is_judged = constraint.check == JUDGED
    return {
        "check_id": constraint.name,
        "description": str(constraint.arguments["question"]) if is_judged else constraint.text,
        "check_type": "implementation" if constraint.family in IMPLEMENTED_FAMILIES else "compliance",
    }


def _encode(content: bytes) -> str | dict[str, str]:
    """Return an artifact as JSON: its text, or an object with base64 where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
