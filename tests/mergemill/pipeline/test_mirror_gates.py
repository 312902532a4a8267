"""Checks of mirrored bugs by other stages, without containers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backends.git import GitRepository
from backends.index import ScratchIndex
from backends.services import Services
from derivers.base import KindRejection
from derivers.injected.patches import build_injection_patches
from mergemill.pipeline import mirrored
from mergemill.pipeline.mirrored import check_task
from mutation import build_patch
from taskdb.records import FailureKind, Kind, MirrorOrigin, Task, WrittenTests
from taskdb.records.lineage import Lineage
from tests import records
from tests.containers import make_services
from tests.derivers.mirrored.answers import STATEMENT, TITLE, make_donor
from tests.helpers import TinyRepo
from verifiers.strength import EditKind, EditOutcome, TriedEdit

LABEL = '''"""Labels."""


def trim(text):
    """The text without space around it."""
    return text.strip()


def label(text, width):
    """The text cut to a width."""
    if not text:
        raise ValueError("a label has no text at all")
    return trim(text)[:width]
'''
NAMELESS = LABEL.replace(LABEL[LABEL.index("def trim") : LABEL.index("def label")], "").replace("trim(text)", "text")
SILENT = LABEL.replace('    if not text:\n        raise ValueError("a label has no text at all")\n', "")
WIDE = LABEL.replace("[:width]", "[: width + 1]")
TEST_WIDTH = "from cart.label import label\n\n\ndef test_it():\n    assert label('abc', 2) == 'ab'\n"
TEST_TRIM = "from cart.label import trim\n\n\ndef test_it():\n    assert trim(' a ') == 'a'\n"
TEST_EMPTY = """import pytest

from cart.label import label


def test_it():
    with pytest.raises(ValueError, match="a label has no text at all"):
        label("", 2)
