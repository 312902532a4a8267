"""What would have to be true for a task: a condition for each reason for which a change is rejected.

docs/guide/query/losses.md is this table for people; a test compares the two, and both with the reasons of the stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taskdb.queries import tasks as queries
from taskdb.queries.derivation_counts import count_by_kind
from taskdb.records import Stage
from taskdb.store import Store

UNKNOWN = "its condition is not known to this version"

MINE: Mapping[str, str] = {
    "no-merge-commit": "the clone had the merge commit that the forge names",
    "not-on-default-branch": "the change were on the default branch",
    "branch-merge": "the pull requests of the merged branch were missing: each of them is mined instead",
    "unreadable-sdist": "the release's archive could be read, and were no larger than allowed",
    "unparsable-patch": "git and unidiff read the same files in its diff, and both patches had any",
    "language-not-supported": "most of its program files were in a supported language",
    "no-tests": "it changed a test file, or were about performance alone; with `--write-tests` a model writes tests",
    "no-base": "it had a parent commit, or an earlier release",
    "empty": "it changed a file",
    "in-benchmark": "the lists of `--benchmarks` did not name it",
    "bot": "its author were no bot",
    "not-a-change": "its title were not that of a revert, a backport or a version bump",
    "submodule": "it changed no submodule",
    "no-source": "it changed a source file",
    "too-many-files": "it touched fewer files, or `--max-files` were higher",
    "no-statement": "its statement had more words, or `--min-statement-words` were lower; `github:` reads issues, too",
    "vendored-or-generated": "one of its sources were written here",
    "too-large": "it changed fewer lines, or `--max-gold-lines`, `--max-test-lines` or `--max-patch-kb` were higher",
    "conflict-markers": "it added no markers of a merge conflict",
    "language-share": "more of its lines were in its language, or `--min-language-share` were lower",
    "version-bump": "its sources changed in more than a version number",
    "moves-only": "its sources changed in more than their place",
    "tests-removed": "it added as many tests as it removes",
    "formatting-only": "its sources changed in more than their format",
    "docstrings-only": "its sources changed in more than docstrings",
    "tests-unchanged": "its tests changed in more than their format",
    "near-duplicate": "no stored candidate and no benchmark had nearly the same patch or statement",
    "license": "its licence were among those of `--licenses`",
    "round-trip": "gold and test patch together gave the merged tree",
    "not-routed": "its diff could change behaviour",
    "awaits-clone": "a run had a clone of its repository",
}
BUILD: Mapping[str, str] = {
    "no-plan": "the tree had a project with tests that a language module can plan, or a model wrote the plan",
    "incomplete-clone": "the clone had all objects of the base commit",
    "dependencies-failed": "its dependencies could be installed as of its date; a skill or a model may repair it",
    "install-failed": "the project could be installed or built; a skill or a model may repair it",
    "fake-report": "a test that must fail were reported as failed",
    "no-report": "the test runner wrote a report",
    "no-tests-collected": "the test runner collected a test",
    "timeout": "the tests were faster, or `--test-timeout` and `--budget-seconds` were higher",
    "out-of-memory": "build and tests needed less memory, or `--memory-mb` were higher",
    "disk-full": "build and tests needed less disk",
    "few-collected": "the test runner collected more of the test files",
    "mostly-failing": "more tests passed at the base commit",
    "unstable": "two runs at the base commit agreed",
    "gold-tests-fail": "the tests of the change passed with the gold patch in this environment",
    "needs-network": "its tests needed no network",
    "needs-root": "its tests ran without rights of root",
    "needs-terminal": "its tests needed no terminal",
    "needs-display": "its tests needed no display",
    "needs-home": "its tests did not depend on a home folder",
    "needs-locale": "its tests did not depend on a locale",
    "needs-time-zone": "its tests did not depend on a time zone",
}
VERIFY: Mapping[str, str] = {
    "no-fail-to-pass": "a test that the runner collects, and does not skip, failed without the gold patch",
    "no-change": "it were a change: the head of a branch has neither patch nor statement",
    "flaky": "a test that the gold patch fixes had the same result in every run, and no date in its name",
    "gold-fails": "its tests passed with the gold patch: often a service, a program or a newer dependency is missing",
    "patch-does-not-apply": "the gold patch applied to the tree of the image",
    "test-patch-does-not-apply": "the test patch applied, and left one of its test files",
    "hangs": "its tests ended as fast without the gold patch as with it",
    "killed-by-time": "its tests were faster, or `--test-timeout` were higher",
    "killed-by-memory": "its tests needed less memory, or `--memory-mb` were higher",
    "killed-by-disk": "its tests needed less disk",
    "no-report": "the test runner wrote a report in every run",
    "canary-passes": "a test that must fail were reported as failed",
    "out-of-budget": "the runs were faster, or `--budget-seconds` were higher",
    "not-renewed": "its certified tasks passed again; they stay as they are",
    "no-model": "a model were configured to write its tests",
    "no-tests-written": "the model's answers had tests",
    "tests-outside-tests": "the model wrote into test files alone",
    "tests-unreliable": "the tests that the model wrote did not depend on chance, time or the program's source",
    "tests-weak": "the tests that the model wrote detected more faults",
    "tests-false-alarm": "the tests that the model wrote accepted rewrites that keep the behaviour",
}
DERIVE: Mapping[str, str] = {
    "statement-empty": "its statement had a text; `github:` reads issues, too",
    "statement-image-only": "its statement said in words what the picture shows",
    "statement-link-only": "its statement said what the link leads to",
    "statement-template-only": "the template of its statement were filled in",
    "message-not-stated": "its statement had the message that its tests expect; rules or a model may add it",
    "no-behavioural-failure": "a test of it ran and failed without the gold patch; it may be a feature instead",
    "behavioural-failure": "no test ran and failed without the gold patch; it may be a bug fix instead",
    "nothing-fails": "a test failed without the gold patch",
    "interface-not-named": "its statement named the function or option that its tests call",
    "not-a-performance-change": "its title, text or diff were about performance",
    "no-workload": "a test could be timed before and after it",
    "no-stable-gain": "a test were faster with it in every measurement",
    "work-shrinks": "the faster tests did the same work as before",
    "control-shows-a-gain": "the machine were quieter: two measurements of the same tree differ",
    "not-only-tests": "its test patch held nothing but tests, and applied alone",
    "tests-do-not-hold": "its test files, run alone, failed before the fix and passed after it",
    "no-mutant": "a mutation operator applied to the lines of the fix",
    "no-mutant-detected": "a test failed with one of the mutants that were tried",
    "no-passing-tests": "enough tests passed without it",
    "no-mutable-code": "a mutation operator applied to source that a passing test executes",
    "out-of-budget": "the runs were faster, or `--budget-seconds` were higher",
    "build-breaks": "a bug left all tests in the report",
    "times-out": "a bug let the tests end in time",
    "all-tests-fail": "a bug left other tests passing",
    "tests-in-source": "the tests that detect a bug were in files of their own, which can be hidden",
    "no-assertion-fails": "a test failed with a bug by an assertion, and not only by exceptions",
    "bugs-do-not-combine": "each bug were still detected among the others",
    "no-image": "the engine had the environment's image, and could write the task's",
    "no-further-task": "more could be tried in its environment",
    "same-tests-fail": "other tests failed with the bug than with those of its environment's other tasks",
    "further-tests-fail": "only hidden tests failed with the bug in the task's own image",
    "enough-tasks": "`--per-environment` were higher",
    "not-stable": "a test failed in every run with the bug, and passed in every run without it",
    "statement-leaks": "a statement could be written that does not show the bug",
    "no-removable-code": "tests executed a function of source that is not trivial, in a language with a grammar",
    "no-further-code": "more code of its environment could be removed",
    "copy-in-tree": "no other file had most of the removed code",
    "no-similar-change": "the database had a fix of a similar project that may be mirrored",
    "no-tested-code": "passing tests executed a source file in a language with a grammar",
    "no-counterpart": "the model saw code in it for which the issue makes sense",
    "bug-outside-source": "the model's bug changed source alone",
    "bug-does-not-apply": "the text that the model's bug replaces stood once in its file",
    "bug-does-not-parse": "the file could be parsed with the model's bug",
    "bug-does-nothing": "the model's bug changed more than comments and white space",
    "statement-length": "the model's statement were neither too short nor too long",
    "names-other-project": "the model's statement did not name the project that the issue is from",
    "tests-not-run": "the test runner collected the model's tests",
    "tests-fail-without-bug": "the model's tests passed without its bug",
    "tests-pass-with-bug": "the model's tests failed with its bug",
    "tests-unreliable": "the model's tests had the same result in every run",
    "too-far-apart": "the changes touched a common folder, or fewer commits lay between them",
    "part-without-task": "each of the changes alone were a bug fix or a feature",
    "does-not-apply": "its patches applied to the common base",
    "part-not-needed": "a test of each change failed without it",
    "fails-together": "the tests of all changes passed with all of them",
    "out-of-time": "the runs were faster, or `--test-timeout` were higher",
    "model-written-tests": "the tests of all changes had authors of one sort",
    "not-a-fix": "it were a bug fix",
    "no-source-lines": "it removed or changed lines of source",
    "unreadable-patch": "its gold patch could be read line by line",
    "no-claim": "its statement said what was wrong",
    "too-scattered": "its lines were in fewer places",
    "material-too-large": "the files to review were shorter",
    "too-little-to-search": "the files to review had more lines without a defect",
    "no-single-origin": "one earlier commit had written the lines that it fixes",
    "no-later-history": "the history went on after it",
    "fixed-later": "no later commit fixed its lines again",
    "no-threads": "reviewers had commented its lines",
    "no-model": "a model were configured (`--llm`, `--model`)",
    "no-test-file": "it changed a test file in a supported language",
    "not-simulated": "a model could simulate its tests",
    "no-fail-to-pass": "the simulated tests failed without the gold patch",
    "no-original": "it gave a bug fix or a feature",
    "no-answer": "the model's statement were usable",
    "not-shorter": "its statement were longer than a terse one",
    "no-output": "a failing test had left a message",
    "truncated-output": "the test runner had not shortened an output",
    "too-short": "its statement had more than one sentence",
    "too-much-output": "the output of the failing tests were shorter",
    "loses-detail": "the new statement kept all that its tests use",
    "not-a-refactoring": "its title, text or diff were about structure",
    "no-structure": "it moved, renamed or extracted a definition",
    "no-migration": "it replaced a module of others by another",
    "not-intended": "statement or manifest named the modules",
    "not-confirmed": "the check accepted the gold tree, and not the base tree",
    "too-few-constraints": "more instructions passed the gates together, or `--instruction-constraints` began lower",
    "no-text": "its gold patch changed text files of a usual size alone",
    "no-tree": "its base tree could be read",
    "solution-line": "the new statement had no line of the gold patch",
    "solution-link": "the new statement had no link to the change",
    "solution-number": "the new statement had no number of the change",
    "solution-commit": "the new statement did not name the commit",
    "name-not-stated": "the new statement named what the tests use",
    "value-not-stated": "the new statement had the value that the tests compare with",
}
CERTIFY: Mapping[str, str] = {
    "gold-fails": "the gold patch passed all gradings in the task's own image",
    "noop-passes": "an empty submission failed",
    "exploit-passes": "a submission that does not solve it earned 0",
    "no-image": "the task's image existed or could be fetched",
    "not-scored": "a grading ended without a failure of the infrastructure",
    "simulated": "its tests were run instead of simulated",
    "checks-fail": "the checks of its instructions passed for the dutiful script, and failed for each careless one",
    "no-solution": "it came with a solution: a published checklist has none that could be graded",
}
CONDITIONS: Mapping[Stage, Mapping[str, str]] = {
    Stage.MINE: MINE,
    Stage.BUILD: BUILD,
    Stage.VERIFY: VERIFY,
    Stage.DERIVE: DERIVE,
    Stage.CERTIFY: CERTIFY,
}
"""Stage -> reason -> what would have to be true, as the end of "it would give a task if ..."."""


def compute_losses(store: Store, sources: Sequence[str] = (), repo: str | None = None) -> list[dict[str, Any]]:
    """Return why changes gave no task, stage by stage, the most frequent reason first, and then kind by kind.

    Rows have the keys `stage`, `kind` (empty for changes that ended before any kind was derived), `reason`, `rejected`,
    `share` and `condition`. Shares are of the changes that ended before any kind, or of the rejections of a kind, 0..1.

    Args:
        store: the database.
        sources: the sources to count; all where none is named.
        repo: the repository to count; kinds are not counted by repository then.
    """
    stages = [row for row in queries.compute_funnel(store, sources, repo) if row["stage"] not in _OF_KINDS]
    rejected = {row["stage"]: Counter[str](row["rejected"]) for row in stages}
    total = sum(reasons.total() for reasons in rejected.values())
    rows = [
        _describe(stage, "", reason, number, total)
        for stage, reasons in rejected.items()
        for reason, number in reasons.most_common()
    ]
    return rows if repo is not None else [*rows, *_count_kinds(store, sources)]


_OF_KINDS = (Stage.DERIVE.value, Stage.CERTIFY.value)
"""Stages that reject a kind of task, and not a change."""


def _count_kinds(store: Store, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    for row in count_by_kind(store, sources):
        reasons = Counter[str](row["rejected"])
        for reason, number in reasons.most_common():
            stage = Stage.DERIVE if reason in DERIVE or reason not in CERTIFY else Stage.CERTIFY
            yield _describe(stage.value, row["kind"], reason, number, reasons.total())


def _describe(stage: str, kind: str, reason: str, number: int, total: int) -> dict[str, Any]:
    condition = CONDITIONS.get(Stage(stage), {}).get(reason, UNKNOWN)
    return {
        "stage": stage,
        "kind": kind,
        "reason": reason,
        "rejected": number,
        "share": round(number / total, 4),
        "condition": condition,
    }
