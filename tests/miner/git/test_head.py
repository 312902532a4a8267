"""Heads of branches: a tree for an environment, and no change."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from backends.services import Services
from core.errors import InputError
from derivers.base import KindRejection
from derivers.review import derive_review
from miner.sources import canonicalize_source
from taskdb.queries import tasks as queries
from taskdb.records import Candidate, Kind, PullRequest, Rejection, Shape, Stage
from taskdb.records.kinds import ENVIRONMENT_KINDS
from taskdb.records.lineage import Lineage
from taskdb.store import Store
from tests import records
from tests.helpers import TinyRepo
from tests.miner.conftest import FIX, START, MinerHarness
from tests.scopes import make_scope
from verifiers import verify


@pytest.fixture
def repo(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "ada__pkg")
    repo.commit("Begin", START)
    return repo


def mine(harness: MinerHarness, source: str, **options: Any) -> tuple[PullRequest, Candidate | Rejection]:
    (mined,) = harness.mine(source, **options)
    return mined.pull_request, mined.result


def get_rejection(harness: MinerHarness, source: str, **options: Any) -> tuple[str, str]:
    _, result = mine(harness, source, **options)
    assert isinstance(result, Rejection)
    return result.reason, result.detail


def test_the_head_is_a_candidate_without_patches(harness: MinerHarness, repo: TinyRepo) -> None:
    head = repo.commit("Fix one", FIX)
    pull, candidate = mine(harness, f"head:{repo.path}")
    assert isinstance(candidate, Candidate)
    assert (pull.shape, pull.base_commit, pull.merge_commit) == (Shape.HEAD, head, head)
    assert (candidate.name, candidate.repo) == (f"ada__pkg-head-{head[:10]}", "ada/pkg")
    assert (candidate.language, candidate.license, candidate.source) == ("python", "MIT", f"head:{repo.path}")
    assert (candidate.gold_files, candidate.test_files, candidate.gold_lines) == ((), (), 0)
    services = harness.open_services()
    assert services.artifacts.get_text(candidate.gold_patch) == services.artifacts.get_text(candidate.test_patch) == ""
    # Stages find the tree by the source as the records spell it.
    assert services.clones.open_tree(candidate.source, candidate.repo, head).resolve(head) == head
    assert mine(harness, f"head:{repo.path}")[1] == candidate


def test_a_branch_a_tag_and_a_commit_can_be_named(harness: MinerHarness, repo: TinyRepo) -> None:
    start = repo.read_head()
    repo.git("checkout", "-q", "-b", "fix/one")
    fixed = repo.commit("Fix one", FIX)
    repo.git("checkout", "-q", "-")
    repo.git("tag", "v1")
    commits = {word: mine(harness, f"head:{repo.path}#{word}")[0].base_commit for word in ("fix/one", "v1", start[:12])}
    assert commits == {"fix/one": fixed, "v1": start, start[:12]: start}
    with pytest.raises(InputError, match="there is no branch, tag or commit nowhere"):
        mine(harness, f"head:{repo.path}#nowhere")


def test_a_clone_of_a_url_is_fetched_again(harness: MinerHarness, repo: TinyRepo) -> None:
    source = f"head:file://{repo.path}#main"
    repo.git("branch", "-M", "main")
    first, _ = mine(harness, source)
    fixed = repo.commit("Fix one", FIX)
    second, _ = mine(harness, source)
    assert (first.base_commit != fixed, second.base_commit) == (True, fixed)


def test_a_tree_without_tests_or_in_another_language_or_licence_is_rejected(
    harness: MinerHarness, repo: TinyRepo
) -> None:
    source = f"head:{repo.path}"
    assert get_rejection(harness, source, licenses="Apache-2.0")[0] == "license"
    repo.commit("Remove the tests", {"tests/test_core.py": None})
    assert get_rejection(harness, source) == ("no-tests", "the tree has no test file")
    repo.commit("Remove the program", {"pkg/core.py": None})
    assert get_rejection(harness, source) == ("language-not-supported", "the tree has no program")


def test_a_source_word_is_absolute_and_keeps_its_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert canonicalize_source("head:pkg#fix/one", tmp_path) == f"head:{tmp_path}/pkg#fix/one"
    for word in ("head:https://example.org/a/b.git#main", "head:git@example.org:a/b"):
        assert canonicalize_source(word, tmp_path) == word


def test_only_kinds_of_environments_are_open_and_verification_ends_it(harness: MinerHarness, repo: TinyRepo) -> None:
    pull, candidate = mine(harness, f"head:{repo.path}")
    assert isinstance(candidate, Candidate)
    environment = records.make_environment(candidate)
    lineage = Lineage(candidate=candidate, environment=environment)
    rejection = verify(lineage, cast("Services", None))
    assert isinstance(rejection, Rejection)
    assert (rejection.reason, rejection.stage) == ("no-change", Stage.VERIFY)
    review = derive_review(lineage, cast("Services", None))
    assert isinstance(review, KindRejection)
    with Store.open(f"sqlite:///{repo.path.parent}/m.db") as store:
        store.add_mined_changes((pull, candidate, 0.1))
        assert list(store.find_open_lineages(make_scope(kinds=(Kind.BUGFIX, Kind.TEST_WRITING)))) == []
        (built,) = store.find_open_lineages(make_scope(kinds=(Kind.INJECTED,)))
        assert built.next_stage is Stage.BUILD
        store.add(environment)
        (state,) = store.find_environments(make_scope(), Kind.INJECTED)
        assert state.name == candidate.name
        store.add(rejection)
        (derived,) = store.find_open_lineages(make_scope(kinds=tuple(Kind)))
        assert set(derived.kinds) == {*ENVIRONMENT_KINDS, Kind.REVIEW}
        assert queries.compute_summary(store)["rejected"] == {"no-change": 1}
