"""Every example: its plan is the snapshot, and where an engine is its change is built and verified as expected."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from backends.git import Repository
from backends.services import Services
from backends.tree import Tree
from builders.build import build
from languages.draft import Context
from languages.paths import is_protected
from languages.registry import all_languages, language
from taskdb.lineage import Lineage
from taskdb.records import Candidate, Environment, Verification
from tests import records
from tests.boxes import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import Example, examples, unpacked
from verifiers.verify import verify

EXAMPLES = [pytest.param(one, id=one.folder.name) for one in examples()]
BUILT = [
    pytest.param(one, id=one.folder.name, marks=pytest.mark.slow if one.facts.get("slow") else pytest.mark.docker)
    for one in examples()
]


def context(example: Example, touched: tuple[str, ...] = ()) -> Context:
    """Every version of the language can be had."""
    facts = example.facts
    versions = [release.version for release in language(facts["language"]).RELEASES]
    return Context(available=lambda: versions, day=date.fromisoformat(str(facts["day"])), touched=touched)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_plan_of_an_example_is_its_snapshot(
    example: Example, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    repo, known = TinyRepo(tmp_path / "repo"), language(example.facts["language"])
    tree = Tree(Repository(repo.path), repo.commit("Start", example.files("before.txt")))
    plan = known.render(known.draft(tree, context(example, tuple(example.files("after.txt")))))
    text = json.dumps(plan.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
    snapshot = example.folder / "plan.json"
    if request.config.getoption("--update"):
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
    assert known.defining_files(tree, plan), "no file of the example defines tests"


@pytest.mark.parametrize("example", BUILT)
def test_the_change_of_an_example_is_verified_as_expected(example: Example, tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    candidate = candidate_of(example, TinyRepo(tmp_path / "repo"), services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment.attempts
    assert environment.attempt <= example.facts.get("attempts", 1)
    assert environment.collected_share == 1.0
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == example.facts["FAIL_TO_PASS"]
    assert list(verification.PASS_TO_PASS) == example.facts["PASS_TO_PASS"]


def candidate_of(example: Example, repo: TinyRepo, services: Services) -> Candidate:
    """The change as the miner splits it."""
    base = repo.commit("Start", example.files("before.txt"))
    merge = repo.commit("Mend it", example.files("after.txt"))
    names = repo.git("diff", "--name-only", "--no-renames", base, merge).splitlines()
    parts = [n for n in names if not is_protected(n)], [n for n in names if is_protected(n)]
    assert all(parts), f"the change needs source and tests: {parts}"
    patches = [
        Repository(repo.path).git("diff-tree", "-p", "--binary", "--full-index", base, merge, "--", *part)
        for part in parts
    ]
    pull = records.pull_request(source=f"git:{repo.path}", base_commit=base, merge_commit=merge)
    return records.candidate(
        pull, language=example.facts["language"], created_at=f"{example.facts['day']}T12:00:00+00:00", version="",
        gold_patch=services.artifacts.put(patches[0]), test_patch=services.artifacts.put(patches[1]),
        gold_files=tuple(parts[0]), test_files=tuple(parts[1]),
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(all_languages()))
def test_every_language_has_an_example(name: str) -> None:
    assert name in {example.facts["language"] for example in examples()}


def test_a_file_of_files_says_what_goes() -> None:
    assert unpacked("==== a/b.txt\none\n\n==== c (gone)\n==== d\n") == {"a/b.txt": "one\n\n", "c": None, "d": ""}
    with pytest.raises(ValueError, match="before the first file"):
        unpacked("lost\n==== a\n")
