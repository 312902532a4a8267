"""Tests that miss a hunk or a fault, or refuse a rewrite, are recognised as such."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from backends.git import run_git
from backends.sandbox.execution import ExecResult
from evaluation.edits.fixed_files import FixedFile
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from evaluation.runner.run import EvaluationResult
from mergemill.pipeline.kinds import derive
from taskdb.records import Rejection, Verification
from tests.containers import make_lineage, make_services
from tests.exporters.tasks import make_task
from tests.helpers import TinyRepo
from tests.verifiers.edits import make_edit
from tests.verifiers.no_controls import verify_without_controls
from verifiers import inspect
from verifiers.inspection import read_target
from verifiers.probes import NO_OP, make_patch
from verifiers.strength import EditKind, EditOutcome, draft_edits, judge_run, read_gold_files, summarize_edits

CART = """\
def total(prices):
    return sum(prices[1:])


# A note.


def label(price):
    return "EUR %s" % price


def cheapest(prices):
    return prices[0]


def discount(price, percent):
    return price * percent / 100
"""
CART_RIGHT = (
    CART.replace("prices[1:]", "prices")
    .replace("A note", "Another note")
    .replace("return prices[0]", "return min( prices )")
    .replace("price * percent / 100", "price - price * percent / 100")
)
TESTS = "from cart import label\n\n\ndef test_label():\n    assert label(3) == 'EUR 3'\n"
HIDDEN = """\
import inspect

from cart import cheapest, label, total


def test_label():
    assert label(3) == 'EUR 3'


def test_total():
    assert total([5, 2]) == 7


def test_cheapest():
    assert cheapest([5, 2]) == 2


def test_the_text_of_the_solution():
    assert "min( prices )" in inspect.getsource(cheapest)
