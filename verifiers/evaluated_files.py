"""Test files of an evaluation: the whole suite if it is short, otherwise the files that matter to the change.

A long suite runs once as a whole without and once with the gold patch, where that fits into the limits, so that tests
which the change affects are found wherever they are.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from backends.git import GitRepository
from backends.tree import CommitTree
from core.settings.models import BudgetSettings
from core.settings.tasks import VerifySettings
from evaluation.reports.outcomes import EvaluationReport
from languages.paths import is_test_file
from languages.registry import LANGUAGES, detect_file_language, frameworks_by_name, get_language, get_test_seconds
from taskdb.records import Candidate, Environment


def select_eval_files(
    candidate: Candidate,
    environment: Environment,
    verify: VerifySettings,
    budget: BudgetSettings,
    *,
    tree: GitRepository,
    test_files: Sequence[str],
) -> tuple[str, ...]:
    """Return the test files of the first runs, sorted; empty for the whole suite. `test_files`: of the test patch.

    Published tasks were verified with the files of their test patch, so these files are used to compare the lists. A
    framework that cannot run some files alone runs the whole suite.
    """
    if not frameworks_by_name()[environment.plan.test.framework].selects_files:
        return ()
    changed_tests = [path for path in test_files if is_test_file(path)]
    if candidate.source.startswith("instances:") and not changed_tests:  # tests inside the source files they test
        changed_tests = [path for path in test_files if detect_file_language(path) == candidate.language]
    if candidate.source.startswith("instances:") and changed_tests:
        return tuple(sorted(_drop_files_without_tests(changed_tests, candidate, tree)))
    limit = get_test_seconds(environment.plan.language, verify.test_timeout)
    # Twice leaves half of the time for the other runs, with some of the files.
    if environment.test_seconds <= min(limit / 2, budget.seconds / 4):
        return ()
    helpers = [path for path in test_files if not is_test_file(path)]
    files = {*changed_tests, *find_importers(tree, candidate.base_commit, [*candidate.gold_files, *helpers])}
    return tuple(sorted(files if changed_tests else files | _find_neighbours(tree, candidate, helpers)))


def _find_neighbours(tree: GitRepository, candidate: Candidate, helpers: Sequence[str]) -> set[str]:
    """Return the test files in the folders of the gold patch's files, and in those of fixtures and the folders above.

    Snapshots and data lie below the tests that read them.
    """
    folders = {posixpath.dirname(path) for path in (*candidate.gold_files, *helpers)}
    folders |= {posixpath.dirname(posixpath.dirname(path)) for path in helpers if path.count("/") > 1}
    return {
        entry.path
        for entry in tree.ls_tree(candidate.base_commit)
        if posixpath.dirname(entry.path) in folders and is_test_file(entry.path, candidate.language)
    }


def is_long(environment: Environment, verify: VerifySettings, budget: BudgetSettings) -> bool:
    """Return whether the whole suite takes too long to run each time."""
    runs = 2 * verify.max_repeats + 4  # test-only and gold runs, and the gold patch's gradings with controls
    return environment.test_seconds > min(verify.whole_suite_seconds, budget.seconds / runs)


def select_files_that_matter(
    candidate: Candidate,
    tree: GitRepository,
    test_files: Sequence[str],
    test_only: EvaluationReport,
    gold: EvaluationReport,
) -> tuple[str, ...]:
    """Return the test files that matter to a change, sorted, from a run of the whole suite with and one without it.

    They are those in which a test has another result, those of the test patch, those that import a module which the
    change touches (`Language.modules`), and those in the folder of a file which the change touches.

    Args:
        candidate: the change.
        tree: its repository.
        test_files: test files of the test patch.
        test_only: the run without the gold patch.
        gold: the run with it.
    """
    matter = {*test_files, *find_importers(tree, candidate.base_commit, candidate.gold_files)}
    matter |= {test.partition("::")[0] for test in gold.outcomes if gold.has_passed(test) != test_only.has_passed(test)}
    matter |= {test.partition("::")[0] for test in test_only.outcomes if test not in gold.outcomes}
    folders = {posixpath.dirname(path) for path in candidate.gold_files}
    known = {file for report in (test_only, gold) for file in (*report.list_files(), *report.uncollected)}
    return tuple(sorted(file for file in known if file in matter or posixpath.dirname(file) in folders))


def _drop_files_without_tests(
    changed_tests: Sequence[str], candidate: Candidate, repository: GitRepository
) -> Sequence[str]:
    """Drop program files that define no tests, such as type examples: some runners fail on them.

    New files are kept, and all files if none would remain.
    """
    tree = CommitTree(repository, candidate.base_commit)
    defining = set(get_language(candidate.language).find_test_files(tree))
    with_tests = [p for p in changed_tests if p in defining or not tree.is_file(p) or not detect_file_language(p)]
    return with_tests or changed_tests


def find_importers(tree: GitRepository, commit: str, changed: Sequence[str]) -> list[str]:
    """Return test files at `commit` that import a module changed in the listed files."""
    readers = [language.modules for language in LANGUAGES.values() if language.modules is not None]
    changed_modules = [{module for path in changed for module in reader.list_modules(path)} for reader in readers]
    entries = [entry for entry in tree.ls_tree(commit) if is_test_file(entry.path) and entry.mode.startswith("100")]
    contents = tree.read_blobs([entry.oid for entry in entries])
    return [
        entry.path
        for entry, text in zip(entries, contents, strict=True)
        if any(
            modules & set(reader.parse_imports(text))
            for reader, modules in zip(readers, changed_modules, strict=True)
            if modules
        )
    ]
