"""Code removed from small real trees: which removals become tasks, and the scores of submissions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.services import Services
from core.settings.group import replace_values
from derivers.base import FewerTasks, KindRejection
from derivers.rebuild import derive_rebuild
from evaluation.solution_lines import extract_added_lines
from mergemill.pipeline.kinds import derive
from mutation import build_patch
from taskdb.records import Certificate, FailureKind, Kind, Stage, Task
from taskdb.records.lineage import Lineage
from tests.containers import make_lineage, make_services
from tests.derivers.injected.test_tasks import BLIND, CART, LABEL, PROJECT, TEST_CART, TEST_LABEL, PatchedTreeImages
from tests.helpers import TinyRepo
from verifiers.certify import certify
from verifiers.grade import grade

pytestmark = pytest.mark.docker


def prepare(tmp_path: Path, tests: dict[str, str | bytes | None], **settings: object) -> tuple[Lineage, Services]:
    """Return a change that verification has rejected, with its environment."""
    services = make_services(tmp_path, **settings)
    services = replace(services, source_images=PatchedTreeImages(services))
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"cart/cart.py": CART, "cart/label.py": LABEL, "pyproject.toml": PROJECT, **tests})
    merge = repo.commit("A change", {"cart/cart.py": CART + "\n\nVAT = 19\n", "tests/test_vat.py": "import cart\n"})
    lineage = make_lineage(repo, services, base, merge)
    return replace(lineage, kinds=(Kind.REBUILD,), rejected_by=Stage.VERIFY), services


TESTS: dict[str, str | bytes | None] = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
SHORT_CART = "def total(prices):\n    return sum(prices)\n"
TEST_SHORT_CART = "from cart.cart import total\n\n\ndef test_prices_are_added():\n    assert total([1, 2]) == 3\n"


def test_a_removed_function_becomes_a_certified_task_of_a_rejected_change(tmp_path: Path) -> None:
    short: dict[str, str | bytes | None] = {"cart/cart.py": SHORT_CART, "tests/test_cart.py": TEST_SHORT_CART}
    lineage, services = prepare(tmp_path, TESTS | short, certify_exploits="off")
    made = derive(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert isinstance(task, Task)
    assert (task.kind, task.name) == (Kind.REBUILD, "ada__greet-1.rebuild-1")
    assert (task.environment, task.parent) == ("verified", lineage.require_environment().id)
    failing = ["tests/test_label.py::test_long_texts_are_cut", "tests/test_label.py::test_short_texts_are_filled_up"]
    assert dict(task.FAIL_TO_PASS) == dict.fromkeys(failing, FailureKind.ERROR)
    assert task.PASS_TO_PASS == ("tests/test_cart.py::test_prices_are_added",)
    assert set(task.controls) == set(failing)
    assert '"""The text padded to a width."""' in task.problem_statement
    assert 'assert label("abcdef", 4) == "abcd"' in task.problem_statement
    for line in extract_added_lines(services.artifacts.get(task.gold_patch)).decode().splitlines():
        assert line.strip() not in task.problem_statement
    certificate = certify(lineage.with_record(task), services)
    assert isinstance(certificate, Certificate), certificate
    assert (certificate.gold, certificate.noop) == ((1.0, 1.0, 1.0), 0.0)
    stub = LABEL[: LABEL.index("    if len")] + "    {}\n"
    before = stub.format("raise NotImplementedError").encode()
    for wrong in ("return None", "return text", 'return "ab  "'):
        patch = build_patch("cart/label.py", before, stub.format(wrong).encode())
        assert grade(task, services, patch).value == 0.0, wrong


@pytest.mark.slow
def test_further_tasks_of_an_environment_have_other_tests_and_numbers(tmp_path: Path) -> None:
    lineage, services = prepare(tmp_path, TESTS, per_environment=1)
    made = derive_rebuild(lineage, services)
    assert isinstance(made, list), made
    more = replace(services, settings=replace_values(services.settings, {"per_environment": 3}))
    again = derive_rebuild(replace(lineage, existing=tuple(made)), more)
    assert isinstance(again, list), again
    assert [task.name.rpartition(".")[2] for task in (*made, *again)] == ["rebuild-1", "rebuild-2"], "two functions"
    assert made[0].FAIL_TO_PASS != again[0].FAIL_TO_PASS
    assert isinstance(again, FewerTasks)
    assert str(again.rest.reason) == "no-further-code"
    result = derive_rebuild(replace(lineage, existing=(*made, *again, *again)), more)
    assert isinstance(result, KindRejection)
    assert str(result.reason) == "enough-tasks"


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ({"tests/test_blind.py": BLIND}, "no-removable-code"),
        ({"tests/test_blind.py": "def test_one():\n    assert 1 == 1\n"}, "no-passing-tests"),
        ({"tests/test_label.py": TEST_LABEL, "cart/cart.py": ""}, "all-tests-fail"),
    ],
    ids=["blind-tests", "one-test", "all-tests"],
)
def test_code_that_no_test_needs_or_all_need_is_no_task(
    tests: dict[str, str | bytes | None], reason: str, tmp_path: Path
) -> None:
    made = derive_rebuild(*prepare(tmp_path, tests))
    assert isinstance(made, KindRejection)
    assert str(made.reason) == reason, made.detail