"""


def make_result(statuses: Mapping[str, OutcomeStatus] | None, **fields: object) -> EvaluationResult:
    report = statuses and EvaluationReport(
        outcomes={test: Outcome(status=status) for test, status in statuses.items()}, uncollected={}
    )
    values = {
        "exec_result": ExecResult(exit_code=0, output="", files={}, seconds=1.0, killed_by=None),
        "report": report,
        "test_seconds": 1.0,
        "script_sha256": "",
        "log": "",
        "is_applied": True,
        "canary_status": "right",
    }
    return EvaluationResult(**values | fields)  # type: ignore[arg-type]


PASSED, FAILED = OutcomeStatus.PASSED, OutcomeStatus.FAILED
KILLED = ExecResult(exit_code=137, output="", files={}, seconds=1.0, killed_by="time")


@pytest.mark.parametrize(
    ("result", "outcome", "by"),
    [
        (make_result({"a": PASSED, "b": PASSED, "c": FAILED}), EditOutcome.PASSED, ""),
        (make_result({"a": PASSED, "b": FAILED}), EditOutcome.DETECTED, "b"),
        (make_result({"b": OutcomeStatus.SKIPPED}), EditOutcome.DETECTED, "b"),
        (make_result({"a": PASSED}), EditOutcome.NOT_BUILT, "b"),
        (make_result(None), EditOutcome.NOT_BUILT, "a"),
        (make_result(None, exec_result=KILLED), EditOutcome.DETECTED, "the tests ran longer than the limit"),
        (make_result(None, infrastructure_error="no disk"), EditOutcome.NOT_SCORED, "no disk"),
        (make_result(None, is_applied=False), EditOutcome.NOT_SCORED, "the edit does not apply"),
    ],
)
def test_a_fault_is_detected_by_a_test_that_ran(result: EvaluationResult, outcome: EditOutcome, by: str) -> None:
    verdict, why = judge_run(result, ["a", "b"])
    assert verdict is outcome
    assert why == by or (result.exec_result.killed_by and why)


def test_edits_that_were_not_built_or_scored_do_not_count(tmp_path: Path) -> None:
    task = make_task(make_services(tmp_path), tmp_path)
    edits = [
        make_edit(EditKind.HUNK, EditOutcome.DETECTED),
        make_edit(EditKind.HUNK, EditOutcome.PASSED, first_line=7, last_line=9),
        make_edit(EditKind.MUTANT, EditOutcome.DETECTED),
        make_edit(EditKind.MUTANT, EditOutcome.DETECTED),
        make_edit(EditKind.MUTANT, EditOutcome.NOT_BUILT),
        make_edit(EditKind.MUTANT, EditOutcome.NOT_SCORED),
        make_edit(EditKind.VARIANT, EditOutcome.DETECTED),
    ]
    strength = summarize_edits(task, edits)
    assert (strength.score, strength.hunks, strength.mutants, strength.mutants_detected) == (0.75, 2, 2, 2)
    assert (strength.variants, strength.variants_accepted, strength.untested_hunks) == (1, 0, ("src/cart.py:7-9",))
    assert summarize_edits(task, edits[4:]).score is None


def test_hunks_come_first_and_mutants_fill_what_is_left() -> None:
    files = [FixedFile(path="cart.py", before=CART.encode(), after=CART_RIGHT.encode())]
    drafts = draft_edits(files, 10)
    assert len(drafts) == 10
    kinds = [kind for kind, _ in drafts]
    assert kinds == [EditKind.HUNK] * 3 + [EditKind.MUTANT] * 5 + [EditKind.VARIANT] * 2
    assert [draft.line for kind, draft in drafts if kind is EditKind.HUNK] == [2, 13, 17]  # none for the comment
    assert len({draft.patch for _, draft in drafts}) == 10
    assert [kind for kind, _ in draft_edits(files, 4)] == [EditKind.HUNK] * 2 + [EditKind.MUTANT] * 2
    assert draft_edits(files, 0) == []


def test_gold_files_are_sources_after_the_patch() -> None:
    before = {"cart.py": CART.encode(), "gone.py": b"a = 1\n", "README.md": b"# Cart\n", "same.py": b"c = 1\n"}
    after = {"cart.py": CART_RIGHT.encode(), "gone.py": None, "README.md": b"# Shop\n", "src/new.py": b"b = 1\n"}
    files = read_gold_files(before, make_patch(after, before))
    assert [(file.path, file.before, file.after) for file in files] == [
        ("cart.py", before["cart.py"], after["cart.py"]),
        ("src/new.py", None, b"b = 1\n"),
    ]


def test_renamed_files_are_compared_with_their_old_ones_and_links_are_ignored(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path)
    repo.commit("Start", {"cart.py": CART, "far.py": "a = 1\n"})
    (tmp_path / "near.py").symlink_to("cart.py")
    (tmp_path / "gone.py").symlink_to("cart.py")
    linked = repo.commit("Link", {})
    (tmp_path / "cart.py").unlink()
    (tmp_path / "gone.py").unlink()
    (tmp_path / "near.py").unlink()
    (tmp_path / "near.py").symlink_to("far.py")
    (tmp_path / "new.py").symlink_to("far.py")
    merge = repo.commit("Move", {"shop/cart.py": CART_RIGHT})
    gold = run_git("diff", "--no-ext-diff", "--binary", "-M", linked, merge, cwd=tmp_path)
    assert b"rename from cart.py" in gold
    assert b"120000" in gold
    services = make_services(tmp_path / "store")
    task = make_task(services, tmp_path / "store")
    task = task.model_copy(update={"gold_patch": services.artifacts.put(gold)})
    files = [("cart.py", CART.encode()), ("far.py", b"a = 1\n")]
    target, _ = read_target(task, services, files)
    assert target.touched == {"cart.py": CART.encode()}
    (file,) = read_gold_files(target.touched, gold)
    assert (file.path, file.before, file.after) == ("shop/cart.py", CART.encode(), CART_RIGHT.encode())


@pytest.mark.docker
def test_an_untested_hunk_is_named_and_a_refused_rewrite_is_counted(tmp_path: Path) -> None:
    services = make_services(tmp_path, repeats=1, test_timeout=20, strength_runs=12, workers=2)
    repo = TinyRepo(tmp_path / "repo")
    project = '[project]\nname = "cart"\nversion = "1.0"\n'
    base = repo.commit("Start", {"cart.py": CART, "tests/test_cart.py": TESTS, "pyproject.toml": project})
    merge = repo.commit("Count the first price", {"cart.py": CART_RIGHT, "tests/test_cart.py": HIDDEN})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify_without_controls(lineage, services)
    assert isinstance(verification, Verification), verification
    made = derive(lineage.with_record(verification), services)
    assert not isinstance(made, Rejection)
    strength = inspect(made[0], services, probes=[NO_OP]).strength
    assert strength.untested_hunks == ("cart.py:17",)
    assert (strength.hunks, strength.hunks_detected) == (3, 2)
    assert strength.variants > strength.variants_accepted
    assert all(edit.by for edit in strength.edits if edit.outcome is EditOutcome.DETECTED)
    on_untested = [edit for edit in strength.edits if edit.kind is EditKind.MUTANT and edit.first_line == 17]
    assert on_untested
    assert all(edit.outcome is EditOutcome.PASSED for edit in on_untested)
    assert strength.score is not None
    assert 0.2 < strength.score < 0.8
