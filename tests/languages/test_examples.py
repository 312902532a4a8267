"""Every example: its plan equals the snapshot, and with an engine its change is built and verified as expected."""

from __future__ import annotations

import json
import shlex
from datetime import date
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.services import Services
from backends.tree import CommitTree
from builders.build import build
from evaluation.controls.planning import BOUND
from languages.draft import PlanningContext
from languages.paths import is_protected
from languages.registry import LANGUAGES, get_language
from taskdb.records import Candidate, Environment, Verification
from taskdb.records.lineage import Lineage
from tests import records
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import LanguageExample, list_examples, unpack_example
from verifiers.certify import compute_guess_bound
from verifiers.verify import verify

EXAMPLES = [pytest.param(example, id=example.folder.name) for example in list_examples()]
SLOW = (pytest.mark.slow, pytest.mark.timeout(1800))
"""A compiler may take minutes for each of ten runs on a machine that does other work."""
BUILT = [
    pytest.param(example, id=example.folder.name, marks=SLOW if example.facts.get("slow") else pytest.mark.docker)
    for example in list_examples()
    if not example.facts.get("unbuilt")
]


def build_context(example: LanguageExample, changed_paths: tuple[str, ...] = ()) -> PlanningContext:
    """Return a context in which every version of the language is available."""
    facts = example.facts
    versions = [release.version for release in get_language(facts["language"]).releases]
    return PlanningContext(
        list_available=lambda: versions, day=date.fromisoformat(str(facts["day"])), changed_paths=changed_paths
    )


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_plan_of_an_example_is_its_snapshot(
    example: LanguageExample, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    repo, known = TinyRepo(tmp_path / "repo"), get_language(example.facts["language"])
    tree = CommitTree(GitRepository(repo.path), repo.commit("Start", example.list_files("before.txt")))
    plan = known.render_plan(known.create_draft(tree, build_context(example, tuple(example.list_files("after.txt")))))
    text = json.dumps(plan.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
    snapshot = example.folder / "plan.json"
    if request.config.getoption("--update"):
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
    assert known.find_test_files(tree, plan), "no file of the example defines tests"


@pytest.mark.parametrize("example", BUILT)
def test_the_change_of_an_example_is_verified_as_expected(example: LanguageExample, tmp_path: Path) -> None:
    services = make_services(
        tmp_path,
        repeats=2,  # the second pair of runs names the test files
        test_timeout=900,
        whole_suite_seconds=900,  # on a busy machine, too, the lists contain all files
        memory_mb=3000,
        disk_mb=2000,
        pids=1024,
        budget_seconds=3000,
    )
    candidate = build_candidate(example, TinyRepo(tmp_path / "repo"), services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment.attempts
    assert environment.attempt <= example.facts.get("attempts", 1)
    assert environment.collected_share == 1.0
    verification = verify(Lineage(candidate=candidate, environment=environment), services)
    assert isinstance(verification, Verification), verification
    assert [test for test, _ in verification.FAIL_TO_PASS] == example.facts["FAIL_TO_PASS"]
    assert list(verification.PASS_TO_PASS) == example.facts["PASS_TO_PASS"]
    assert list(verification.controls) == example.facts.get("controls", example.facts["FAIL_TO_PASS"])
    # A single test may have fewer values than the bound needs, and further evaluations leave preferences right.
    bound = example.facts.get("guess_bound", BOUND)
    assert compute_guess_bound(verification, services) <= bound or not verification.controls


COMPILATIONS = {
    "go": ("go test -vet=off -tags=checked -count=1 -x ./...", "/compile ", "ledger/ledger_test.go"),
    "rust": (
        "cargo test --workspace --features loud --offline --no-run --tests -v",
        "Running `",
        "shelf/tests/sentences.rs",
    ),
}
"""Language -> a command that prints what it compiles, a part of those lines, and a test file."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("language", COMPILATIONS)
def test_a_run_compiles_nothing_but_what_differs_from_the_image(language: str, tmp_path: Path) -> None:
    example = next(example for example in list_examples() if example.folder.name == language)
    services = make_services(tmp_path, memory_mb=3000, disk_mb=2000, pids=1024)
    environment = build(build_candidate(example, TinyRepo(tmp_path / "repo"), services), services)
    assert isinstance(environment, Environment), environment.attempts
    command, mark, test_file = COMPILATIONS[language]
    count = f"{command} 2>&1 | grep -cF {shlex.quote(mark)}"
    edit = f"echo '// a comment' >> {test_file}"
    result = services.sandbox.run(
        environment.image,
        ["bash", "-c", f"cd /testbed && {count}; {edit}; {count}"],
        limits=services.test_limits(),
        user="mergemill",
        env={"HOME": "/home/mergemill"},
    )
    unchanged, changed = map(int, result.output.split())
    assert (unchanged, changed > 0) == (0, True)


def build_candidate(example: LanguageExample, repo: TinyRepo, services: Services) -> Candidate:
    """Return the change, split as the miner does."""
    base = repo.commit("Start", example.list_files("before.txt"))
    merge = repo.commit("Repair it", example.list_files("after.txt"))
    names = repo.git("diff", "--name-only", "--no-renames", base, merge).splitlines()
    parts = [n for n in names if not is_protected(n)], [n for n in names if is_protected(n)]
    assert all(parts), f"the change needs source and tests: {parts}"
    patches = [
        GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", "--full-index", base, merge, "--", *part)
        for part in parts
    ]
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base, merge_commit=merge)
    return records.make_candidate(
        pull,
        language=example.facts["language"],
        created_at=f"{example.facts['day']}T12:00:00+00:00",
        version="",
        gold_patch=services.artifacts.put(patches[0]),
        test_patch=services.artifacts.put(patches[1]),
        gold_files=tuple(parts[0]),
        test_files=tuple(parts[1]),
    )


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_every_language_has_an_example(name: str) -> None:
    assert name in {example.facts["language"] for example in list_examples()}


def test_a_file_of_files_marks_deleted_files() -> None:
    assert unpack_example("==== a/b.txt\none\n\n==== c (gone)\n==== d\n") == {"a/b.txt": "one\n\n", "c": None, "d": ""}
    with pytest.raises(ValueError, match="before the first file"):
        unpack_example("lost\n==== a\n")
