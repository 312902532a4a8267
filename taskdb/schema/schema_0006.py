"""JSON of records as schema 0006 had it, and how it became that of schema 0007.

The migration 0007 rewrites databases with these functions; readers of bundles use them for bundles of that time. They
describe a step of the past and do not change when records do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

Body = dict[str, Any]

REASONS = {
    "tests-cannot-be-put": "test-patch-does-not-apply",
    "not-in-default-line": "not-on-default-branch",
    "part-is-no-task": "part-without-task",
    "does-not-hold-together": "fails-together",
    "not-played": "not-simulated",
    "no-mutant-noticed": "no-mutant-detected",
    "never-ends": "times-out",
    "refused-edit": "rejected-edit",
    "seen-before": "duplicate-plan",
}
VARIANTS = {"base": "base", "tested": "test-only", "solved": "gold", "twin": "control"}


def _rename(body: Body, **names: str) -> None:
    for old, new in names.items():
        if old in body:
            body[new] = body.pop(old)


def _rename_published(body: Body) -> None:
    if body.get("published"):
        _rename(body["published"], fail_to_pass="FAIL_TO_PASS", pass_to_pass="PASS_TO_PASS")  # noqa: S106


def _rename_attempts(body: Body) -> None:
    for attempt in body.get("attempts", ()):
        _rename(attempt, by="proposed_by", why="rationale", undone="rolled_back")
        attempt["reason"] = REASONS.get(attempt["reason"], attempt["reason"])


def _rename_in_tags(body: Body) -> None:
    _rename(body, kinds="change_kinds", stops="stop_reason")
    for tag in body["change_kinds"]:
        _rename(tag, kind="change_kind", signs="evidence")


def _rename_in_candidate(body: Body) -> None:
    _rename(body, kind="change_kind")
    _rename_published(body)


def _rename_in_verification(body: Body) -> None:
    _rename(body, twins="controls", twin_patch="control_patch")
    for run in body["runs"]:
        _rename(run, kind="variant")
        run["variant"] = VARIANTS[run["variant"]]
    body["flaky"] = [
        [test, statuses.replace("tested: ", "test-only: ", 1).replace("solved: ", "gold: ", 1)]
        for test, statuses in body["flaky"]
    ]


def _rename_in_verdict(body: Body) -> None:
    for finding in body["findings"]:
        _rename(finding, place="quote_source")
    for opinion in body.get("opinions", ()):
        _rename(opinion, void="invalid_reason")
        for claim in (*opinion.get("leaks", ()), *opinion.get("missing", ())):
            _rename(claim, place="quote_source")
    if body.get("completion"):
        _rename(body["completion"], refused="rejected")


def _rename_in_task(body: Body) -> None:
    _rename(body, twins="controls", twin_patch="control_patch", others="other_candidates")
    if body.get("oracle") and body["oracle"]["form"] == "test-writing":
        _rename(body["oracle"], lines="gold_spans", covered="base_coverage", unreached="uncovered_spans")


def _rename_in_rejection(body: Body) -> None:
    body["reason"] = REASONS.get(body["reason"], body["reason"])
    _rename_attempts(body)


def _rename_nothing(_body: Body) -> None:
    """The record has no renamed key of its own; its parents' ids may have changed."""


MEASURED_TASK = ("image_digest", "test_seconds")
RECORDS: tuple[tuple[str, str, Callable[[Body], None], tuple[str, ...]], ...] = (
    ("pull_request", "PullRequest", _rename_published, ()),
    ("tagging", "Tags", _rename_in_tags, ()),
    ("candidate", "Candidate", _rename_in_candidate, ("change_kind", "discussion")),
    (
        "environment",
        "Environment",
        _rename_attempts,
        ("attempt", "attempts", "image_digest", "image_bytes", "base_report", "log", "seconds", "test_seconds"),
    ),
    ("verification", "Verification", _rename_in_verification, ("runs", "seconds")),
    (
        "verdict",
        "Verdict",
        _rename_in_verdict,
        ("opinions", "agreement", "alpha", "completion", "tokens", "cost", "seconds"),
    ),
    ("task", "Task", _rename_in_task, MEASURED_TASK),
    ("certificate", "Certificate", _rename_nothing, ("image_digest", "seconds")),
    ("rejection", "Rejection", _rename_in_rejection, ("detail", "log", "attempts", "seconds")),
    ("bundle", "Bundle", _rename_nothing, ("out", "at")),
)
"""Table, name of the record, its renaming, and its fields that were no part of its identity at this revision."""

MEASURED_ORACLE = {
    "test-writing": ("base_coverage",),
    "performance": ("workload", "tests", "clock", "ratio", "threshold"),
    "review": (),
}
"""The same for the parts of a task's oracle."""
OLD_MEASURED_ORACLE = MEASURED_ORACLE | {"test-writing": ("covered",)}
"""The same, by the names of schema 0006."""


def compute_id(
    record: str,
    body: Body,
    measured: tuple[str, ...],
    measured_oracle: Mapping[str, tuple[str, ...]] = MEASURED_ORACLE,
) -> str:
    """Return the id of a record by its JSON and the names of its measured fields, by default of schema 0007."""
    identity = {name: value for name, value in body.items() if name not in measured}
    oracle = identity.get("oracle")
    if oracle:
        left_out = measured_oracle[oracle["form"]]
        identity["oracle"] = {name: value for name, value in oracle.items() if name not in left_out}
    return hash_record(record, identity)


def hash_record(record: str, identity: Body) -> str:
    """Return the sha256 of a record's class name and its identifying fields."""
    text = json.dumps({"record": record, **identity}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_task(body: Body) -> bool:
    """Return whether a task's JSON has the names of schema 0006."""
    return "twins" in body


def upgrade_task(body: Body) -> tuple[str, Body]:
    """Return the id that a task's JSON had in schema 0006, and the JSON as schema 0007 has it."""
    upgraded: Body = json.loads(json.dumps(body))
    _rename_in_task(upgraded)
    return compute_id("Task", body, MEASURED_TASK, OLD_MEASURED_ORACLE), upgraded
