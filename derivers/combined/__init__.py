"""Changes of a repository as a harder task, at the base commit and in the image of the oldest.

A change is combined with the change before it, and with two to four older changes that are related. The gold patch is
the oldest change with the newer changes on top, the hidden tests likewise; the statement contains all texts. A task is
rejected unless each part is needed: with all other parts, tests of the part fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from backends.git import GitError, GitRepository
from backends.services import Services
from derivers.base import KindRejection, build_task
from derivers.bugfix import derive_bugfix
from derivers.combined.chain import ChangeChain, select_related, share_folder
from derivers.combined.evaluation import ChainEvaluation, ChainRejection, Reason
from derivers.feature import derive_feature
from derivers.statements import render_template
from evaluation.controls.controls import build_controls
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage

__all__ = ["Reason", "derive_combined"]

MAX_COMMITS_APART = 20
"""Commits of the default branch between two changes that touch no common folder."""
MIN_CHAIN_PARTS = 3
"""Changes of a chain, which is more than a pair."""
MAX_TRIED_CHAINS = 4
"""Chains that are evaluated for a change."""


def derive_combined(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the task of a change together with the change before it, and chains with older related changes.

    A pair takes nine evaluations at most; a chain four, and another for each part.

    Args:
        lineage: a change; `neighbours` are older changes of the same source, newest first.
        services: sandbox, clones, artifacts and settings.

    Raises:
        Transient: engine, disk or network failed.
    """
    if lineage.require_verification().written_tests:
        return KindRejection(Reason.WRITTEN_TESTS, "model-written tests are not combined with those of other changes")
    tree = services.clones.open(lineage.candidate.source, lineage.candidate.repo)
    statement = _read_statement(lineage, services)
    if isinstance(statement, KindRejection):
        return statement
    pair = _derive_pair(lineage.neighbours[0], lineage, services, tree)
    tasks = [pair] if isinstance(pair, Task) else []
    tasks += _derive_chains(lineage, services, tree)
    return tasks or (pair if isinstance(pair, KindRejection) else [])


def _derive_pair(older: Lineage, newer: Lineage, services: Services, tree: GitRepository) -> Task | KindRejection:
    """Return the task of two changes."""
    if rejection := _check_distance(older, newer, tree):
        return rejection
    return _derive_task((older, newer), services, tree)


def _derive_chains(lineage: Lineage, services: Services, tree: GitRepository) -> list[Task]:
    """Return tasks of different numbers of changes, the longest first; a part that causes a rejection is left out."""
    older = [part for part in lineage.neighbours if isinstance(_read_statement(part, services), str)]
    parts = select_related(lineage, older, services, tree) if services.settings.derive.chains_per_change else []
    tasks: list[Task] = []
    for _ in range(MAX_TRIED_CHAINS):
        if len(parts) < MIN_CHAIN_PARTS or len(tasks) == services.settings.derive.chains_per_change:
            break
        result = _derive_task(parts, services, tree, number=len(parts))
        if isinstance(result, Task):
            tasks.append(result)
            parts = parts[1:]
        elif isinstance(result, ChainRejection) and result.culprit not in (None, lineage):
            parts = [part for part in parts if part is not result.culprit]
        else:
            parts = parts[1:]
    return tasks


def _derive_task(
    parts: Sequence[Lineage], services: Services, tree: GitRepository, number: int | None = None
) -> Task | KindRejection:
    """Return the task of some changes, oldest first, or why there is none.

    Args:
        parts: the changes.
        services: sandbox, clones, artifacts and settings.
        tree: tree that contains the base commits.
        number: appended to the task's name.
    """
    statements = []
    for part in parts:
        statement = _read_statement(part, services)
        if isinstance(statement, KindRejection):
            return statement
        statements.append(statement)
    try:
        chain = ChangeChain.from_lineages(parts, services, tree)
    except GitError as error:
        names = " on top of ".join(part.candidate.name for part in reversed(parts))
        return KindRejection(Reason.DOES_NOT_APPLY, f"{names}: {error}")
    environment = chain.oldest.require_environment()
    with services.sandbox.open_pool(environment.image, limits=services.test_limits(environment.plan.language)) as pool:
        evaluation = ChainEvaluation(chain=chain, services=services, pool=pool)
        if rejection := evaluation.find_rejection():
            return rejection
        return _build_task(evaluation, render_template("combined/statement.md.j2", parts=statements), number)


def _check_distance(older: Lineage, newer: Lineage, tree: GitRepository) -> KindRejection | None:
    """Return a rejection of changes that touch no common folder of sources and lie many commits apart."""
    if share_folder(older, newer):
        return None
    span = f"{older.candidate.base_commit}..{newer.candidate.base_commit}"
    between = int(tree.run_git("rev-list", "--count", "--first-parent", span))
    if between <= MAX_COMMITS_APART:
        return None
    detail = f"{between} commits after {older.candidate.name}, and no common folder"
    return KindRejection(Reason.TOO_FAR_APART, detail)


def _read_statement(part: Lineage, services: Services) -> str | KindRejection:
    """Return the problem statement of the part's own task."""
    rejections = []
    for derive in (derive_bugfix, derive_feature):
        result = derive(part, services)
        if not isinstance(result, KindRejection):
            return result[0].problem_statement
        rejections.append(result)
    first = rejections[0] if len({rejection.reason for rejection in rejections}) == 1 else rejections[1]
    return KindRejection(Reason.PART_WITHOUT_TASK, f"{part.candidate.name}: {first.reason}: {first.detail}")


def _build_task(evaluation: ChainEvaluation, statement: str, number: int | None) -> Task:
    """Return the task of a chain; fields that cannot be combined are those of the newest change."""
    chain, lists, put = evaluation.chain, evaluation.lists, evaluation.services.artifacts.put
    oldest, newest = chain.oldest, chain.parts[-1]
    controls = build_controls(
        evaluation.evaluator,
        chain.tree,
        oldest.candidate.base_commit,
        test_patch=chain.test_patch,
        gold_patch=chain.gold_patch,
        tests=[test for test, _ in lists.fail_to_pass],
        others=lists.pass_to_pass,
        seconds=max(run.record.seconds for run in evaluation.gold_runs),
    )
    environment = oldest.require_environment()
    return build_task(
        newest,
        Kind.COMBINED,
        number,
        other_candidates=tuple(sorted(part.candidate.id for part in chain.parts[:-1])),
        base_commit=oldest.candidate.base_commit,
        version=oldest.candidate.version,
        license=oldest.candidate.license,
        problem_statement=statement,
        hints="\n\n".join(part.candidate.hints for part in chain.parts if part.candidate.hints),
        gold_patch=put(chain.gold_patch),
        test_patch=put(chain.test_patch),
        **controls.make_fields(evaluation.services.artifacts),
        FAIL_TO_PASS=lists.fail_to_pass,
        PASS_TO_PASS=lists.pass_to_pass,
        eval_script=put(evaluation.evaluator.script.encode()),
        plan=environment.plan,
        image=environment.image,
        image_digest=environment.image_digest,
        language_version=environment.plan.language_version,
        test_seconds=max(run.record.test_seconds for run in evaluation.gold_runs),
    )
