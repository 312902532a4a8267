"""Refactoring and migration tasks of small real changes, and what submissions to them score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.services import Services
from derivers.base import KindRejection
from derivers.structure.migration import derive_migration
from derivers.structure.refactoring import derive_refactoring
from taskdb.records import Certificate, Verification
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import MigrationOracle, RefactoringOracle
from taskdb.records.tags import ChangeKind
from tests.containers import make_lineage, make_services
from tests.exporters.verifying import run_verifier
from tests.helpers import TinyRepo
from tests.short_certificates import certify_shortly
from tests.verifiers.no_controls import verify_without_controls
from verifiers.rewards import grade

pytestmark = pytest.mark.docker

SHOP = '''"""Prices."""


def label(price):
    """A price tag."""
    euros = "%.2f" % price
    return "EUR " + euros


def total(prices):
    """Sum of the prices."""
    return sum(prices)


def print_bill(prices):
    """The bill."""
    lines = []
    for price in prices:
        lines.append(label(price))
    lines.append("=" * 10)
    return lines
'''
LABEL = SHOP[SHOP.index("def label") : SHOP.index("def total")]
TAGS = f'"""Tags."""\n\n\n{LABEL.rstrip()}\n'
MOVED = SHOP.replace(LABEL, "").replace('"""Prices."""', '"""Prices."""\n\nfrom shop.tags import label')
TESTS = """from shop import label, print_bill, total


def test_label():
    assert label(3) == "EUR 3.00"


def test_bill():
    assert len(print_bill([1, 2])) == 3
    assert total([1, 2]) == 3
