"""Bugs injected into small real trees: which become tasks, and the scores of submissions."""

from __future__ import annotations

import keyword
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.overlay import open_patched_commit
from backends.sandbox.images import ImageInfo
from backends.services import Services
from benchmarks.further_tasks import count_runs
from derivers import injected
from derivers.base import KindRejection
from derivers.injected import derive_injected, reach, search
from derivers.search_progress import load_progress
from mutation.operators import MUTANT_OPERATORS
from taskdb.records import BuildPlan, Candidate, Certificate, FailureKind, Kind, RunVariant, Verification
from taskdb.records.lineage import Lineage, StepTasks
from tests.containers import make_environment_image, make_lineage, make_services
from tests.helpers import TinyRepo
from verifiers.certify import certify
from verifiers.grade import grade
from verifiers.verify import verify

pytestmark = pytest.mark.docker

CART = '''"""A cart."""


def total(prices, discount=0):
    """Sum of the prices minus a discount."""
    result = 0
    for price in prices:
        if price < 0:
            raise ValueError("a price is negative")
        result += price
    return result - discount
'''
LABEL = '''"""Labels."""


def label(text, width):
    """The text padded to a width."""
    if len(text) > width:
        return text[:width]
    return text.ljust(width)
'''
TEST_CART = """import pytest

from cart.cart import total


def test_prices_are_added():
    assert total([1, 2, 3]) == 6


def test_discount():
    assert total([10], discount=4) == 6


def test_nothing():
    assert total([]) == 0


def test_negative_prices():
    with pytest.raises(ValueError):
        total([1, -1])
"""
TEST_LABEL = """from cart.label import label


def test_short_texts_are_filled_up():
    assert label("ab", 4) == "ab  "


def test_long_texts_are_cut():
    assert label("abcdef", 4) == "abcd"
"""
BLIND = """def test_one_is_one():
    assert 1 == 1


def test_two_is_two():
    import cart.cart
    import cart.label
"""
PROJECT = '[project]\nname = "cart"\nversion = "1.0"\n'


@dataclass(frozen=True)
class PatchedTreeImages:
    """Images of patched trees for these tests."""

    services: Services

    def build(self, plan: BuildPlan, candidate: Candidate, setup_patch: bytes) -> ImageInfo | None:
        history = self.services.clones.open(candidate.source, candidate.repo)
        with open_patched_commit(history, candidate.base_commit, setup_patch) as (overlay, commit):
            files = {e.path: overlay.run_git("cat-file", "blob", e.oid) for e in overlay.ls_tree(commit)}
        return self.services.images.inspect(make_environment_image(self.services, files))


def prepare(tmp_path: Path, tests: dict[str, str | bytes | None], **settings: object) -> tuple[Lineage, Services]:
    services = make_services(tmp_path, **settings)
    services = replace(services, source_images=PatchedTreeImages(services))
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"cart/cart.py": CART, "cart/label.py": LABEL, "pyproject.toml": PROJECT, **tests})
    merge = repo.commit("A change", {"cart/cart.py": CART + "\n\nVAT = 19\n", "tests/test_vat.py": "import cart\n"})
    lineage = make_lineage(repo, services, base, merge)
    verification = Verification(
        parent=lineage.require_environment().id,
        candidate=lineage.candidate.id,
        name="ada__greet-1",
        FAIL_TO_PASS=(),
        PASS_TO_PASS=(),
        flaky=(),
        controls=(),
        eval_files=(),
        eval_script="",
        control_patch=None,
        repeats=1,
        runs=(),
        seconds=0.0,
    )
    return lineage.with_record(verification), services


