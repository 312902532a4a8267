"""`verify --again`: changes whose tasks rest on copies of tests are verified again, with all that follows."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.cluster.local import LocalCluster
from core.errors import Transient
from core.settings.storage import StorageSettings
from mergemill.bundles.export import count_doubtful
from mergemill.execution.progress import JsonLinesProgress
from mergemill.pipeline.pipeline import PipelineRun
from mergemill.pipeline.renewal import ChangeRenewal
from taskdb.artifacts.folder import Artifacts
from taskdb.queries.evidence import describe_forger
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Certificate, Environment, Kind, Record, Rejection, Stage, Task, Verification
from taskdb.records.verdicts import Verdict
from taskdb.records.work import NOT_RENEWED, StageResult
from taskdb.store import Store
from tests import records
from tests.certified import certified
from tests.cli import run_mergemill
from tests.mergemill.stages import FAST_RETRY, FakeStages
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage, make_url

__all__ = ["certified"]

OLD = {"control_bound": 1 / (3 * 2**10), "evaluations": 2}
"""Fields of a task with five copies of a test."""
NEW = {"control_bound": 0.0005, "worst_block_bound": 0.0005, "evaluations": 1}
NAME = "ada__greet-1"
TASK = f"{NAME}.bugfix"


class NewStages(FakeStages):
    """Stages whose controls are those of today."""

    def __init__(
        self, faults: dict[tuple[Stage, str], Exception | str] | None = None, *, has_image: bool = True, **lists: Any
    ) -> None:
        super().__init__(faults or {})
        self.has_image = has_image
        self.lists = lists
        """Lists of the verification that differ from those of before."""

    def verify(self, it: Any, services: Any) -> Record | Rejection:
        environment = it.require_environment()
        made = self._apply_fault(Stage.VERIFY, it, environment)
        return made or records.make_verification(environment, **NEW, **self.lists)

    def derive(self, it: Any, services: Any) -> Record | Rejection:
        made = self._apply_fault(Stage.DERIVE, it, it.require_verdict())
        return made or records.make_task(it.require_verification(), it.candidate, **NEW)

    def list_calls(self) -> list[str]:
        """Names of the stages that were run."""
        return [stage.value for stage, _ in self.calls]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Database of three certified tasks, of which the first and the second rest on copies."""
    url = make_url(tmp_path)
    with Store.open(url) as store:
        add_lineage(store, 1, task_fields=OLD)
        add_lineage(store, 2, task_fields=OLD)
        add_lineage(store, 3, task_fields=NEW)
    return url


def renew(url: str, stages: NewStages, **scope: Any) -> PipelineRun:
    """Verify again what rests on copies."""
    wanted = make_scope(kinds=Kind, renews=True, **scope)
    images = SimpleNamespace(hold=nullcontext, inspect=lambda image: stages.has_image)
    services: Any = SimpleNamespace(images=images)
    with Store.open(url) as store, JsonLinesProgress() as progress:
        run = PipelineRun(store, services, LocalCluster(workers=1), progress, 1, retry_policy=FAST_RETRY)
        run.processor = ChangeRenewal
        run.process(stages.steps(), store.find_renewals(wanted), partial(store.reload_renewal, scope=wanted))
    return run


def list_bounds(url: str) -> dict[str, tuple[str, str | None]]:
    """Return name -> status and shown odds of the listed tasks."""
    with Store.open(url) as store, store.read_transaction() as connection:
        rows = connection.exec_driver_sql("SELECT id, name, status FROM tasks").all()
    with Store.open(url) as store:
        return {row.name: (row.status, describe_forger(store.get(Task, row.id))) for row in rows}


UNKNOWN, KNOWN = ("certified", "unknown (copies)"), ("certified", "0.0005, the worst test 0.0005")


def test_changes_whose_tasks_rest_on_copies_are_renewed_once(url: str) -> None:
    stages = NewStages()
    assert list_bounds(url) == {TASK: UNKNOWN, "ada__greet-2.bugfix": UNKNOWN, "ada__greet-3.bugfix": KNOWN}
    run = renew(url, stages)
    assert list_bounds(url) == dict.fromkeys([TASK, "ada__greet-2.bugfix", "ada__greet-3.bugfix"], KNOWN)
    assert (run.n_new, run.exit_code) == (8, 0)
    assert stages.list_calls() == ["verify", "derive", "certify"] * 2, "the verdict is on the same lists"
    again = NewStages()
    assert (renew(url, again).n_new, again.calls) == (0, [])
    with Store.open(url) as store:
        assert len(store.load_all(Task)) == len(store.load_all(Certificate)) == 5, "records of before are kept"
        listed = {task.id for task in store.load_all(Task)[-2:]}
        verifications = {verification.id for verification in store.load_all(Verification)[-2:]}
        assert {task.parent for task in store.load_all(Task) if task.id in listed} == verifications
        assert {verdict.parent for verdict in store.load_all(Verdict)[-2:]} == verifications
        assert len({verdict.id for verdict in store.load_all(Verdict)}) == 5


