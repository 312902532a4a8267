"""Checks of mirrored bugs by other stages: rules of written tests, strength, the judge's rules, and originality."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from backends.git import GitRepository, list_patch_paths
from backends.index import ScratchIndex
from backends.overlay import open_task_tree
from backends.services import Services
from derivers.base import KindRejection
from derivers.mirrored.answer import MirroredTestFile
from derivers.mirrored.gates import MirrorGates
from evaluation.edits.fixed_files import read_fixed_files
from languages.paths import is_part_of_tests
from languages.registry import detect_file_language
from miner.benchmarks import load_benchmarks
from miner.similarity import build_sketch
from taskdb.records import Candidate, Task, TestId, WrittenTests
from taskdb.records.lineage import Lineage
from verifiers.judge.assess import find_decisive_rule
from verifiers.judge.rules import apply_rules
from verifiers.judge.stage import build_task_case
from verifiers.strength import EditOutcome, EditRunner, draft_edits
from verifiers.written_tests import MAX_EDITS, judge_edits, split_edits
from verifiers.written_tests.answer import TestFileAnswer, find_path_objection, find_text_objection

COPIES_ORIGINAL = "copies-original"
"""Reason of a rejection: patch or statement is a near duplicate of the mirrored change's."""
NEAR_DUPLICATE = "near-duplicate"
"""Reason of a rejection: patch or statement is a near duplicate of a benchmark's."""
_REJECTED_FINDING = re.compile(r"name-not-stated|message-not-stated|solution-|statement-patch")
"""Rules of the judge whose findings reject a statement, besides those that set a change aside.

Values are no reason: tests compare with many that follow from the statement.
"""


def check_files(files: Sequence[MirroredTestFile], language: str, existing: Collection[str]) -> KindRejection | None:
    """Return why written test files are refused before anything runs: by path, size or text.

    Args:
        files: the files.
        language: language of the project.
        existing: paths of the base tree.
    """
    answers = [TestFileAnswer(path=file.path, content=file.content) for file in files]
    sources = frozenset(path for path in existing if detect_file_language(path) and not is_part_of_tests(path))
    objection = find_path_objection(answers, language, existing, ()) or find_text_objection(answers, language, sources)
    return KindRejection(objection.reason, objection.detail) if objection else None


def check_task(lineage: Lineage, task: Task, mirrored: Candidate, services: Services) -> Task | KindRejection:
    """Return a mirrored task with the strength of its written tests, or why it is rejected.

    Args:
        lineage: the change whose environment it uses.
        task: the task; its image exists in the engine.
        mirrored: the change that it makes again.
        services: sandbox, clones, artifacts and settings.

    Raises:
        Transient: engine, disk or network failed.
    """
    del lineage
    if rejection := _check_originality(task, mirrored, services):
        return rejection
    with open_task_tree(task, services) as (repository, commit):
        return _check_statement(task, services, repository, commit) or _check_strength(
            task, services, repository, commit
        )


MIRROR_GATES = MirrorGates(check_files=check_files, check_task=check_task)
"""All checks."""


def _check_originality(task: Task, mirrored: Candidate, services: Services) -> KindRejection | None:
    """Return a rejection of a copy of the mirrored change or of a task on the lists of benchmarks."""
    mining, read = services.settings.mining, services.artifacts.get_text
    sketch = build_sketch(read(task.gold_patch), read(task.test_patch), task.problem_statement)
    original = build_sketch(read(mirrored.gold_patch), read(mirrored.test_patch), mirrored.problem_statement)
    if similarity := sketch.describe_similarity(original, mining):
        return KindRejection(COPIES_ORIGINAL, f"{similarity} of {mirrored.name}")
    if duplicate := load_benchmarks(mining.benchmarks).find_near_duplicate(sketch, mining):
        return KindRejection(NEAR_DUPLICATE, f"{duplicate[1]} of {duplicate[0]}")
    return None


def _check_statement(task: Task, services: Services, repository: GitRepository, commit: str) -> KindRejection | None:
    """Return the judge's finding for which a statement is rejected, such as a name that the tests need and it lacks."""
    findings = apply_rules(build_task_case(task, services, repository, commit))
    decisive = find_decisive_rule(findings)
    finding = next((finding for finding in findings if finding.rule == decisive), None) or next(
        (finding for finding in findings if _REJECTED_FINDING.match(finding.rule)), None
    )
    return KindRejection(finding.rule, f"{finding.detail}: {finding.quote!r}") if finding else None


def _check_strength(task: Task, services: Services, repository: GitRepository, commit: str) -> Task | KindRejection:
    """Run the tests with edits of the gold patch; return the task with the counts, or the objection to its tests."""
    if task.mirror is None:
        raise LookupError(f"{task.name} mirrors no change")
    gold_patch, written = services.artifacts.get(task.gold_patch), task.mirror.written_tests
    with ScratchIndex(repository, commit) as index:
        files = read_fixed_files(index, list_patch_paths(gold_patch), gold_patch)
    runner = EditRunner(
        services=services,
        image=task.image,
        language=task.require_plan().language,
        workdir=task.require_plan().workdir,
        script=services.artifacts.get_text(task.require_script()),
        gold_patch=gold_patch,
        tests=_select_written(task, written),
        test_seconds=task.test_seconds,
    )
    tried = runner.run(draft_edits(files, MAX_EDITS))
    if objection := judge_edits(tried, services.settings.verify.write_min_detected):
        return KindRejection(objection.reason, objection.detail)
    faults, variants = split_edits(tried)
    counts = {
        "faults": len(faults),
        "faults_detected": sum(edit.outcome is EditOutcome.DETECTED for edit in faults),
        "variants": len(variants),
    }
    mirror = task.mirror.model_copy(update={"written_tests": written.model_copy(update=counts)})
    return task.model_copy(update={"mirror": mirror})


def _select_written(task: Task, written: WrittenTests) -> tuple[TestId, ...]:
    """Return the listed tests of the written files, and all FAIL_TO_PASS tests."""
    own = [test for test in task.PASS_TO_PASS if test.partition("::")[0] in written.files]
    return (*(test for test, _ in task.FAIL_TO_PASS), *own)
