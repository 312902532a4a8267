"""Two verified changes as one task, and pairs that are rejected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.services import Services
from derivers.base import KindRejection
from derivers.combined import derive_combined
from derivers.patch_merge import stack_patches
from taskdb.records import Certificate, Kind, Task, Verification
from taskdb.records.lineage import Lineage
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.short_certificates import certify_shortly
from tests.verifiers.no_controls import verify_without_controls
from tests.verifiers.shop import HIDDEN, SHOP, SHOP_RIGHT, TESTS
from verifiers.grade import grade

pytestmark = pytest.mark.docker

LABEL_RIGHT = ('"EUR %s" % price', '"EUR %.2f" % price')
LABEL_TESTS = ('label(3) == "EUR 3"', 'label(3) == "EUR 3.00"')
ROUNDED = ("return sum(prices)", "return round(sum(prices), 2)")
ROUNDED_TEST = "\n\ndef test_no_dust():\n    assert total([0.1, 0.2]) == 0.3\n"


def verified(repo: TinyRepo, services: Services, base: str, merge: str, name: str) -> Lineage:
    lineage = make_lineage(repo, services, base, merge)
    lineage = replace(lineage, candidate=lineage.candidate.model_copy(update={"name": name}))
    lineage = replace(
        lineage,
        environment=lineage.require_environment().model_copy(update={"parent": lineage.candidate.id}),
        candidate=lineage.candidate.model_copy(update={"problem_statement": f"What {name} says."}),
    )
    verification = verify_without_controls(lineage, services)
    assert isinstance(verification, Verification), verification
    return lineage.with_record(verification)


@dataclass(frozen=True)
class FirstChange:
    """The shop's fix, verified, and the repository in which later changes are committed on top of it."""

    services: Services
    repo: TinyRepo
    merge: str
    lineage: Lineage


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> FirstChange:
    folder = tmp_path_factory.mktemp("first")
    services = make_services(folder, repeats=1, certify_exploits="off")
    repo = TinyRepo(folder / "repo")
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS})
    merge = repo.commit("Count the first", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": HIDDEN})
    return FirstChange(services, repo, merge, verified(repo, services, base, merge, "ada__greet-1"))


def pair(first: FirstChange, source: str, tests: str, **between: str) -> tuple[Services, Lineage]:
    """Return the shop's fix and a later change to these contents; `between`: modules changed in between."""
    repo = first.repo
    repo.git("checkout", "-q", "--detach", first.merge)
    before = repo.commit("Something else", {f"shop/{name}.py": text for name, text in between.items()})
    end = repo.commit("And then", {"shop/__init__.py": source, "tests/test_shop.py": tests})
    newer = verified(repo, first.services, before, end, "ada__greet-2")
    return first.services, replace(newer, neighbours=(first.lineage,))


def test_two_changes_become_one_task_that_needs_both(first: FirstChange) -> None:
    services, lineage = pair(first, SHOP_RIGHT.replace(*LABEL_RIGHT), HIDDEN.replace(*LABEL_TESTS))
    made = derive_combined(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    older = lineage.neighbours[0]
    assert (task.kind, task.name) == (Kind.COMBINED, "ada__greet-2.combined")
    assert task.parent == lineage.require_verification().id
    assert task.family == {lineage.candidate.id, older.candidate.id}
    assert (task.base_commit, task.image) == (older.candidate.base_commit, older.require_environment().image)
    assert [test for test, _ in task.FAIL_TO_PASS] == [
        "tests/test_shop.py::TestMore::test_it_is_a_number",
        "tests/test_shop.py::test_label",
        "tests/test_shop.py::test_one",
        "tests/test_shop.py::test_two",
    ]
    assert task.PASS_TO_PASS == ("tests/test_shop.py::test_nothing_costs_nothing",)
    assert set(task.controls) == {test for test, _ in task.FAIL_TO_PASS}
    for part in (older, lineage):
        assert part.candidate.problem_statement in task.problem_statement
    assert isinstance(certify_shortly(lineage.with_record(task), services), Certificate)
    for part in (older, lineage):
        score = grade(task, services, services.artifacts.get(part.candidate.gold_patch))
        assert score.value == 0.0, "half of it is not enough"


def test_a_pair_is_rejected_when_one_part_alone_passes_the_others_tests(first: FirstChange) -> None:
    services, lineage = pair(first, SHOP_RIGHT.replace(*ROUNDED), HIDDEN + ROUNDED_TEST)
    assert get_rejection(lineage, services) == "part-not-needed", "the later fix of the same line holds the earlier one"


@pytest.mark.slow
def test_changes_of_adjacent_lines_are_a_task_when_both_are_needed(first: FirstChange) -> None:
    none_is_no_price = ("    return sum(", "    prices = [price for price in prices if price]\n    return sum(")
    more = "\n\ndef test_gaps():\n    assert total([1, None]) == 1\n"
    services, lineage = pair(first, SHOP_RIGHT.replace(*none_is_no_price), HIDDEN + more)
    made = derive_combined(lineage, services)
    assert isinstance(made, list), made
    assert isinstance(made[0], Task)


def test_a_change_of_lines_from_an_intermediate_commit_does_not_apply(first: FirstChange) -> None:
    between = SHOP_RIGHT.replace('"EUR %s" % price', 'f"EUR {price}"')
    services, lineage = pair(
        first, between.replace("{price}", "{price:.2f}"), HIDDEN.replace(*LABEL_TESTS), __init__=between
    )
    assert get_rejection(lineage, services) == "does-not-apply"


@pytest.mark.slow
def test_a_change_that_depends_on_an_intermediate_commit_fails_together(first: FirstChange) -> None:
    cents = 'def cents(price):\n    return "%.2f" % price\n'
    with_cents = SHOP_RIGHT.replace('"EUR %s" % price', '"EUR " + cents(price)')
    services, lineage = pair(
        first, f"from shop.money import cents\n{with_cents}", HIDDEN.replace(*LABEL_TESTS), money=cents
    )
    assert get_rejection(lineage, services) == "fails-together"


@pytest.mark.slow
def test_related_changes_become_a_chain_that_needs_each_of_them(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, certify_exploits="off")
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS, "shop/other.py": "ONE = 2\n"})
    sources = [SHOP_RIGHT, SHOP_RIGHT.replace(*LABEL_RIGHT)]
    sources.append(sources[1] + "\n\ndef free(price):\n    return price == 0\n")
    tests = [HIDDEN, HIDDEN.replace(*LABEL_TESTS)]
    tests.append(tests[1] + "\n\ndef test_free():\n    import shop\n\n    assert shop.free(0)\n")
    commit = repo.commit("Count the first", {"shop/__init__.py": sources[0], "tests/test_shop.py": tests[0]})
    odd_test = "from shop.other import ONE\n\n\ndef test_one():\n    assert ONE == 1\n"
    odd = repo.commit("Unrelated", {"shop/other.py": "ONE = 1\n", "tests/test_other.py": odd_test})
    two = repo.commit("Cents", {"shop/__init__.py": sources[1], "tests/test_shop.py": tests[1]})
    three = repo.commit("Free", {"shop/__init__.py": sources[2], "tests/test_shop.py": tests[2]})
    first, unrelated, second, third = (
        verified(repo, services, before, after, f"ada__greet-{number}")
        for number, (before, after) in enumerate([(base, commit), (commit, odd), (odd, two), (two, three)], start=1)
    )
    lineage = replace(third, neighbours=(second, unrelated, first))
    made = derive_combined(lineage, services)
    assert isinstance(made, list), made
    pair_task, task = made
    assert (pair_task.name, task.name) == ("ada__greet-4.combined", "ada__greet-4.combined-3")
    assert set(task.other_candidates) == {first.candidate.id, second.candidate.id}
    assert task.base_commit == first.candidate.base_commit
    for part in (first, second, third):
        assert part.candidate.problem_statement in task.problem_statement
    assert "# Third task" in task.problem_statement
    certificate = certify_shortly(lineage.with_record(task), services)
    assert isinstance(certificate, Certificate), certificate
    halves = stack_patches(
        GitRepository(repo.path),
        task.base_commit,
        *(services.artifacts.get(part.candidate.gold_patch) for part in (first, second)),
    )
    assert grade(task, services, halves).value == 0.0, "two of three are not enough"


def get_rejection(lineage: Lineage, services: Services) -> str:
    derived = derive_combined(lineage, services)
    assert isinstance(derived, KindRejection), derived
    return str(derived.reason)
