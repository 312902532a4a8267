"""Small whole chains of records for tests of what stores, shows and passes them on."""

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
    Shape,
    Stage,
    Task,
    TestCommand,
    Verification,
)
from taskdb.tags import ChangeKind, Sign, Size, Tag, Tags
from taskdb.verdicts import Verdict

PLAN = BuildPlan(
    language="python", language_version="3.11", exclude_newer="2024-03-01", system_packages=(), dependency_steps=(),
    source_steps=(), test=TestCommand(framework="pytest", argv=("pytest",)),
)  # fmt: skip


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def pull_request(number: int = 1, **changes: Any) -> PullRequest:
    fields: dict[str, Any] = {
        "source": "git:greet", "repo": "ada/greet", "name": f"ada__greet-{number}", "number": number,
        "shape": Shape.SQUASH, "title": f"Fix {number}", "body": "It was wrong.", "author": "Ada",
        "merged_at": f"2024-03-{number % 28 + 1:02d}T12:00:00+00:00", "base_commit": "b" * 40,
        "merge_commit": sha(f"merge {number}")[:40],
    }  # fmt: skip
    return PullRequest(**fields | changes)


def tags(pull: PullRequest, *kinds: ChangeKind, **changes: Any) -> Tags:
    sign = Sign(rule="title", quote="fix", weight=2.0)
    told = tuple(Tag(kind=kind, confidence=0.9, signs=(sign,)) for kind in kinds or (ChangeKind.BUGFIX,))
    fields: dict[str, Any] = {
        "parent": pull.id, "name": pull.name, "kinds": told, "activities": (), "languages": (), "size": Size.S,
        "changed_files": 2, "changed_lines": 12, "areas": ("greet",), "route": ("bugfix", "review"), "stops": "",
    }  # fmt: skip
    return Tags(**fields | changes)


def candidate(pull: PullRequest, **changes: Any) -> Candidate:
    fields: dict[str, Any] = {
        "parent": pull.id, "source": pull.source, "repo": pull.repo, "name": pull.name, "language": "python",
        "base_commit": pull.base_commit, "merge_commit": pull.merge_commit, "created_at": pull.merged_at,
        "version": "1.0", "problem_statement": f"{pull.title}: the greeting is wrong", "hints": "", "license": "MIT",
        "gold_patch": sha(f"gold {pull.name}"), "test_patch": sha(f"test {pull.name}"),
        "gold_files": ("greet.py",), "test_files": ("tests/test_greet.py",), "gold_lines": 4, "test_lines": 6,
    }  # fmt: skip
    return Candidate(**fields | changes)


def environment(of: Candidate, **changes: Any) -> Environment:
    fields: dict[str, Any] = {
        "parent": of.id, "name": of.name, "plan": PLAN, "attempt": 1, "image": f"mergemill/{of.name}:1",
        "image_digest": "sha256:" + sha("image"), "image_bytes": 1000, "collected_share": 1.0,
        "counts": Counts(passed=3), "base_report": sha("report"), "log": sha("log"), "seconds": 2.0,
        "test_seconds": 1.0,
    }  # fmt: skip
    return Environment(**fields | changes)


def verification(of: Environment, **changes: Any) -> Verification:
    fields: dict[str, Any] = {
        "parent": of.id, "candidate": of.parent, "name": of.name,
        "FAIL_TO_PASS": (("tests/test_greet.py::test_new", FailureKind.ASSERTION),),
        "PASS_TO_PASS": ("tests/test_greet.py::test_old", "tests/test_greet.py::test_older"), "flaky": (),
        "twins": (), "eval_files": (), "eval_script": sha("script"), "twin_patch": None, "repeats": 3, "runs": (),
        "seconds": 5.0,
    }  # fmt: skip
    return Verification(**fields | changes)


def verdict(of: Verification, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {
        "parent": of.id, "candidate": of.candidate, "name": of.name, "underspecified": 0.3, "unfair_tests": 0.4,
        "findings": (), "set_aside": None,
    }  # fmt: skip
    return Verdict(**fields | changes)


def task(of: Verification, candidate: Candidate, **changes: Any) -> Task:
    fields: dict[str, Any] = {
        "parent": of.id, "candidate": candidate.id, "source": candidate.source, "name": f"{candidate.name}.bugfix",
        "kind": Kind.BUGFIX, "repo": candidate.repo, "language": "python", "language_version": "3.11",
        "version": "1.0", "base_commit": candidate.base_commit, "created_at": candidate.created_at,
        "license": candidate.license, "problem_statement": candidate.problem_statement, "hints": "",
        "gold_patch": candidate.gold_patch, "test_patch": candidate.test_patch, "twin_patch": None,
        "FAIL_TO_PASS": of.FAIL_TO_PASS, "PASS_TO_PASS": of.PASS_TO_PASS, "twins": (),
        "eval_script": of.eval_script, "plan": PLAN, "image": f"mergemill/{candidate.name}:1",
        "image_digest": "sha256:" + sha("image"), "test_seconds": 1.0,
    }  # fmt: skip
    return Task(**fields | changes)


def certificate(of: Task, **changes: Any) -> Certificate:
    fields: dict[str, Any] = {
        "parent": of.id, "name": of.name, "gold": (1.0, 1.0, 1.0), "noop": 0.0, "image_digest": of.image_digest,
        "seconds": 3.0,
    }  # fmt: skip
    return Certificate(**fields | changes)


def rejection(of: Any, stage: Stage, reason: str = "no-tests", **changes: Any) -> Rejection:
    fields: dict[str, Any] = {
        "parent": of.id, "name": of.name, "source": "git:greet", "stage": stage, "reason": reason,
        "detail": f"because of {reason}",
    }  # fmt: skip
    return Rejection(**fields | changes)