"""
LINK = b"""diff --git a/shop/tags.py b/shop/tags.py
new file mode 120000
--- /dev/null
+++ b/shop/tags.py
@@ -0,0 +1 @@
+/tests/structure_check.py
\\ No newline at end of file
"""
LOOP = "    lines = []\n    for price in prices:\n        lines.append(label(price))\n"


def prepare(
    tmp_path: Path, before: Mapping[str, str | None], after: Mapping[str, str | None], statement: str, kind: ChangeKind
) -> tuple[Lineage, Services, TinyRepo, str]:
    services = make_services(tmp_path, repeats=1)
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", before)
    merge = repo.commit("Refactor", after)
    lineage = make_lineage(repo, services, base, merge)
    candidate = lineage.candidate.model_copy(update={"change_kind": kind, "problem_statement": statement})
    lineage = replace(lineage, candidate=candidate)
    verification = verify_without_controls(lineage, services)
    assert isinstance(verification, Verification), verification
    return lineage.with_record(verification), services, repo, base


def make_patch(repo: TinyRepo, base: str, files: Mapping[str, str | None]) -> bytes:
    repo.git("checkout", "-q", "-f", base)
    other = repo.commit("Another solution", files)
    return GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", "--full-index", base, other)


def test_a_moved_function_must_be_at_its_new_place_and_work(tmp_path: Path) -> None:
    before = {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS}
    after = {"shop/__init__.py": MOVED, "shop/tags.py": TAGS}
    lineage, services, repo, base = prepare(tmp_path, before, after, "Move labels to a module", ChangeKind.REFACTOR)
    made = derive_refactoring(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert isinstance(task.oracle, RefactoringOracle)
    assert [(definition.path, definition.name, definition.origin.path) for definition in task.oracle.moved] == [
        ("shop/tags.py", "label", "shop/__init__.py")
    ]
    assert [definition.name for definition in task.oracle.gone] == ["label"]
    assert {definition.name for definition in task.oracle.kept} == {"total", "print_bill"}
    assert "`shop/tags.py` defines `label`, which is `label` of `shop/__init__.py` today" in task.problem_statement
    certificate = certify_shortly(lineage.with_record(task), services)
    assert isinstance(certificate, Certificate), certificate
    honest = TAGS.replace("Tags", "Labels, in other words") + "\n\nUNIT = 1\n"
    other_order = MOVED.replace("\nfrom shop.tags import label", "") + "\n\nfrom shop.tags import label\n"
    scores = {
        name: grade(task, services, make_patch(repo, base, files)).value
        for name, files in {
            "another order": {"shop/__init__.py": other_order, "shop/tags.py": honest},
            "copied": {"shop/tags.py": TAGS},
            "broken": {"shop/__init__.py": MOVED, "shop/tags.py": TAGS.replace("%.2f", "%s")},
            "interface lost": {"shop/__init__.py": MOVED.replace("def total", "def total_of"), "shop/tags.py": TAGS},
        }.items()
    }
    assert scores == {"another order": 1.0, "copied": 0.0, "broken": 0.0, "interface lost": 0.0}
    gold = services.artifacts.get(task.gold_patch)
    broken = make_patch(repo, base, {"shop/__init__.py": MOVED, "shop/tags.py": TAGS.replace("%.2f", "%s")})
    copied = make_patch(repo, base, {"shop/tags.py": TAGS})
    linked = make_patch(repo, base, {"shop/__init__.py": MOVED}) + LINK
    bare = gold.replace(b"a/shop", b"shop").replace(b"b/shop", b"shop")[:-1]
    assert grade(task, services, bare).value == 1.0
    for submission, reward in ((gold, 1), (bare, 1), (b"", 0), (broken, 0), (copied, 0), (linked, 0)):
        written, output = run_verifier(task, services, submission)
        assert written is not None, output
        assert written["reward"] == reward, (submission, output)


def test_an_extracted_and_a_renamed_function_are_required(tmp_path: Path) -> None:
    extracted = SHOP.replace(LOOP, "    lines = list_labels(prices)\n").replace("def total(", "def sum_up(")
    extracted += f"\n\ndef list_labels(prices):\n{LOOP}    return lines\n"
    before = {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS}
    after = {"shop/__init__.py": extracted, "tests/test_shop.py": TESTS.replace("total", "sum_up")}
    lineage, services, _, _ = prepare(tmp_path, before, after, "Extract labels", ChangeKind.REFACTOR)
    derived = derive_refactoring(lineage, services)
    assert isinstance(derived, KindRejection)
    assert derived.reason == "no-passing-tests", "all tests fail to be collected before"
    kept = replace(
        lineage, verification=lineage.require_verification().model_copy(update={"PASS_TO_PASS": ("t.py::test_a",)})
    )
    made = derive_refactoring(kept, services)
    assert isinstance(made, list), made
    assert isinstance(made[0].oracle, RefactoringOracle)
    assert {definition.name: definition.origin.name for definition in made[0].oracle.moved} == {
        "list_labels": "",
        "sum_up": "total",
    }
    assert "- In `shop/__init__.py`, `total` is called `sum_up`." in made[0].problem_statement


def test_a_dependency_must_be_replaced_and_the_tests_pass(tmp_path: Path) -> None:
    old = "import optparse\n\n\ndef parse(words):\n    return optparse.OptionParser().parse_args(words)[1]\n"
    new = old.replace("optparse.OptionParser().parse_args(words)[1]", "_split(words)").replace(
        "import optparse\n",
        "import argparse\n\n\ndef _split(words):\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('words', nargs='*')\n    return parser.parse_args(words).words\n",
    )
    tests = "from shop.words import parse\n\n\ndef test_words():\n    assert parse(['a', 'b']) == ['a', 'b']\n"
    before = {"shop/__init__.py": "", "shop/words.py": old, "tests/test_words.py": tests}
    lineage, services, repo, base = prepare(
        tmp_path, before, {"shop/words.py": new}, "Use argparse, as optparse is deprecated", ChangeKind.DEPENDENCY
    )
    made = derive_migration(lineage, services)
    assert isinstance(made, list), made
    (task,) = made
    assert task.oracle == MigrationOracle(old_modules=("optparse",), new_modules=("argparse",))
    assert "- No source file imports `optparse` any more." in task.problem_statement
    certificate = certify_shortly(lineage.with_record(task), services)
    assert isinstance(certificate, Certificate), certificate
    unused = "import argparse\n\n\ndef parse(words):\n    return [word for word in words if word[:1] != '-']\n"
    unused_score = grade(task, services, make_patch(repo, base, {"shop/words.py": unused}))
    assert unused_score.value == 0.0
    assert "argparse is imported and not used" in unused_score.explanation
    scores = {
        name: grade(task, services, make_patch(repo, base, {"shop/words.py": text})).value
        for name, text in {
            "both imports": f"import argparse\n{old}",
            "broken": "import argparse\n\n\ndef parse(words):\n    return None\n",
        }.items()
    }
    assert scores == {"both imports": 0.0, "broken": 0.0}
    silent = replace(lineage, candidate=lineage.candidate.model_copy(update={"problem_statement": "Tidy up words"}))
    derived = derive_migration(silent, services)
    assert isinstance(derived, KindRejection)
    assert derived.reason == "not-intended"