def test_a_verdict_on_other_lists_is_made_again(url: str) -> None:
    stages = NewStages(PASS_TO_PASS=())
    renew(url, stages, only=[NAME])
    assert stages.list_calls() == ["verify", "judge", "derive", "certify"]


def test_an_image_that_is_missing_is_built_first(url: str) -> None:
    stages = NewStages(has_image=False)
    renew(url, stages, only=[NAME])
    assert stages.list_calls() == ["build", "verify", "derive", "certify"]


@pytest.mark.parametrize("only", [NAME, TASK])
def test_names_select_changes_and_a_limit_counts_what_is_to_be_renewed(url: str, only: str) -> None:
    renew(url, NewStages(), only=[only])
    assert list_bounds(url) == {TASK: KNOWN, "ada__greet-2.bugfix": UNKNOWN, "ada__greet-3.bugfix": KNOWN}
    renew(url, NewStages(), limit=1)
    assert set(list_bounds(url).values()) == {KNOWN}


@pytest.mark.parametrize(
    ("stage", "calls", "subject"),
    [
        (Stage.VERIFY, ["verify"], NAME),
        (Stage.DERIVE, ["verify", "derive"], TASK),
        (Stage.CERTIFY, ["verify", "derive", "certify"], TASK),
    ],
)
def test_a_renewal_that_fails_loses_nothing_and_is_made_again_on_request(
    url: str, stage: Stage, calls: list[str], subject: str
) -> None:
    stages = NewStages({(stage, NAME): "bad"})
    run = renew(url, stages, only=[NAME])
    assert (stages.list_calls(), run.n_new, run.exit_code) == (calls, 1, 0)
    assert list_bounds(url)[TASK] == UNKNOWN
    with Store.open(url) as store:
        (rejection,) = store.load_all(Rejection)
        assert (rejection.reason, rejection.stage) == (NOT_RENEWED, Stage.VERIFY)
        assert rejection.detail.startswith(f"{subject}: {stage.value}: bad: ")
        assert len(store.load_all(Task)) == len(store.load_all(Verification)) == 3
    again = NewStages()
    assert (renew(url, again, only=[NAME]).n_new, again.calls) == (0, [])
    renew(url, again, only=[NAME], retry=[NOT_RENEWED])
    assert list_bounds(url)[TASK] == KNOWN


@pytest.mark.parametrize("error", [Transient("the engine is gone"), ValueError("a bug")])
def test_a_renewal_that_is_interrupted_stores_nothing_and_is_made_by_the_next_run(url: str, error: Exception) -> None:
    run = renew(url, NewStages({(Stage.CERTIFY, NAME): error}), only=[NAME])
    assert (run.n_new, bool(run.exit_code), list_bounds(url)[TASK]) == (0, True, UNKNOWN)
    renew(url, NewStages(), only=[NAME])
    assert list_bounds(url)[TASK] == KNOWN


def test_export_warns_of_tasks_that_rest_on_copies_alone_and_names_the_command(url: str, tmp_path: Path) -> None:
    with Store.open(url) as store:
        add_lineage(store, 4, task_fields={"control_bound": 1 / 3**7, "evaluations": 2})  # without copies
    warnings = count_doubtful(TaskFilters(), StorageSettings(db=url))
    assert {reason: number for reason, number in warnings.items() if "copies" in reason} == {
        "controls that rest on copies of tests, whose odds do not hold; `mergemill verify --again` renews them": 2
    }


def test_kinds_cannot_be_chosen(tmp_path: Path) -> None:
    done = run_mergemill("verify", "--again", "--kind", "bugfix", cwd=tmp_path)
    assert (done.exit_code, "--again takes no kind" in done.stderr) == (2, True)


# ------------------------------------------------------------------------------------------------- with an engine

TEST_FILE = "tests/test_words.py"
GAPS = f"{TEST_FILE}::test_wide_gaps"


