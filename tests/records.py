"""Small complete chains of records for tests of storing, showing and passing them on."""

from __future__ import annotations

import hashlib
from typing import Any

from taskdb.records import (
    BuildPlan,
    Candidate,
    Certificate,
    Counts,
    Environment,
    FailureKind,
    Kind,
    PullRequest,
    Rejection,
    RunVariant,
    Shape,
    Stage,
    Task,
    TestCommand,
    TestRun,
    Verification,
)
from taskdb.records.tags import ChangeKind, Size, Tag, TagEvidence, Tags
from taskdb.records.verdicts import Verdict

PLAN = BuildPlan(
    language="python",
    language_version="3.11",
    exclude_newer="2024-03-01",
    system_packages=(),
    dependency_steps=(),
    source_steps=(),
    test=TestCommand(framework="pytest", argv=("pytest",)),
)


def make_sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_pull_request(number: int = 1, **changes: Any) -> PullRequest:
    fields: dict[str, Any] = {
        "source": "git:greet",
        "repo": "ada/greet",
        "name": f"ada__greet-{number}",
        "number": number,
        "shape": Shape.SQUASH,
        "title": f"Fix {number}",
        "body": "It was wrong.",
        "author": "Ada",
        "merged_at": f"2024-03-{number % 28 + 1:02d}T12:00:00+00:00",
        "base_commit": "b" * 40,
        "merge_commit": make_sha(f"merge {number}")[:40],
    }
    return PullRequest(**fields | changes)


def make_tags(pull: PullRequest, *kinds: ChangeKind, **changes: Any) -> Tags:
    sign = TagEvidence(rule="title", quote="fix", weight=2.0)
    result = tuple(Tag(change_kind=kind, confidence=0.9, evidence=(sign,)) for kind in kinds or (ChangeKind.BUGFIX,))
    fields: dict[str, Any] = {
        "parent": pull.id,
        "name": pull.name,
        "change_kinds": result,
        "activities": (),
        "languages": (),
        "size": Size.S,
        "changed_files": 2,
        "changed_lines": 12,
        "areas": ("greet",),
        "route": ("bugfix", "review"),
        "stop_reason": "",
    }
    return Tags(**fields | changes)


def make_candidate(pull: PullRequest, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "parent": pull.id,
        "source": pull.source,
        "repo": pull.repo,
        "name": pull.name,
        "language": "python",
        "base_commit": pull.base_commit,
        "merge_commit": pull.merge_commit,
        "created_at": pull.merged_at,
        "version": "1.0",
        "problem_statement": f"{pull.title}: the greeting is wrong",
        "hints": "",
        "license": "MIT",
        "gold_patch": make_sha(f"gold {pull.name}"),
        "test_patch": make_sha(f"test {pull.name}"),
        "gold_files": ("greet.py",),
        "test_files": ("tests/test_greet.py",),
        "gold_lines": 4,
        "test_lines": 6,
    }
    return Candidate(**fields | changes)


def make_environment(of: Candidate, **changes: Any) -> Environment:
    fields: dict[str, Any] = {
        "parent": of.id,
        "name": of.name,
        "plan": PLAN,
        "attempt": 1,
        "image": f"mergemill/{of.name}:1",
        "image_digest": "sha256:" + make_sha("image"),
        "image_bytes": 1000,
        "collected_share": 1.0,
        "counts": Counts(passed=3),
        "base_report": make_sha("report"),
        "log": make_sha("log"),
        "seconds": 2.0,
        "test_seconds": 1.0,
    }
    return Environment(**fields | changes)


def make_test_run(**changes: Any) -> TestRun:
    fields: dict[str, Any] = {
        "variant": RunVariant.GOLD,
        "seed": 0,
        "script": "",
        "image_digest": "",
        "report": make_sha("report"),
        "log": make_sha("log"),
        "exit_code": 0,
        "killed_by": None,
        "seconds": 1.0,
        "test_seconds": 1.0,
        "counts": Counts(passed=3),
    }
    return TestRun(**fields | changes)


def make_verification(of: Environment, **changes: Any) -> Verification:
    fields: dict[str, Any] = {
        "parent": of.id,
        "candidate": of.parent,
        "name": of.name,
        "FAIL_TO_PASS": (("tests/test_greet.py::test_new", FailureKind.ASSERTION),),
        "PASS_TO_PASS": ("tests/test_greet.py::test_old", "tests/test_greet.py::test_older"),
        "flaky": (),
        "controls": (),
        "eval_files": (),
        "eval_script": make_sha("script"),
        "control_patch": None,
        "repeats": 3,
        "runs": (),
        "seconds": 5.0,
    }
    return Verification(**fields | changes)


def make_verdict(of: Verification, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "parent": of.id,
        "candidate": of.candidate,
        "name": of.name,
        "underspecified": 0.3,
        "unfair_tests": 0.4,
        "findings": (),
        "set_aside": None,
    }
    return Verdict(**fields | changes)


def make_task(of: Verification, candidate: Candidate, **changes: Any) -> Task:
    fields: dict[str, Any] = {
        "parent": of.id,
        "candidate": candidate.id,
        "source": candidate.source,
        "name": f"{candidate.name}.bugfix",
        "kind": Kind.BUGFIX,
        "repo": candidate.repo,
        "language": "python",
        "language_version": "3.11",
        "version": "1.0",
        "base_commit": candidate.base_commit,
        "created_at": candidate.created_at,
        "license": candidate.license,
        "problem_statement": candidate.problem_statement,
        "hints": "",
        "gold_patch": candidate.gold_patch,
        "test_patch": candidate.test_patch,
        "control_patch": None,
        "FAIL_TO_PASS": of.FAIL_TO_PASS,
        "PASS_TO_PASS": of.PASS_TO_PASS,
        "tests": candidate.tests,
        "controls": (),
        "eval_script": of.eval_script,
        "plan": PLAN,
        "image": f"mergemill/{candidate.name}:1",
        "image_digest": "sha256:" + make_sha("image"),
        "test_seconds": 1.0,
    }
    return Task(**fields | changes)


def make_certificate(of: Task, **changes: Any) -> Certificate:
    fields: dict[str, Any] = {
        "parent": of.id,
        "name": of.name,
        "gold": (1.0, 1.0, 1.0),
        "noop": 0.0,
        "image_digest": of.image_digest,
        "seconds": 3.0,
    }
    return Certificate(**fields | changes)


def make_rejection(of: Any, stage: Stage, reason: str = "no-tests", **changes: Any) -> Rejection:
    fields: dict[str, Any] = {
        "parent": of.id,
        "name": of.name,
        "source": "git:greet",
        "stage": stage,
        "reason": reason,
        "detail": f"because of {reason}",
    }
    return Rejection(**fields | changes)
