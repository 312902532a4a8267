"""The stage `build`: build a candidate's first draft, run its tests, and repair failures (`builders.repair`)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date

from backends.git import GitError, GitRepository
from backends.services import Services
from backends.tree import CommitTree
from builders import bases
from builders.acceptance import BuildRejection, Reason
from builders.agent.policy import LlmPolicy
from builders.attempt import AcceptedBuild
from builders.repair import memory
from builders.repair.loop import RepairResult, repair_build
from builders.repair.memory import NearestRepairPolicy
from builders.repair.policy import Policy, RepairCase
from builders.repair.rules import DECLARED_BY_CHANGE, RulePolicy
from builders.repair.skill_files import BUILTIN_SKILLS, load_skills
from builders.source_tree import IncompleteCloneError
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.registry import get_language
from languages.surroundings import add_surroundings
from taskdb.records import Candidate, Environment, Evidence, Rejection, Stage

_DECLARES_VERSIONS = re.compile(
    r"(^|/)(pyproject\.toml|setup\.(py|cfg)|tox\.ini|noxfile\.py|\.python-version|package\.json|\.nvmrc|go\.mod|Cargo\.toml"
    r"|rust-toolchain(\.toml)?|pom\.xml|build\.gradle(\.kts)?|\.travis\.yml|\.gitlab-ci\.yml)$|^\.(github/workflows|circleci)/"
)
"""Matches files that declare the versions of the language that a project supports."""


def build(candidate: Candidate, services: Services) -> Environment | Rejection:
    """Return an image that passed acceptance at the candidate's base commit, or the rejection of the best attempt.

    Raises:
        Transient: engine, network or disk failed.
        MachineError: this machine cannot make the base image.
    """
    started = time.monotonic()
    clone = services.clones.open_history(candidate.source, candidate.repo, candidate.base_commit)
    tree = CommitTree(clone, candidate.base_commit)
    try:
        case = RepairCase(
            candidate=candidate, tree=tree, first_draft=create_first_draft(tree, candidate, services), services=services
        )
        with open_policies(case) as policies:
            repaired = repair_build(case, policies, started=started)
    except NoPlanError as error:
        repaired = _reject_without_attempt(Reason.NO_PLAN, str(error))
    except IncompleteCloneError as error:
        repaired = _reject_without_attempt(Reason.INCOMPLETE_CLONE, str(error))
    seconds = time.monotonic() - started
    if isinstance(repaired.result, BuildRejection):
        return Rejection(
            parent=candidate.id,
            name=candidate.name,
            source=candidate.source,
            stage=Stage.BUILD,
            reason=repaired.result.reason,
            detail=repaired.result.detail,
            attempts=repaired.attempts,
            log=services.artifacts.put_text(repaired.log) if repaired.log else None,
            seconds=seconds,
        )
    memory.save_repair(case, [proposal for proposal, _ in repaired.steps])
    return _create_environment(candidate, repaired.result, repaired, services, seconds)


def _reject_without_attempt(reason: Reason, detail: str) -> RepairResult:
    return RepairResult(result=BuildRejection(reason=reason, detail=detail, log=""), attempts=(), log="")


def create_first_draft(tree: CommitTree, candidate: Candidate, services: Services) -> PlanDraft:
    """Return the first draft of the plan for the candidate's base commit.

    Raises:
        NoPlanError: the tree contains nothing to plan for.
    """
    language = get_language(candidate.language)
    context = PlanningContext(
        list_available=lambda: bases.list_available_versions(language.name, services),
        day=find_package_day(tree.repository, candidate),
        version=candidate.version or find_nearest_tag(tree.repository, candidate.base_commit),
        changed_paths=(*candidate.gold_files, *candidate.test_files),
    )
    draft = add_surroundings(language.create_draft(tree, context), tree)
    draft = replace(draft, versions=(*draft.versions, *list_versions_of_change(draft, tree, candidate, context)))
    return bases.prefer_stable_versions(draft, bases.list_rolling_versions(language.name, services))


def list_versions_of_change(
    draft: PlanDraft, tree: CommitTree, candidate: Candidate, context: PlanningContext
) -> list[Evidence]:
    """Return the versions of the language that only the merge declares: the change's tests may need it."""
    if not any(_DECLARES_VERSIONS.search(path) for path in candidate.gold_files):
        return []
    try:
        merged = get_language(candidate.language).create_draft(
            CommitTree(tree.repository, candidate.merge_commit), context
        )
    except (GitError, NoPlanError):  # a published row need not have the merge
        return []
    known = {version.value for version in draft.versions}
    return [
        version.model_copy(update={"note": DECLARED_BY_CHANGE})
        for version in merged.versions
        if version.value not in known
    ]


@contextmanager
def open_policies(case: RepairCase) -> Iterator[list[Policy]]:
    """Yield the policies in the order in which they are queried; the model's is the last, if a model is configured."""
    folder, model = case.services.settings.skills, case.services.model
    skills = load_skills(BUILTIN_SKILLS, *([folder] if folder else ()))
    rules: list[Policy] = [NearestRepairPolicy(case), RulePolicy(case, skills)]
    if model is None:
        yield rules
        return
    with LlmPolicy(model, case, skills) as agent:
        yield [*rules, agent]


def _create_environment(
    candidate: Candidate, built: AcceptedBuild, repaired: RepairResult, services: Services, seconds: float
) -> Environment:
    acceptance, artifacts = built.acceptance, services.artifacts
    return Environment(
        parent=candidate.id,
        name=candidate.name,
        plan=built.plan,
        attempt=repaired.number,
        attempts=repaired.attempts,
        image=built.image.name,
        image_digest=built.image.digest,
        image_bytes=built.image.layer_bytes,
        collected_share=acceptance.collected_share,
        counts=acceptance.counts,
        base_report=artifacts.put(acceptance.stable_report.to_bytes()),
        log=artifacts.put_text(repaired.log + acceptance.log),
        seconds=seconds,
        test_seconds=acceptance.test_seconds,
    )


def find_package_day(clone: GitRepository, candidate: Candidate) -> date:
    """Return the day as of which packages are installed: the later of the change's date and its base commit's own.

    A published row may be dated by its pull request's opening, long before the commit that its base became in the end.
    """
    committed = clone.run_git("show", "-s", "--format=%cs", candidate.base_commit).decode()
    return max(date.fromisoformat(candidate.created_at[:10]), date.fromisoformat(committed.strip()))


def find_nearest_tag(clone: GitRepository, commit: str) -> str:
    """Return the nearest tag that `commit` descends from, empty when there is none."""
    try:
        return clone.run_git("describe", "--tags", "--abbrev=0", commit).decode(errors="replace").strip()
    except GitError:
        return ""
