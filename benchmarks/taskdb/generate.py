"""Generated changes with all their records, repository by repository, the same for the same seed.

About four tasks come from a verified change; for each task there are about two rejections, most of them of changes that
the miner rejects. A task has about 5 FAIL_TO_PASS and 200 PASS_TO_PASS tests, and neighbours of a repository share most
of them. Records are built without validation; a test reads them back with it.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from benchmarks.taskdb.trees import compute_base_commit
from benchmarks.taskdb.words import TextMaker
from languages.registry import get_language
from taskdb.records import (
    Candidate,
    Certificate,
    FailureKind,
    Kind,
    PullRequest,
    Rejection,
    RunVariant,
    Shape,
    Stage,
    Task,
    TestRun,
    Verification,
)
from taskdb.records.base import Record
from taskdb.records.discussion import AuthorKind, IssueLink, LinkOrigin
from taskdb.records.environments import Attempt, BuildPlan, Counts, Environment, Evidence, TestCommand
from taskdb.records.oracles import (
    CodeEdit,
    Defect,
    LineSpan,
    Oracle,
    PerformanceOracle,
    ReviewOracle,
    TestWritingOracle,
)
from taskdb.records.tags import Activity, ChangeKind, LanguageShare, Size, Tag, TagEvidence, Tags
from taskdb.records.verdicts import Finding, Interface, QuoteSource, Verdict
from taskdb.records.work import StageResult

R = TypeVar("R", bound=Record)

TASKS_PER_CHANGE = 4.1
"""Tasks of a verified change, on average."""
MINED_PER_VERIFIED = 4.6
"""Changes that the miner rejects, for each verified change."""
SKETCH_KEYS = 8
"""Keys for near duplicates per candidate; real candidates have about 32."""
PATCHES = 256
"""Distinct artifacts that patches, scripts and logs are taken from."""

LANGUAGES = ("python", "python", "python", "javascript", "typescript", "go", "rust", "java", "c++", "ruby", "php")
FRAMEWORKS = {
    "python": ("pytest", ("pytest", "-p", "no:cacheprovider"), "tests/{0}/test_{1}.py::Test{2}::test_{3}"),
    "javascript": ("jest", ("npx", "jest"), "test/{0}/{1}.test.js::{2} {3}"),
    "typescript": ("vitest", ("npx", "vitest", "run"), "src/{0}/{1}.test.ts::{2} > {3}"),
    "go": ("go-test", ("go", "test"), "{0}/{1}_test.go::Test{2}/{3}"),
    "rust": ("cargo-test", ("cargo", "test"), "tests/{0}.rs::{1}::{2}::{3}"),
    "java": ("maven", ("mvn", "test"), "src/test/java/org/{0}/{1}Test.java::{2}#{3}"),
    "c++": ("ctest", ("ctest",), "test/{0}/{1}.cpp::{2}.{3}"),
    "ruby": ("rspec", ("rspec",), "spec/{0}/{1}_spec.rb::{2} {3}"),
    "php": ("phpunit", ("phpunit",), "tests/{0}/{1}Test.php::{2}::{3}"),
}
LICENSES = ("MIT", "MIT", "MIT", "Apache-2.0", "Apache-2.0", "BSD-3-Clause", "GPL-3.0-only", "MPL-2.0", "NOASSERTION")
CHANGE_KINDS = (ChangeKind.BUGFIX, ChangeKind.BUGFIX, ChangeKind.FEATURE, ChangeKind.REFACTOR, ChangeKind.PERFORMANCE)
MINING_REASONS = ("no-tests", "no-tests", "no-tests", "too-large", "bot-author", "no-source", "duplicate", "tests-only")
BUILD_REASONS = ("install-failed", "no-tests-collected", "no-plan", "timed-out")
VERIFY_REASONS = ("no-fail-to-pass", "no-fail-to-pass", "flaky", "test-patch-does-not-apply")
KIND_REASONS = {
    Kind.FEATURE: "not-a-feature",
    Kind.PERFORMANCE: "not-faster",
    Kind.TEST_WRITING: "no-mutant-detected",
    Kind.COMBINED: "fails-together",
    Kind.INJECTED: "no-mutant-detected",
}
FINDINGS = ("message-not-stated", "name-not-stated", "too-short", "link-only", "solution-in-statement")


@dataclass(frozen=True)
class GeneratedChange:
    """A change with everything that the stages made of it."""

    pull_request: PullRequest
    tags: Tags
    mined: Candidate | Rejection
    sketch: tuple[int, ...]
    results: tuple[StageResult, ...] = ()
    """Results of the stages after the miner, in the order of the data path."""


def plan_repositories(n_tasks: int) -> list[int]:
    """Return the number of verified changes of each repository: few have many."""
    n_changes = max(1, round(n_tasks / TASKS_PER_CHANGE))
    n_repositories = max(4, min(n_changes, n_tasks // 500))
    weights = [1 / (rank + 200) for rank in range(n_repositories)]
    return [max(1, round(n_changes * weight / sum(weights))) for weight in weights]


def make_patch(number: int) -> bytes:
    """Return one of the artifacts that generated records name: a patch of realistic length."""
    texts = TextMaker(random.Random(number))  # noqa: S311 - generated texts
    lines = [f"+    {texts.make_name(3)} = {texts.make_name()}({word!r})" for word in texts.make_words(40)]
    path = f"src/{texts.make_name(1)}.py"
    head = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n"
    return (head + "\n".join(lines) + "\n").encode()


def generate_repository(index: int, n_verified: int) -> Iterator[GeneratedChange]:
    """Yield the changes of one repository, oldest first."""
    yield from RepositoryGenerator(index).generate(n_verified)


def make_record(kind: type[R], /, **fields: Any) -> R:
    """Return a record that is not validated, which takes a tenth of the time."""
    return kind.model_construct(**fields)


@dataclass
class RepositoryGenerator:
    """State of one repository while its changes are generated."""

    index: int
    number: int = 0
    merged: datetime = field(default_factory=lambda: datetime(2016, 1, 1, tzinfo=UTC))
    tests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Choose what all changes of the repository share."""
        self.choices = random.Random(f"repository {self.index}")  # noqa: S311 - generated rows
        self.texts = TextMaker(self.choices)
        self.language = self.choices.choice(LANGUAGES)
        self.version = get_language(self.language).releases[-1].version
        self.license = self.choices.choice(LICENSES)
        self.owner, self.package = self.texts.make_name(1), f"{self.texts.make_name(1)}{self.index}"
        self.repo = f"{self.owner}/{self.package}"
        self.source = f"github:{self.repo}"
        self.merged += timedelta(hours=self.choices.randrange(20_000))
        self.framework, self.argv, self.form = FRAMEWORKS[self.language]
        self._grow_tests(self.texts.make_length(160, 0.6))
        self.most_tests = round(1.2 * len(self.tests))

    def generate(self, n_verified: int) -> Iterator[GeneratedChange]:
        """Yield the changes around so many verified ones."""
        for _ in range(n_verified):
            for _ in range(self._draw_number(MINED_PER_VERIFIED)):
                yield self._make_rejected_change()
            if self.choices.random() < 0.35:
                yield self._make_failed_change()
            if self.choices.random() < 0.02:
                yield self._make_waiting_change()
            yield self._make_verified_change()

    def _draw_number(self, mean: float) -> int:
        return int(mean) + (self.choices.random() < mean % 1)

    def _grow_tests(self, number: int) -> list[str]:
        new = [
            self.form.format(
                self.texts.make_name(1),
                self.texts.make_name(1),
                self.texts.make_name(1).title(),
                self.texts.make_name(3),
            )
            for _ in range(number)
        ]
        self.tests += new
        return new

    def _make_hash(self, *parts: object) -> str:
        return hashlib.sha256(repr((self.index, self.number, *parts)).encode()).hexdigest()

    def _pick_artifact(self) -> str:
        return PATCH_HASHES[self.choices.randrange(PATCHES)]

    # ---------------------------------------------------------------------------------------------------- changes

    def _make_pull_request(self) -> PullRequest:
        self.number += 1
        self.merged += timedelta(minutes=self.choices.randrange(30, 6000))
        body = self.texts.make_statement(90)
        issue = f"{self.repo}#{self.number}"
        links = (IssueLink(issue=issue, origin=LinkOrigin.BODY, quote=f"Fixes #{self.number}"),)
        return make_record(
            PullRequest,
            source=self.source,
            repo=self.repo,
            name=f"{self.owner}__{self.package}-{self.number}",
            number=self.number,
            shape=Shape.SQUASH,
            title=body.partition("\n")[0],
            body=body,
            author=self.texts.make_name(1),
            merged_at=self.merged.isoformat(),
            base_commit=compute_base_commit(self.repo, self.number, PATCH_PATHS),
            merge_commit=self._make_hash("merge")[:40],
            author_kind=AuthorKind.USER,
            labels=("bug",) if self.number % 3 == 0 else (),
            links=links if self.number % 2 else (),
            head_commit=self._make_hash("head")[:40],
            first_commit_at=(self.merged - timedelta(days=3)).isoformat(),
            base_ref="main",
            checks="success",
        )

    def _make_tags(self, pull: PullRequest, kind: ChangeKind, route: tuple[str, ...]) -> Tags:
        evidence = (TagEvidence(rule="title", quote=pull.title[:12], weight=2.0),)
        tags = (
            Tag(change_kind=kind, confidence=0.9, evidence=evidence),
            Tag(change_kind=ChangeKind.TEST, confidence=0.5, evidence=evidence),
        )
        return make_record(
            Tags,
            parent=pull.id,
            name=pull.name,
            change_kinds=tags,
            activities=(Activity.CORRECTIVE,),
            languages=(LanguageShare(language=self.language, files=3, share=1.0),),
            size=self.choices.choice((Size.XS, Size.S, Size.S, Size.M, Size.L)),
            changed_files=4,
            changed_lines=self.texts.make_length(60),
            areas=(self.package,),
            route=route,
            stop_reason="" if route else "no-tests",
        )

    def _make_rejected_change(self) -> GeneratedChange:
        pull = self._make_pull_request()
        reason = self.choices.choice(MINING_REASONS)
        rejection = self._make_rejection(pull, pull.name, Stage.MINE, reason)
        kind = self.choices.choice((*CHANGE_KINDS, ChangeKind.DOCUMENTATION, ChangeKind.DEPENDENCY, ChangeKind.CI))
        return GeneratedChange(pull, self._make_tags(pull, kind, ()), rejection, ())

    def _make_rejection(self, of: Record, name: str, stage: Stage, reason: str, **more: Any) -> Rejection:
        return make_record(
            Rejection,
            parent=of.id,
            name=name,
            source=self.source,
            stage=stage,
            reason=reason,
            detail=" ".join(self.texts.make_words(8)),
            seconds=round(self.choices.random(), 3),
            **more,
        )

    def _make_mined_candidate(self) -> tuple[PullRequest, Tags, Candidate, tuple[int, ...]]:
        pull = self._make_pull_request()
        kind = self.choices.choice(CHANGE_KINDS)
        candidate = make_record(
            Candidate,
            parent=pull.id,
            source=pull.source,
            repo=pull.repo,
            name=pull.name,
            language=self.language,
            base_commit=pull.base_commit,
            merge_commit=pull.merge_commit,
            created_at=pull.merged_at,
            version=f"1.{self.number}",
            problem_statement=self.texts.make_statement(),
            hints="",
            license=self.license,
            gold_patch=self._pick_artifact(),
            test_patch=self._pick_artifact(),
            gold_files=tuple(f"src/{self.texts.make_name(1)}.py" for _ in range(1 + self.number % 3)),
            test_files=(self.tests[-1].partition("::")[0],),
            gold_lines=self.texts.make_length(25),
            test_lines=self.texts.make_length(30),
            change_kind=kind,
        )
        sketch = tuple(self.choices.sample(range(1 << 40), SKETCH_KEYS))
        return pull, self._make_tags(pull, kind, ("bugfix", "review")), candidate, sketch

    def _make_waiting_change(self) -> GeneratedChange:
        return GeneratedChange(*self._make_mined_candidate())

    def _make_failed_change(self) -> GeneratedChange:
        """Return a change that ends in build or verify."""
        pull, tags, candidate, sketch = self._make_mined_candidate()
        results: list[StageResult] = []
        if self.choices.random() < 0.6:
            reason = self.choices.choice(BUILD_REASONS)
            attempts = self._make_attempts(3, reason)
            rejection = self._make_rejection(
                candidate, pull.name, Stage.BUILD, reason, attempts=attempts, log=self._pick_artifact()
            )
            results.append(self._finish(Stage.BUILD, rejection, pull))
        else:
            environment = self._make_environment(candidate)
            results.append(self._finish(Stage.BUILD, environment, pull))
            reason = self.choices.choice(VERIFY_REASONS)
            rejection = self._make_rejection(environment, pull.name, Stage.VERIFY, reason, log=self._pick_artifact())
            results.append(self._finish(Stage.VERIFY, rejection, pull))
        return GeneratedChange(pull, tags, candidate, sketch, tuple(results))

    def _make_verified_change(self) -> GeneratedChange:
        pull, tags, candidate, sketch = self._make_mined_candidate()
        environment = self._make_environment(candidate)
        verification = self._make_verification(environment, candidate)
        verdict = self._make_verdict(verification)
        results = [
            self._finish(Stage.BUILD, environment, pull),
            self._finish(Stage.VERIFY, verification, pull),
            self._finish(Stage.JUDGE, verdict, pull),
        ]
        main = Kind.FEATURE if candidate.change_kind is ChangeKind.FEATURE else Kind.BUGFIX
        tasks = [self._make_task(main, candidate, verification, environment)]
        if verdict.set_aside is not None:
            tasks = []
            results.append(self._reject_kind(verdict, pull, Kind.BUGFIX, verdict.set_aside))
        for kind, reason in KIND_REASONS.items():
            if kind is main:
                continue
            numbers = range(1, 1 + self._draw_number(KIND_TASKS[kind]))
            tasks += [self._make_task(kind, candidate, verification, environment, number) for number in numbers]
            if not numbers:
                results.append(self._reject_kind(verdict, pull, kind, reason))
        tasks += [
            self._make_task(Kind.REVIEW, candidate, verification, environment, number)
            for number in range(1, 1 + self._draw_number(KIND_TASKS[Kind.REVIEW]))
        ]
        results += [self._finish(Stage.DERIVE, task, pull, task.kind) for task in tasks]
        for task in tasks:
            if (drawn := self.choices.random()) < 0.9:
                certificate = self._make_certificate(task)
                results.append(self._finish(Stage.CERTIFY, certificate, pull, task.kind))
            elif drawn < 0.95:
                rejection = self._make_rejection(task, pull.name, Stage.CERTIFY, "gold-fails", kind=task.kind)
                results.append(self._finish(Stage.CERTIFY, rejection, pull, task.kind))
        return GeneratedChange(pull, tags, candidate, sketch, tuple(results))

    def _reject_kind(self, verdict: Verdict, pull: PullRequest, kind: Kind, reason: str) -> StageResult:
        rejection = self._make_rejection(verdict, pull.name, Stage.DERIVE, reason, kind=kind)
        return self._finish(Stage.DERIVE, rejection, pull, kind)

    def _finish(self, stage: Stage, result: Record, pull: PullRequest, kind: Kind | None = None) -> StageResult:
        seconds = round(self.choices.expovariate(0.1), 3)
        return StageResult(stage=stage, result=result, source=self.source, name=pull.name, seconds=seconds, kind=kind)

    # ---------------------------------------------------------------------------------------------------- records

    def _make_attempts(self, number: int, last: str) -> tuple[Attempt, ...]:
        return tuple(
            Attempt(
                number=n,
                proposed_by="draft" if n == 1 else "(skill missing-compiler)",
                rationale="" if n == 1 else " ".join(self.texts.make_words(10)),
                edits=() if n == 1 else ("add-system-package gcc",),
                reason="install-failed" if n < number else last,
                detail=" ".join(self.texts.make_words(12)),
                seconds=round(self.choices.expovariate(0.05), 3),
            )
            for n in range(1, number + 1)
        )

    def _make_environment(self, candidate: Candidate) -> Environment:
        evidence = tuple(
            Evidence(
                choice=choice, value="3.11", path="pyproject.toml", line=line, note=" ".join(self.texts.make_words(4))
            )
            for line, choice in enumerate(("language_version", "dependency_steps", "source_steps", "test", "env"), 10)
        )
        plan = make_record(
            BuildPlan,
            language=self.language,
            language_version=self.version,
            exclude_newer=candidate.created_at[:10],
            system_packages=("gcc", "libffi-dev"),
            dependency_steps=(f"pip install {' '.join(self.texts.make_name(1) for _ in range(12))}",),
            source_steps=("pip install --no-deps --no-build-isolation -e .",),
            test=TestCommand(framework=self.framework, argv=self.argv, paths=("tests",)),
            manifests=(("pyproject.toml", self._make_hash("manifest")[:40]),),
            env=(("LANG", "C.UTF-8"),),
            evidence=evidence,
        )
        number = self.choices.choice((1, 1, 1, 2, 3))
        return make_record(
            Environment,
            parent=candidate.id,
            name=candidate.name,
            plan=plan,
            attempt=number,
            attempts=self._make_attempts(number, "accepted"),
            image=f"mergemill/env:{self._make_hash('image')[:16]}",
            image_digest=f"sha256:{self._make_hash('digest')}",
            image_bytes=self.choices.randrange(10_000_000),
            collected_share=1.0,
            counts=Counts(passed=len(self.tests), failed=1),
            base_report=self._pick_artifact(),
            log=self._pick_artifact(),
            seconds=round(self.choices.expovariate(0.01), 3),
            test_seconds=round(self.choices.expovariate(0.1), 3),
        )

    def _make_run(self, variant: RunVariant, seed: int, digest: str) -> TestRun:
        return TestRun(
            variant=variant,
            seed=seed,
            script=self._pick_artifact(),
            image_digest=digest,
            report=self._make_hash("report", variant, seed),
            log=self._make_hash("log", variant, seed),
            exit_code=int(variant is not RunVariant.GOLD),
            killed_by=None,
            seconds=round(self.choices.expovariate(0.05), 3),
            test_seconds=round(self.choices.expovariate(0.1), 3),
            counts=Counts(passed=len(self.tests)),
        )

    def _make_verification(self, environment: Environment, candidate: Candidate) -> Verification:
        if len(self.tests) > self.most_tests:  # old tests are rewritten in time
            del self.tests[: len(self.tests) - self.most_tests]
        passing = list(self.tests)
        for _ in range(self.choices.randrange(3)):
            passing.pop(self.choices.randrange(len(passing)))
        failing = self._grow_tests(self.texts.make_length(4, 0.6, 60))
        variants = (RunVariant.BASE, RunVariant.TEST_ONLY, RunVariant.GOLD, RunVariant.GOLD, RunVariant.GOLD)
        kinds = (FailureKind.ASSERTION, FailureKind.ASSERTION, FailureKind.ERROR)
        return make_record(
            Verification,
            parent=environment.id,
            candidate=candidate.id,
            name=candidate.name,
            FAIL_TO_PASS=tuple((test, self.choices.choice(kinds)) for test in failing),
            PASS_TO_PASS=tuple(sorted(passing)),
            flaky=(),
            controls=tuple(failing[: self.choices.randrange(len(failing) + 1)]),
            eval_files=candidate.test_files,
            eval_script=self._pick_artifact(),
            control_patch=self._pick_artifact(),
            repeats=3,
            runs=tuple(self._make_run(variant, n, environment.image_digest) for n, variant in enumerate(variants)),
            seconds=round(self.choices.expovariate(0.02), 3),
        )

    def _make_verdict(self, verification: Verification) -> Verdict:
        findings = tuple(
            Finding(
                rule=rule,
                quote=" ".join(self.texts.make_words(6)),
                detail=" ".join(self.texts.make_words(10)),
                quote_source=QuoteSource.TESTS,
            )
            for rule in self.choices.sample(FINDINGS, self.choices.choice((0, 1, 1, 2)))
        )
        return make_record(
            Verdict,
            parent=verification.id,
            candidate=verification.candidate,
            name=verification.name,
            underspecified=round(self.choices.random(), 4),
            unfair_tests=round(self.choices.random(), 4),
            findings=findings,
            set_aside=findings[0].rule if findings and self.choices.random() < 0.15 else None,
            interfaces=(
                Interface(name=(name := self.texts.make_name()), signature=f"def {name}(value):", path="src/a.py"),
            ),
            seconds=0.05,
        )

    def _make_oracle(self, kind: Kind, verification: Verification) -> Oracle | None:
        span = LineSpan(path="src/a.py", first_line=3, last_line=9)
        edits = tuple(
            CodeEdit(
                operator="comparison",
                path="src/a.py",
                line=n,
                detail="a < b became a <= b",
                patch=self._pick_artifact(),
            )
            for n in range(1, 7)
        )
        if kind is Kind.TEST_WRITING:
            return TestWritingOracle(mutants=edits, variants=edits[:2], gold_spans=(span,), base_coverage=0.5)
        if kind is Kind.REVIEW:
            defect = Defect(path="src/a.py", first_line=3, last_line=5, claim=" ".join(self.texts.make_words(12)))
            files = FILES_HASH
            return ReviewOracle(target="diff", files=files, diff=self._pick_artifact(), defects=(defect,))
        if kind is Kind.PERFORMANCE:
            tests = verification.PASS_TO_PASS[:3]
            return PerformanceOracle(workload=self._pick_artifact(), tests=tests, clock="cpu", ratio=2.0, threshold=1.5)
        return None

    def _make_task(
        self, kind: Kind, candidate: Candidate, verification: Verification, environment: Environment, number: int = 0
    ) -> Task:
        bare = kind is Kind.REVIEW
        suffix = f"{kind.value}-{number}" if kind in (Kind.REVIEW, Kind.INJECTED) else kind.value
        others = (self._make_hash("other"),) if kind is Kind.COMBINED else ()
        lists: dict[str, Any] = {
            "FAIL_TO_PASS": () if bare else verification.FAIL_TO_PASS,
            "PASS_TO_PASS": () if bare else verification.PASS_TO_PASS,
            "controls": () if bare else verification.controls,
        }
        return make_record(
            Task,
            parent=candidate.id if bare else verification.id,
            candidate=candidate.id,
            source=self.source,
            name=f"{candidate.name}.{suffix}",
            kind=kind,
            repo=self.repo,
            language=self.language,
            language_version="" if bare else self.version,
            version=candidate.version,
            base_commit=candidate.base_commit,
            created_at=candidate.created_at,
            license=self.license,
            problem_statement=self.texts.make_statement() if kind is Kind.INJECTED else candidate.problem_statement,
            hints="",
            gold_patch=candidate.gold_patch,
            test_patch=candidate.test_patch,
            control_patch=None if bare else verification.control_patch,
            eval_script=None if bare else verification.eval_script,
            plan=None if bare else environment.plan,
            image="" if bare else environment.image,
            image_digest="" if bare else environment.image_digest,
            test_seconds=0.0 if bare else environment.test_seconds,
            other_candidates=others,
            setup_patch=self._pick_artifact() if kind is Kind.INJECTED else None,
            oracle=self._make_oracle(kind, verification),
            environment="none" if bare else "verified",
            **lists,
        )

    def _make_certificate(self, task: Task) -> Certificate:
        return make_record(
            Certificate,
            parent=task.id,
            name=task.name,
            gold=(1.0, 1.0, 1.0),
            noop=0.0,
            image_digest=task.image_digest,
            seconds=round(self.choices.expovariate(0.1), 3),
        )


KIND_TASKS = {
    Kind.FEATURE: 0.0,
    Kind.PERFORMANCE: 0.03,
    Kind.TEST_WRITING: 0.5,
    Kind.COMBINED: 0.2,
    Kind.INJECTED: 1.0,
    Kind.REVIEW: 1.5,
}
"""Tasks of a verified change by kind, beside its bug fix or feature."""
_PATCHES = tuple(make_patch(number) for number in range(PATCHES))
PATCH_HASHES = tuple(hashlib.sha256(patch).hexdigest() for patch in _PATCHES)
PATCH_PATHS = tuple(sorted({patch.split()[2].decode().removeprefix("a/") for patch in _PATCHES}))
"""Files that patches change; base trees have them, empty."""
REVIEW_FILES = json.dumps({"src/a.py": "value = 1\n" * 20})
"""Artifact of the files under review."""
FILES_HASH = hashlib.sha256(REVIEW_FILES.encode()).hexdigest()