def make_old_document(text: str) -> dict[str, Any]:
    """Return the controls that an earlier version made of the sample's test: five copies, some of them sabotaged."""
    start, named, at = text.index("def test_wide_gaps"), text.index("test_wide_gaps"), text.rindex("== 2")
    end = at + len("== 2")
    forms = [{"edits": [[at, end, new]], "fails": {GAPS: "assertion"}} for new in ("== 3", "== 5")]
    block = {
        "file": TEST_FILE,
        "span": [start, end],
        "name": [named, named + len("test_wide_gaps")],
        "blind": True,
        "required": True,
        "forms": forms,
    }
    return {"evaluations": 2, "copies": 5, "files": {TEST_FILE: text}, "blocks": [block]}


@pytest.fixture
def old_folder(certified: Path, tmp_path: Path) -> Path:
    """The sample with its database, in which the task of one change is as an earlier version left it."""
    folder = tmp_path / "old"
    shutil.copytree(certified, folder, symlinks=True)
    text = (folder / "ada__greet" / TEST_FILE).read_text()
    with Store.open(make_sample_url(folder)) as store:
        (task,) = (task for task in store.load_all(Task) if task.name == "ada__greet-3.bugfix")
        verification = store.get(Verification, task.parent)
        (verdict,) = (verdict for verdict in store.load_all(Verdict) if verdict.parent == verification.id)
        (certificate,) = (made for made in store.load_all(Certificate) if made.parent == task.id)
        artifacts = Artifacts(next(folder.glob("*-store")) / "artifacts")
        fields = {
            **OLD,
            "worst_block_bound": None,
            "blind_controls": artifacts.put(json.dumps(make_old_document(text)).encode()),
        }

        def remake(record: Any, **changes: Any) -> Any:
            return type(record).model_validate({**record.model_dump(), **changes})

        before = remake(verification, **fields)
        judged = remake(verdict, parent=before.id)
        derived = remake(task, parent=before.id, **fields)
        # They may have the ids of those that the renewal makes, which would then not be new.
        with closing(sqlite3.connect(folder / "mergemill.db")) as connection:
            for record in (verification, verdict, task, certificate):
                connection.execute(f"DELETE FROM {type(record).__name__} WHERE id = ?", [record.id])  # noqa: S608
            connection.commit()
        for stage, record in (
            (Stage.VERIFY, before),
            (Stage.JUDGE, judged),
            (Stage.DERIVE, derived),
            (Stage.CERTIFY, remake(certificate, parent=derived.id)),
        ):
            store.add_stage_results(
                StageResult(stage=stage, result=record, source=task.source, name="ada__greet-3", seconds=1.0)
            )
    return folder


def make_sample_url(folder: Path) -> str:
    return f"sqlite:///{folder}/mergemill.db"


@pytest.mark.docker
def test_a_task_of_an_earlier_version_is_renewed_with_an_engine(old_folder: Path) -> None:
    name = "ada__greet-3.bugfix"
    before = run_mergemill("tasks", "show", name, "--json", cwd=old_folder).json
    assert list_bounds(make_sample_url(old_folder))[name] == UNKNOWN
    assert run_mergemill("grade", name, "--gold", "--json", cwd=old_folder).json["value"] == 1
    done = run_mergemill("verify", "--again", "--json", cwd=old_folder)
    assert done.exit_code == 0, done.stderr
    assert [line["stage"] for line in done.lines[:-1]] == ["verify", "judge", "derive", "certify"]
    assert {line["name"] for line in done.lines[:-1]} == {"ada__greet-3"}
    status, odds = list_bounds(make_sample_url(old_folder))[name]
    assert status == "certified"
    assert odds is not None
    assert odds.startswith(("0.", "over 0.99", "1 in "))
    after = run_mergemill("tasks", "show", name, "--json", cwd=old_folder).json
    assert (before["id"] != after["id"], before["FAIL_TO_PASS"]) == (True, after["FAIL_TO_PASS"])
    gold = run_mergemill("grade", name, "--gold", "--json", cwd=old_folder).json
    assert (gold["value"], gold["worst_block_bound"] is not None) == (1, True)
    again = run_mergemill("verify", "--again", "--json", cwd=old_folder)
    assert (again.exit_code, len(again.lines), again.lines[-1]["new"]) == (0, 1, 0)
    for stage in ("judge", "derive", "certify"):
        assert run_mergemill(stage, "--json", cwd=old_folder).lines[-1]["new"] == 0
    with Store.open(make_sample_url(old_folder)) as store:
        assert len(store.load_all(Environment)) == 2
