"""Causes of the differences between published lists and ours, from the reports and logs of the verification.

A cause is the fact that the runs show, not a proof: a quotation or an observation comes with each cause, and `unknown`
stands where they show nothing. Published logs are not available, so the other side is never seen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaluation.lists import OutcomeLists, classify_failure, make_lists
from evaluation.published import compare_lists, find_file, flatten, index_files, list_readings
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from taskdb.artifacts import Artifacts
from taskdb.records import (
    DifferenceCause,
    FailureKind,
    PublishedLists,
    PublishedVerdict,
    RunVariant,
    TestDifference,
    TestId,
    TestRun,
)

Finding = tuple[DifferenceCause, str]
"""A cause with its detail."""
DETAIL_CHARACTERS = 200
LOG_CHARACTERS = 2000
"""Characters of a log that are searched after the name of a failed test without a message."""
_NETWORK = re.compile(
    r"could not resolve|name or service not known|name resolution|getaddrinfo|gaierror|\benotfound\b|eai_again"
    r"|econnrefused|connection refused|network is unreachable|enetunreach|unknownhostexception|connectexception"
    r"|no such host|dial tcp|urlerror|newconnectionerror|failed to lookup address|failed to open tcp connection",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"timed? ?out|timeout|deadline (has )?(exceeded|elapsed)|(has|is) expired|exceeded [^\n]{0,40}\b(ms|seconds)\b",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(
    r"modulenotfounderror|importerror|no module named|cannot (find|import|load)|loaderror|could not find"
    r"|cannot open shared object|undefined symbol|command not found|no such file or directory|filenotfounderror"
    r"|executable file not found|\benoent\b|classnotfoundexception|noclassdeffounderror|nosuchmethoderror"
    r"|has no attribute|unexpected keyword argument|deprecat|unsupported|requires [^\n]{0,40}\d|permission denied",
    re.IGNORECASE,
)


def compare_with_runs(
    published: PublishedLists,
    fail_to_pass: Iterable[TestId],
    pass_to_pass: Iterable[TestId],
    *,
    runs: Sequence[TestRun],
    eval_files: Sequence[str],
    artifacts: Artifacts,
) -> PublishedVerdict:
    """Compare our lists with published lists and find the cause of each difference.

    Args:
        published: the published lists.
        fail_to_pass: our list.
        pass_to_pass: our list.
        runs: runs of the verification; test-only and gold runs count.
        eval_files: test files that were run; empty for the whole suite.
        artifacts: store of the reports and logs.
    """
    verdict = compare_lists(published, fail_to_pass, pass_to_pass)
    differences = [
        (name, side, test)
        for name, difference in (("FAIL_TO_PASS", verdict.fail_to_pass), ("PASS_TO_PASS", verdict.pass_to_pass))
        for side, tests in (("missing", difference.missing), ("extra", difference.extra))
        for test in tests
    ]
    # Without differences, the reports and logs need not be read from the store.
    if not differences:
        return verdict
    diagnosis = Diagnosis(
        published=published,
        test_only=load_runs(runs, RunVariant.TEST_ONLY, artifacts),
        gold=load_runs(runs, RunVariant.GOLD, artifacts),
        eval_files=eval_files,
    )
    causes = []
    for name, side, test in differences:
        explain = diagnosis.explain_missing if side == "missing" else diagnosis.explain_extra
        cause, detail = explain(test, name)
        line = " ".join(detail.split())[:DETAIL_CHARACTERS]
        causes.append(
            TestDifference.model_validate(
                {"list_name": name, "side": side, "test": test, "cause": cause, "detail": line}
            )
        )
    return verdict.model_copy(update={"causes": tuple(causes)})


@dataclass(frozen=True, kw_only=True)
class ObservedRun:
    """Report and log of a run."""

    report: EvaluationReport
    log: str
    killed_by: str | None = None


def load_runs(runs: Iterable[TestRun], variant: RunVariant, artifacts: Artifacts) -> list[ObservedRun]:
    """Return reports and logs of the runs of the same kind."""
    return [
        ObservedRun(
            report=EvaluationReport.from_bytes(artifacts.get(run.report)),
            log=artifacts.get_text(run.log),
            killed_by=run.killed_by,
        )
        for run in runs
        if run.variant is variant
    ]


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Observations of a verification, and the causes they show. At least one run of each kind is needed."""

    published: PublishedLists
    test_only: Sequence[ObservedRun]
    gold: Sequence[ObservedRun]
    eval_files: Sequence[str]

    @cached_property
    def _lists(self) -> OutcomeLists:
        return make_lists([run.report for run in self.test_only], [run.report for run in self.gold])

    @cached_property
    def _flaky(self) -> dict[TestId, str]:
        return {flaky_test.test: flaky_test.describe_counts() for flaky_test in self._lists.flaky}

    @cached_property
    def _tests(self) -> frozenset[TestId]:
        """All tests of all runs."""
        return frozenset(test for run in (*self.test_only, *self.gold) for test in run.report.outcomes)

    @cached_property
    def _by_reading(self) -> dict[str, set[TestId]]:
        test_ids: dict[str, set[TestId]] = defaultdict(set)
        for test in self._tests:
            for text in list_readings(test):
                test_ids[text].add(test)
        return test_ids

    @cached_property
    def _by_letters(self) -> dict[str, set[TestId]]:
        test_ids: dict[str, set[TestId]] = defaultdict(set)
        for text, tests in self._by_reading.items():
            test_ids[_strip(text)] |= tests
        return test_ids

    @cached_property
    def _files(self) -> dict[str, str]:
        return index_files({test.partition("::")[0] for test in self._tests})

    @cached_property
    def _uncollected(self) -> dict[str, str]:
        """Files that were not collected with the gold patch -> reason."""
        return {file: reason for run in self.gold for file, reason in run.report.uncollected.items()}

    @cached_property
    def _published_files(self) -> set[str]:
        """Files of ours that a published id names, or of which it is a test."""
        listed = (*self.published.FAIL_TO_PASS, *self.published.PASS_TO_PASS)
        named = {file for name in listed if (file := find_file(name, self._files))}
        return named | {test.partition("::")[0] for name in listed for test in self._by_reading.get(flatten(name), ())}

    def explain_missing(self, published: TestId, list_name: str) -> Finding:
        """Return why a published test is not in our list of that name."""
        candidates = self._by_reading.get(flatten(published), set())
        if not candidates and published in self._files:
            candidates = {test for test in self._tests if test.startswith(f"{self._files[published]}::")}
        if not candidates:
            return self._explain_absent(published)
        findings = [self._explain_candidate(test, list_name) for test in sorted(candidates)]
        return next((finding for finding in findings if finding[0] is not DifferenceCause.UNKNOWN), findings[0])

    def explain_extra(self, test: TestId, list_name: str) -> Finding:
        """Return why a test of our list of that name is not in the published list."""
        listed = getattr(self.published, list_name)
        letters = {_strip(form) for form in list_readings(test)}
        if similar := next((name for name in listed if _strip(name) in letters), None):
            return DifferenceCause.ID_SPELLING, f"published, with equal letters, is {similar}"
        before = self._describe(test, self.test_only)
        if list_name == "FAIL_TO_PASS" and (
            finding := _classify(before, (DifferenceCause.NETWORK, DifferenceCause.TIME))
        ):
            return finding
        if finding := self._explain_other_list(test, list_name, before):
            return finding
        file = test.partition("::")[0]
        if self._published_files and file not in self._published_files:
            return DifferenceCause.COLLECTION, f"no published id is of {file}"
        return DifferenceCause.UNKNOWN, "in no published list"

    def _explain_other_list(self, test: TestId, list_name: str, before: str) -> Finding | None:
        """Return why a test of our list of that name is published in the other list; None where it is not.

        Args:
            test: the test.
            list_name: our list.
            before: the message of its failure before the fix, if any.
        """
        other = "PASS_TO_PASS" if list_name == "FAIL_TO_PASS" else "FAIL_TO_PASS"
        file, forms, listed = test.partition("::")[0], {*list_readings(test)}, getattr(self.published, other)
        if not any(flatten(name) in forms for name in listed):
            whole = next((name for name in listed if self._files.get(name) == file), None)
            return (DifferenceCause.ID_SPELLING, f"all of {whole} is published as {other}") if whole else None
        if list_name == "FAIL_TO_PASS" and self._is_uncompiled(test):
            return DifferenceCause.COLLECTION, f"published as {other}; its file does not load here before the fix"
        return DifferenceCause.UNKNOWN, f"published as {other}" + (f"; before the fix: {before}" if before else "")

    def _explain_candidate(self, test: TestId, list_name: str) -> Finding:
        """Return why a test that was run is not in a list."""
        if test in self._flaky:
            return DifferenceCause.FLAKY, self._flaky[test]
        return self._explain_gold(test) or self._explain_before(test, list_name)

    def _explain_before(self, test: TestId, list_name: str) -> Finding:
        """Return why a test that passes with the gold patch is not in a list."""
        before = self.test_only[0].report
        is_broken = test not in before.outcomes or before.has_failed(test)
        if list_name == ("FAIL_TO_PASS" if is_broken else "PASS_TO_PASS"):
            return DifferenceCause.ID_SPELLING, f"{test} is matched by another published id"
        if before.has_passed(test):
            return DifferenceCause.UNKNOWN, "passes before the fix, too"
        if self._is_uncompiled(test):
            return DifferenceCause.COLLECTION, "its file does not load here before the fix"
        shown = self._describe(test, self.test_only)
        if not is_broken:
            return DifferenceCause.ENVIRONMENT, f"{before.outcomes[test].status.value} before the fix: {shown}"
        return _classify(shown) or (DifferenceCause.UNKNOWN, f"fails before the fix: {shown}")

    def _explain_gold(self, test: TestId) -> Finding | None:
        """Return why a test does not pass with the gold patch; None if it passes."""
        gold = self.gold[0].report
        if gold.has_passed(test):
            return None
        if test not in gold.outcomes:
            reason = gold.uncollected.get(test.partition("::")[0], "")
            return _explain_uncollected(reason) if reason else (DifferenceCause.UNKNOWN, "absent with the gold patch")
        shown = self._describe(test, self.gold)
        if gold.has_failed(test):
            return _classify(shown) or (DifferenceCause.UNKNOWN, f"fails with the gold patch: {shown}")
        detail = f"{gold.outcomes[test].status.value} with the gold patch: {shown}"
        return _classify(shown, (DifferenceCause.NETWORK,)) or (DifferenceCause.ENVIRONMENT, detail)

    def _explain_absent(self, published: TestId) -> Finding:
        """Return why no run reports a published test."""
        if file := find_file(published, index_files(self._uncollected)):
            return _explain_uncollected(self._uncollected[file])
        # Equal letters are an observation of this test; the causes below are about whole runs and files.
        if similar := self._by_letters.get(_strip(published)):
            return DifferenceCause.ID_SPELLING, f"with equal letters: {min(similar)}"
        if any(run.killed_by == "time" for run in self.gold):
            return DifferenceCause.TIME, "a run with the gold patch was ended for time"
        if file := find_file(published, self._files):
            return self._explain_unreported(published, file)
        if self.eval_files:
            return DifferenceCause.COLLECTION, "none of the files that were run reports it"
        return DifferenceCause.UNKNOWN, "no run reports it"

    def _explain_unreported(self, published: TestId, file: str) -> Finding:
        """Return why a published test is in no report that has other tests of its file."""
        if begun := [test for test in self._tests if test.startswith(published)]:
            return DifferenceCause.ID_SPELLING, f"the beginning of {len(begun)} tests, such as {min(begun)}"
        return DifferenceCause.UNKNOWN, f"{file} was run and reports no such test"

    def _is_uncompiled(self, test: TestId) -> bool:
        """Return whether a test did not run before the fix, since its file did not load or compile."""
        report = self.test_only[0].report
        return classify_failure(report, test) in (FailureKind.COLLECTION, FailureKind.ABSENT)

    def _describe(self, test: TestId, runs: Sequence[ObservedRun]) -> str:
        """Return the message of a test in the first run of a kind; from the log where the report has none."""
        run = runs[0]
        outcome = run.report.outcomes.get(test)
        if outcome is None or outcome.status is OutcomeStatus.PASSED or outcome.message:
            return outcome.message if outcome else ""
        title = re.split(r"::|\s>\s", test)[-1]
        place = run.log.find(title)
        if place < 0:
            return ""
        excerpt = run.log[place + len(title) : place + len(title) + LOG_CHARACTERS]
        line = next((line for line in excerpt.splitlines() if _classify(line)), "")
        return line.strip()


def _explain_uncollected(reason: str) -> Finding:
    return _classify(reason) or (DifferenceCause.COLLECTION, reason)


def _strip(text: str) -> str:
    """Return the letters and digits of an id, case folded; the id itself where it has none."""
    return re.sub(r"[\W_]+", "", text).casefold() or text


def _classify(text: str, causes: Collection[DifferenceCause] = tuple(DifferenceCause)) -> Finding | None:
    """Return the first of the causes that a message or line of a log names."""
    for cause, pattern in (
        (DifferenceCause.NETWORK, _NETWORK),
        (DifferenceCause.TIME, _TIME),
        (DifferenceCause.ENVIRONMENT, _ENVIRONMENT),
    ):
        if cause in causes and pattern.search(text):
            return cause, text
    return None