def test_a_bug_that_tests_detect_becomes_a_certified_task(tmp_path: Path) -> None:
    tests: dict[str, str | bytes | None] = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
    lineage, services = prepare(tmp_path, tests, certify_exploits="off")
    made = derive_injected(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert (task.kind, task.name) == (Kind.INJECTED, "ada__greet-1.injected-1")
    failing = [test for test, _ in task.FAIL_TO_PASS]
    assert failing
    assert task.PASS_TO_PASS
    assert {kind for _, kind in task.FAIL_TO_PASS} <= {FailureKind.ASSERTION, FailureKind.ERROR}
    assert set(task.controls) == set(failing)
    hidden = {test.partition("::")[0] for test in failing}
    setup = services.artifacts.get_text(task.setup_patch or "")
    assert all("deleted file mode 100644\nindex" in setup and path in setup for path in hidden)
    gold = services.artifacts.get_text(task.gold_patch)
    assert "deleted file" not in gold
    for line in gold.splitlines():
        code = line[1:].strip()
        # the statement's own sentences have keywords such as `pass`, which give nothing away
        is_code = line[:1] in "+-" and not line.startswith(("+++", "---")) and not keyword.iskeyword(code)
        assert not is_code or code not in task.problem_statement
    assert failing[0].rpartition("::")[2] in task.problem_statement
    (injection,) = task.injections
    assert f"--- a/{injection.path}" in gold
    assert injection.function in ("total", "label")
    assert injection.operator in {operator.name for operator in MUTANT_OPERATORS}
    certificate = certify(lineage.with_record(task), services)
    assert isinstance(certificate, Certificate), certificate
    assert (certificate.gold, certificate.noop) == ((1.0, 1.0, 1.0), 0.0)


def test_an_environment_gives_tasks_without_a_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MIN_GROUP_SECONDS", 0.01)
    monkeypatch.setattr(reach, "MAX_GROUP_SHARE", 100.0)
    tests: dict[str, str | bytes | None] = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
    lineage, services = prepare(tmp_path, tests, per_environment=2)
    lineage = replace(lineage, verification=None, wanted=9, step=1)  # so all bugs are in one batch
    with count_runs() as first_runs:
        first = derive_injected(lineage, services)
    assert isinstance(first, StepTasks), first

    def measure_again(*_: object, **__: object) -> None:
        raise AssertionError("a further step measures again")

    # Neither the base run nor the groups of test files, and nothing that was tried before.
    monkeypatch.setattr(search, "run_tests", measure_again)
    monkeypatch.setattr(injected, "measure_reach", measure_again)
    progress = load_progress(replace(lineage, progress=first.progress), services)
    tried = progress.tried
    assert progress.base is not None
    assert progress.base.cpu_seconds, "a bug with an endless loop is ended by them"
    lineage = replace(lineage, wanted=8, existing=tuple(first), progress=first.progress)
    with count_runs() as second_runs:
        second = derive_injected(lineage, services)
    assert isinstance(second, StepTasks), second
    all_tried = load_progress(replace(lineage, progress=second.progress), services).tried
    assert all_tried[: len(tried)] == tried
    assert len(all_tried) == len(set(all_tried))
    made = [*first, *second]
    n_control_runs = first_runs.runs[RunVariant.CONTROL] + second_runs.runs[RunVariant.CONTROL]
    assert n_control_runs == 3, "the values of both are tried in one run, and each is graded"
    for counted in (first_runs, second_runs):
        assert (counted.runs[RunVariant.TEST_ONLY], counted.runs[RunVariant.GOLD]) == (1, 0)
    assert [task.name.rpartition(".")[2] for task in made] == ["injected-1", "injected-2"]
    assert [len(task.injections) for task in made] == [1, 1]
    assert {injection.function for task in made for injection in task.injections} == {"total", "label"}
    assert len({task.FAIL_TO_PASS for task in made}) == 2
    assert all(task.PASS_TO_PASS and task.controls and task.eval_script for task in made)
    enough = derive_injected(replace(lineage, existing=tuple(made)), services)
    assert isinstance(enough, KindRejection)
    assert str(enough.reason) == "enough-tasks"


@pytest.mark.slow
def test_several_injected_bugs_must_all_be_fixed(tmp_path: Path) -> None:
    tests: dict[str, str | bytes | None] = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
    lineage, services = prepare(tmp_path, tests, injected_bugs=2)
    made = derive_injected(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert "in 2 independent places" in task.problem_statement
    gold = services.artifacts.get_text(task.gold_patch)
    if gold.count("diff --git") == 2:
        half = gold[: gold.rindex("diff --git")]
        scored = grade(task, services, half.encode())
        assert scored.value == 0.0
        assert 0 < scored.f2p_rate < 1


@pytest.mark.slow
def test_tasks_of_one_change_have_bugs_in_different_functions(tmp_path: Path) -> None:
    tests: dict[str, str | bytes | None] = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
    made = derive_injected(*prepare(tmp_path, tests, injected_per_change=3))
    assert isinstance(made, list), made
    assert [task.name.rpartition(".")[2] for task in made] == ["injected-1", "injected-2"], "there are two functions"
    assert len({task.gold_patch for task in made}) == 2


@pytest.mark.slow
def test_a_bug_on_top_of_the_changes_own_must_be_fixed_together_with_it(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1)
    services = replace(services, source_images=PatchedTreeImages(services))
    repo = TinyRepo(tmp_path / "repo")
    wrong_label = LABEL.replace("text[:width]", "text[width:]")
    label_tests = TEST_LABEL[: TEST_LABEL.index("\n\ndef test_long")]
    before = {"cart/cart.py": CART, "cart/label.py": wrong_label, "tests/test_cart.py": TEST_CART}
    base = repo.commit("Start", {**before, "tests/test_label.py": label_tests, "pyproject.toml": PROJECT})
    merge = repo.commit("Cut at the end", {"cart/label.py": LABEL, "tests/test_label.py": TEST_LABEL})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    lineage = lineage.with_record(verification)
    made = derive_injected(lineage, services)
    assert isinstance(made, list), made
    alone, task = made
    assert (alone.name, task.name) == ("ada__greet-1.injected-1", "ada__greet-1.injected-2")
    own = {test for test, _ in verification.FAIL_TO_PASS}
    failing = {test for test, _ in task.FAIL_TO_PASS}
    assert own < failing
    assert lineage.candidate.problem_statement in task.problem_statement
    assert "no longer works" in task.problem_statement
    certificate = certify(lineage.with_record(task), services)
    assert isinstance(certificate, Certificate), certificate
    half = grade(task, services, services.artifacts.get(lineage.candidate.gold_patch))
    assert half.value == 0.0
    assert 0 < half.f2p_rate < 1


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ({"tests/test_blind.py": BLIND}, "no-mutant-detected"),
        ({"tests/test_blind.py": "def test_one():\n    assert 1 == 1\n"}, "no-passing-tests"),
        ({"tests/test_blind.py": BLIND, "cart/cart.py": "", "cart/label.py": ""}, "no-mutable-code"),
    ],
    ids=["blind-tests", "one-test", "no-code"],
)
def test_a_bug_that_no_test_detects_is_no_task(
    tests: dict[str, str | bytes | None], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_TRIED_BUGS", 3)
    made = derive_injected(*prepare(tmp_path, tests))
    assert isinstance(made, KindRejection)
    assert str(made.reason) == reason, made.detail