"""
TEXT = "`label('abc', 2)` from `cart.label` returns 'abc', it should return 'ab', as labels are as long as their width."


def make_task(repo: TinyRepo, services: Services, buggy: str, test: str, text: str = TEXT) -> Task:
    """Return a mirrored task whose bug turns LABEL into another text."""
    base, repository = repo.git("rev-parse", "HEAD"), GitRepository(repo.path)
    with ScratchIndex(repository, base) as index:
        index.write_file("tests/test_it.py", test.encode())
        written_patch = index.diff()
    bug = build_patch("cart/label.py", LABEL.encode(), buggy.encode())
    patches = build_injection_patches(repository, base, [bug], [], own_tests=written_patch)
    candidate = records.make_candidate(records.make_pull_request(source=f"git:{repo.path}"), base_commit=base)
    put = services.artifacts.put
    written = WrittenTests(
        patch=put(written_patch),
        files=("tests/test_it.py",),
        model="m",
        prompt="p",
        attempt=1,
        transcript="",
        faults=0,
        faults_detected=0,
        variants=0,
    )
    fields: dict[str, Any] = {
        "kind": Kind.MIRRORED,
        "base_commit": base,
        "problem_statement": f"{TITLE}\n\n{text}\n",
        "setup_patch": put(patches.setup_patch),
        "gold_patch": put(patches.gold_patch),
        "test_patch": put(patches.test_patch),
        "eval_script": put(b"true"),
        "FAIL_TO_PASS": (("tests/test_it.py::test_it", FailureKind.ASSERTION),),
        "PASS_TO_PASS": (),
        "mirror": MirrorOrigin(
            candidate="c", name="eve__till-7", repo="eve/till", license="MIT", written_tests=written
        ),
    }
    made = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    return Task(**made.model_dump() | fields)


class EditRuns:
    """Runs of edits whose outcome is the same for all."""

    def __init__(self, outcome: EditOutcome) -> None:
        self.outcome = outcome

    def __call__(self, **_: object) -> EditRuns:
        return self

    def run(self, edits: list[tuple[EditKind, Any]]) -> list[TriedEdit]:
        assert edits
        return [
            TriedEdit(
                kind=EditKind.MUTANT,
                operator=draft.operator,
                path=draft.path,
                first_line=draft.line,
                last_line=draft.last_line,
                detail=draft.detail,
                outcome=self.outcome,
                by="",
            )
            for _, draft in edits
        ]


@pytest.fixture
def repo(tmp_path: Path) -> TinyRepo:
    repo = TinyRepo(tmp_path / "cart")
    repo.commit("Start", {"cart/label.py": LABEL, "tests/test_label.py": "def test_one():\n    assert 1 == 1\n"})
    return repo


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    monkeypatch.setattr(mirrored, "EditRunner", EditRuns(EditOutcome.DETECTED))
    return make_services(tmp_path)


def check(task: Task, services: Services, **donor: Any) -> Task | KindRejection:
    return check_task(cast("Lineage", None), task, make_donor(services.artifacts, **donor), services)


def test_a_good_task_gets_the_counts_of_its_faults(repo: TinyRepo, services: Services) -> None:
    task = make_task(repo, services, WIDE, TEST_WIDTH)
    result = check(task, services)
    assert isinstance(result, Task), result
    assert result.mirror is not None
    assert result.mirror.written_tests.faults == result.mirror.written_tests.faults_detected > 0
    assert result.id == task.id, "counts are measured and do not identify a task"


@pytest.mark.parametrize(
    ("buggy", "test", "text", "reason"),
    [
        (NAMELESS, TEST_TRIM, "", "name-not-stated"),
        (NAMELESS, TEST_TRIM, " So does `trim(' a ')`: it should return 'a'.", ""),
        (SILENT, TEST_EMPTY, "", "message-not-stated"),
        (SILENT, TEST_EMPTY, " `label('', 2)` should raise `ValueError: a label has no text at all`.", ""),
        (WIDE, TEST_WIDTH, "\n\n```diff\n- wrong\n+ right\n```\n", "statement-patch"),
    ],
)
def test_the_statement_names_what_the_tests_need(
    buggy: str, test: str, text: str, reason: str, repo: TinyRepo, services: Services
) -> None:
    result = check(make_task(repo, services, buggy, test, TEXT + text), services)
    if not reason:
        assert isinstance(result, Task), result
        return
    assert isinstance(result, KindRejection)
    assert result.reason == reason, result


def test_a_copy_of_the_mirrored_issue_is_rejected(repo: TinyRepo, services: Services) -> None:
    text = STATEMENT.partition("\n")[2] + " Whoever prints receipts on narrow paper knows how that looks in the end."
    task = make_task(repo, services, WIDE, TEST_WIDTH, text.replace("till", "cart"))
    donor = make_donor(services.artifacts).model_copy(update={"problem_statement": f"{TITLE}\n\n{text}"})
    result = check_task(cast("Lineage", None), task, donor, services)
    assert isinstance(result, KindRejection)
    assert result.reason == mirrored.COPIES_ORIGINAL
    assert "eve__till-7" in result.detail


def test_a_copy_of_a_benchmarks_task_is_rejected(repo: TinyRepo, services: Services, tmp_path: Path) -> None:
    task = make_task(repo, services, NAMELESS, TEST_TRIM, f"{TEXT} So does `trim(' a ')`: it should return 'a'.")
    patch = services.artifacts.get_text(task.gold_patch)
    (tmp_path / "list.jsonl").write_text(json.dumps({"repo": "bob/copy", "number": 1, "patch": patch}))
    settings = services.settings
    mining = settings.mining.model_copy(update={"benchmarks": (str(tmp_path / "list.jsonl"),)})
    result = check(task, replace(services, settings=settings.model_copy(update={"mining": mining})))
    assert isinstance(result, KindRejection)
    assert result.reason == mirrored.NEAR_DUPLICATE


def test_tests_that_detect_too_few_faults_are_rejected(
    repo: TinyRepo, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrored, "EditRunner", EditRuns(EditOutcome.PASSED))
    result = check(make_task(repo, services, WIDE, TEST_WIDTH), services)
    assert isinstance(result, KindRejection)
    assert result.reason == "tests-weak"
