"""The stage: a candidate's first draft is built and tried, and mended where it fails (`builders.repair`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

from backends.git import GitError, Repository
from backends.services import Services
from backends.tree import Tree
from builders import bases
from builders.accept import Reason, Refused
from builders.agent.policy import LlmPolicy
from builders.attempt import Built
from builders.repair import memory
from builders.repair.loop import Mended, mend
from builders.repair.memory import Nearest
from builders.repair.policy import Case, Policy
from builders.repair.rules import Rules
from builders.repair.skills import OURS, load
from builders.seed import IncompleteCloneError
from languages.draft import Context, Draft, NoPlanError
from languages.registry import language
from taskdb.records import Candidate, Environment, Rejection, Stage


def build(candidate: Candidate, services: Services) -> Environment | Rejection:
    """An image in which the tests of the candidate's base commit were seen to run, or why there is none.

    Raises:
        Transient: engine, network or disk failed.
        MachineError: this machine cannot make the base image.
    """
    started = time.monotonic()
    clone = services.clones.open(candidate.source, candidate.repo)
    tree = Tree(clone, candidate.base_commit)
    try:
        case = Case(candidate=candidate, tree=tree, first=first_draft(tree, candidate, services), services=services)
        with policies(case) as asked:
            done = mend(case, asked, started=started)
    except NoPlanError as error:
        done = Mended(result=Refused(reason=Reason.NO_PLAN, detail=str(error), log=""), attempts=(), log="")
    except IncompleteCloneError as error:
        done = Mended(result=Refused(reason=Reason.INCOMPLETE_CLONE, detail=str(error), log=""), attempts=(), log="")
    seconds = time.monotonic() - started
    if isinstance(done.result, Refused):
        return Rejection(
            parent=candidate.id, name=candidate.name, source=candidate.source, stage=Stage.BUILD,
            reason=done.result.reason, detail=done.result.detail, attempts=done.attempts,
            log=services.artifacts.put_text(done.log) if done.log else None, seconds=seconds,
        )  # fmt: skip
    memory.remember(case, [proposal for proposal, _ in done.steps])
    return _environment(candidate, done.result, done, services, seconds)


def first_draft(tree: Tree, candidate: Candidate, services: Services) -> Draft:
    """All choices for the candidate's base commit, before anything was tried.

    Raises:
        NoPlanError: nothing can be planned for.
    """
    known = language(candidate.language)
    draft = known.draft(tree, Context(
        available=lambda: bases.available(known.NAME, services),
        day=date.fromisoformat(candidate.created_at[:10]),
        version=candidate.version or nearest_tag(tree.repository, candidate.base_commit),
        touched=(*candidate.gold_files, *candidate.test_files),
    ))  # fmt: skip
    return bases.settled_first(draft, bases.moving(known.NAME, services))


@contextmanager
def policies(case: Case) -> Iterator[list[Policy]]:
    """Who is asked when an attempt is refused, in this order: what is known, then a model where one takes part."""
    folder, model = case.services.settings.skills, case.services.model
    skills = load(OURS, *([folder] if folder else ()))
    rules: list[Policy] = [Nearest(case), Rules(case, skills)]
    if model is None:
        yield rules
        return
    with LlmPolicy(model, case, skills) as agent:
        yield [*rules, agent]


def _environment(candidate: Candidate, built: Built, done: Mended, services: Services, seconds: float) -> Environment:
    accepted, put = built.accepted, services.artifacts
    return Environment(
        parent=candidate.id, name=candidate.name, plan=built.plan, attempt=done.attempts[-1].number,
        attempts=done.attempts, image=built.image.name, image_digest=built.image.digest,
        image_bytes=built.image.layer_bytes, collected_share=accepted.share, counts=accepted.counts,
        base_report=put.put(accepted.stable.to_bytes()), log=put.put_text(done.log + accepted.log),
        seconds=seconds, test_seconds=accepted.test_seconds,
    )  # fmt: skip


def nearest_tag(clone: Repository, commit: str) -> str:
    """The nearest tag that `commit` descends from, empty when there is none."""
    try:
        return clone.git("describe", "--tags", "--abbrev=0", commit).decode(errors="replace").strip()
    except GitError:
        return ""
