"""Checklists of OctoCodingBench as instruction tasks: rows go in and out without loss, and mistakes are a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from mergemill.bench.octo_export import make_octo_row
from mergemill.bench.sets import freeze
from mergemill.execution.services import make_services
from samplers.subjects.task_subject import make_task_subject
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import find_held_out
from taskdb.queries.lineages import load_lineages
from taskdb.records import Candidate, Kind, Task
from taskdb.records.instructions import InstructionOracle, InstructionSource
from taskdb.records.lineage import Lineage
from taskdb.store import Store
from tests.evaluation.instructions.test_checklist import CLOSE, PUSH, bind
from tests.helpers import TinyRepo
from tests.mergemill.bench.making import LIMITS
from tests.mergemill.bench.octo import ROW, TABLE, import_rows, load_set, make_row, make_settings, run
from tests.mergemill.bench.reviews import KNOWN, add_review_task
from tests.taskdb.lineages import add_lineage
from verifiers.certify import certify

NAME = "md-greet-1.instructions"
OVERRIDDEN = bind("open", "answer-begins", arguments={"line": "Hi."}, source="tool", overridden_by="close")
JUDGED = bind("cause", "judged", arguments={"question": "Is the cause named?"}, source="skill")
NEW_FILES = bind("few-files", "files-at-most", arguments={"most": 3}, source="turn", turn=2, family="files")


def require_oracle(task: Task) -> InstructionOracle:
    assert isinstance(task.oracle, InstructionOracle)
    return task.oracle


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_published_rows_are_a_held_out_set_of_judged_tasks(tmp_path: Path) -> None:
    done = import_rows(tmp_path, [ROW, make_row("md-greet-2")], "--json")
    assert done.exit_code == 0, done.stderr
    assert done.json == {"set": "rows", "version": "1", "subjects": 2, "items": 10, "judged": 10}
    bench_set, tasks = load_set(tmp_path)
    assert bench_set.held_out
    task = tasks[NAME]
    oracle = require_oracle(task)
    assert (task.kind, task.problem_statement, task.environment) == (Kind.INSTRUCTIONS, "Please greet twice.", "none")
    assert [(item.name, item.source.value, item.check) for item in oracle.constraints] == [
        ("SP_read", "system", "judged"),
        ("SP_language", "system", "judged"),
        ("UQ_done", "turn", "judged"),
        ("A_push", "repository", "judged"),
        ("S_tests", "skill", "judged"),
    ]
    assert oracle.sources == {InstructionSource.SYSTEM, InstructionSource.TURN}
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=False) as store:
        assert find_held_out(store).covers("", NAME)
    again = import_rows(tmp_path, [ROW, make_row("md-greet-2")], "--json")
    assert again.json["version"] == "1"


def test_an_agent_is_given_the_messages_of_the_row_in_its_image(tmp_path: Path) -> None:
    assert import_rows(tmp_path, [ROW]).exit_code == 0
    task = load_set(tmp_path)[1][NAME]
    services = make_services(make_settings(tmp_path), engine=False)
    subject = make_task_subject(task, services, "rollout")
    assert (subject.image, subject.workdir) == (ROW["image"], ROW["workspace_abs_path"])
    assert subject.instruction == "Please greet twice.\n"
    assert (subject.guidance.system, subject.guidance.turns) == ("Answer in English.", ("Now add a test.",))
    assert (subject.guidance.repository, subject.deliveries) == ("", {})
    assert subject.grades_conversation
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=False) as store:
        lineage = Lineage(candidate=store.get(Candidate, task.candidate), task=task)
    rejection = certify(lineage, services)
    assert getattr(rejection, "reason", "") == "no-solution"


def test_items_are_bound_by_the_table_and_an_instance_counts_before_all(tmp_path: Path) -> None:
    done = import_rows(tmp_path, [ROW, make_row("md-greet-2")], "--json", table=TABLE)
    assert done.exit_code == 0, done.stderr
    assert (done.json["items"], done.json["judged"]) == (10, 6)
    bound = {
        name: {item.name: (item.check, item.arguments) for item in require_oracle(task).constraints}
        for name, task in load_set(tmp_path)[1].items()
    }
    assert bound[NAME]["SP_read"] == ("read-before-edit", {})
    assert bound[NAME]["A_push"] == ("never-command", {"commands": ["git push"]})
    assert bound["md-greet-2.instructions"]["A_push"] == ("new-files-never", {"globs": ["*.md"]})
    assert bound[NAME]["S_tests"][0] == "judged"


def test_published_rows_come_out_as_they_went_in_with_their_bindings(tmp_path: Path) -> None:
    rows = [ROW, make_row("md-greet-2", scaffold={"name": "kilo-dev"}, user_query=["Gr\u00fc\u00dfe \U0001f600"])]
    assert import_rows(tmp_path, rows, table=TABLE).exit_code == 0
    assert run(tmp_path, "bench", "export", "rows", "--format", "octo", "--out", "first").exit_code == 0
    written = (tmp_path / "first" / "octo.jsonl").read_bytes()
    for row, expected in zip(read_rows(tmp_path / "first" / "octo.jsonl"), rows, strict=True):
        own = row.pop("mergemill")
        assert (row, list(row)) == (expected, list(expected))
        assert own["canary"] == load_set(tmp_path)[0].canary
        assert set(own["bindings"]) == {"SP_read", "A_push"}
    other = tmp_path / "other"
    done = import_rows(other, written.decode(), "--name", "again", "--json")
    assert (done.json["items"], done.json["judged"]) == (10, 6)
    assert load_set(other)[1] == load_set(tmp_path)[1]
    assert run(other, "bench", "export", "again", "--format", "octo", "--out", "second").exit_code == 0
    assert (other / "second" / "octo.jsonl").read_bytes() == written


@pytest.fixture
def own_task(tmp_path: Path) -> Task:
    """A set `own` of an instruction task of our own, with its patches in the store, and of a review."""
    settings = make_settings(tmp_path)
    artifacts = open_artifacts(settings.storage)
    for text in ("gold ada__greet-1", "test ada__greet-1"):
        artifacts.put_text(text)
    oracle = InstructionOracle(
        constraints=(PUSH, CLOSE, OVERRIDDEN, JUDGED, NEW_FILES),
        turns=("Go on.",),
        precedence=(InstructionSource.SYSTEM, InstructionSource.MEMORY, InstructionSource.TOOL),
        dutiful=artifacts.put(b"\xff is no text"),
        careless=(),
    )
    fields: dict[str, Any] = {
        "kind": Kind.INSTRUCTIONS,
        "name": "ada__greet-1.instructions-1",
        "oracle": oracle,
        "gold_patch": artifacts.put_text("gold ada__greet-1"),
        "test_patch": artifacts.put_text("test ada__greet-1"),
        "eval_script": artifacts.put_text("pytest"),
    }
    repo = TinyRepo(tmp_path / "greet")
    base = repo.commit("Greet", {"greet.py": "x = 1\n"})
    with Store.open(settings.storage.db) as store:
        task = add_lineage(store, source=f"git:{repo.path}", base_commit=base, task_fields=fields)
        review = add_review_task(store, artifacts, 4, KNOWN)
        freeze(store, "own", [task, review], LIMITS, held_out=True)
    return task


def test_tasks_of_our_own_round_trip_with_their_records(own_task: Task, tmp_path: Path) -> None:
    done = run(tmp_path, "bench", "export", "own", "--format", "octo", "--out", "first", "--json")
    assert done.exit_code == 0, done.stderr
    assert done.json["left_out"] == {"review: octo has rows of instruction tasks alone": 1}
    written = (tmp_path / "first" / "octo.jsonl").read_bytes()
    (row,) = read_rows(tmp_path / "first" / "octo.jsonl")
    assert next(iter(row)) == "mergemill"
    public = {key: row[key] for key in row if key not in {"mergemill", "checklist"}}
    assert public == {
        "instance_id": own_task.name,
        "user_query": [own_task.problem_statement, "Go on.\n\n- few-files"],
        "system_prompt": "- no-push\n- Where instructions contradict each other, follow them in this order, the first "
        "before the others: the system prompt, memory, descriptions of tools.",
        "category": "SP",
        "image": own_task.image,
        "workspace_abs_path": "/testbed",
        "scaffold": {"name": "claudecode", "version": ""},
    }
    checks = {
        source: [(check["check_id"], check["description"], check["check_type"]) for check in group["checks"]]
        for source, group in row["checklist"].items()
    }
    assert checks == {
        "SP": [("no-push", "no-push", "compliance")],
        "User query": [("few-files", "few-files", "implementation")],
        "Skill": [("cause", "Is the cause named?", "compliance")],
        "Memory": [("close", "close", "compliance")],
    }
    other = tmp_path / "other"
    done = import_rows(other, written.decode(), "--name", "own", "--json")
    assert done.exit_code == 0, done.stderr
    assert (done.json["items"], done.json["judged"]) == (5, 1)
    assert load_set(other)[1] == {own_task.name: own_task}
    artifacts = open_artifacts(make_settings(other).storage)
    assert artifacts.get(require_oracle(own_task).dutiful or "") == b"\xff is no text"
    assert artifacts.get_text(own_task.gold_patch) == "gold ada__greet-1"
    assert run(other, "bench", "export", "own", "--format", "octo", "--out", "second").exit_code == 0
    assert (other / "second" / "octo.jsonl").read_bytes() == written


def remove_artifact(own: dict[str, Any]) -> None:
    own["artifacts"].popitem()


def change_artifact(own: dict[str, Any]) -> None:
    own["artifacts"] = dict.fromkeys(own["artifacts"], "other")


def change_record(own: dict[str, Any]) -> None:
    own["records"][-1]["body"]["name"] = "other"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (remove_artifact, "mergemill.artifacts"),
        (change_artifact, "has another hash"),
        (change_record, "mergemill.records:6: the Task has another id"),
        (lambda own: own.update(records=own["records"][:1]), "they are not those of an instruction task"),
        (lambda own: own.update(records=7), "they are not those of an instruction task"),
    ],
)
def test_own_keys_that_were_changed_are_refused(
    own_task: Task, tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    row = make_own_row(own_task, make_settings(tmp_path))
    change(row["mergemill"])
    check_refused(import_rows(tmp_path / "other", [row]), tmp_path / "other", "rows.jsonl, line 1: mergemill", words)


def test_a_row_whose_public_keys_were_changed_is_refused(own_task: Task, tmp_path: Path) -> None:
    row = make_own_row(own_task, make_settings(tmp_path))
    row["user_query"][0] += " Please."
    done = import_rows(tmp_path / "other", [row])
    check_refused(done, tmp_path / "other", "rows.jsonl, line 1: mergemill: the other keys are not those of its task")


def make_own_row(task: Task, settings: Settings) -> dict[str, Any]:
    with Store.open(settings.storage.db, create=False) as store:
        lineage = load_lineages(store, [task])[task.id]
    row = make_octo_row(task, [*lineage, task], open_artifacts(settings.storage), "c")
    copied: dict[str, Any] = json.loads(json.dumps(row))
    return copied


def check_refused(done: Any, folder: Path, *words: str) -> None:
    """Assert that a command ended with a line that has some words, and that nothing was stored."""
    assert done.exit_code == 3, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert not (folder / "m.db").exists()
    assert not list((folder / "store" / "artifacts").rglob("*") if (folder / "store").exists() else [])


def change_check(**fields: Any) -> dict[str, Any]:
    """Return the row with other fields in the first item."""
    row = make_row()
    check = row["checklist"]["SP"]["checks"][0]
    row["checklist"]["SP"]["checks"][0] = {key: value for key, value in {**check, **fields}.items() if value is not ...}
    return row


GROUP = ROW["checklist"]["SP"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**make_row(), "instance_id": None}, "instance_id: is missing"),
        (make_row(" "), "instance_id: ' ' is no name"),
        (make_row(user_query=[]), "user_query: is not a list of messages"),
        (make_row(user_query=["a", ""]), "user_query: a message is empty or no text"),
        (make_row(system_prompt=3), "system_prompt: is not a text"),
        (make_row(checklist=[1]), "checklist: is no table of sources"),
        (make_row(checklist=None), "checklist: is missing"),
        (make_row(checklist={}), "checklist: has no check"),
        (make_row(checklist={"SP": []}), "checklist['SP']: has no list `checks`"),
        (make_row(checklist={"Moon": GROUP}), "checklist['Moon']: the source is unknown (one of SP, System reminder"),
        (change_check(check_type="style"), "checklist['SP'].checks[1].check_type: 'style' is unknown (one of compl"),
        (change_check(check_id=...), "checklist['SP'].checks[1].check_id: is missing"),
        (change_check(description=""), "checklist['SP'].checks[1].description: is no text, or an empty one"),
        (
            make_row(checklist={"SP": GROUP, "Memory": GROUP}),
            "checklist['Memory'].checks[1]: SP_read is also in checklist['SP'].checks[1]",
        ),
        (make_row(mergemill=7), "mergemill: is no object"),
        (make_row(mergemill={"bindings": {"moon": {"check": "read-before-edit"}}}), "the row has no such check"),
        (make_row(mergemill={"bindings": {"SP_read": {"check": "moon"}}}), "check moon is unknown"),
        (make_row("md-greet-0"), "instance_id: md-greet-0 is also in rows.jsonl, line 1"),
        ("text", "it is not a JSON object"),
    ],
)
def test_a_wrong_row_is_a_line_and_nothing_is_stored(tmp_path: Path, row: object, words: str) -> None:
    done = import_rows(tmp_path, [make_row("md-greet-0"), row])
    check_refused(done, tmp_path, "rows.jsonl, line 2: ", words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ('check_id = "SP_read"\ncheck = "moon"', "bind[1]: check moon is unknown"),
        ('check_id = "SP_read"\ncheck = "answer-ends"\narguments = {moon = 1}', "bind[1]: arguments of answer-ends"),
        ('check_id = "moon"\ncheck = "read-before-edit"', "bind[1].check_id: there is no check moon in any row"),
        (
            'check_id = "SP_read"\ninstance_id = "moon"\ncheck = "read-before-edit"',
            "bind[1].check_id: there is no check SP_read in moon",
        ),
        ('check_id = "SP_read"\ncheck = "judged"\narguments = {question = "?"}', "items without an entry are judged"),
        ('check_id = "SP_read"\ncheck = "lines-at-most"\narguments = {number = 1}', "lines-at-most compares files"),
        ('check = "read-before-edit"', "field bind.0.check_id is missing"),
        ('check_id = "SP_read"\ncheck = "read-before-edit"\nwhen = 1', "field bind.0.when is not known"),
        (
            'check_id = "SP_read"\ncheck = "read-before-edit"\n[[bind]]\ncheck_id = "SP_read"\ncheck = "no-background"',
            "bind[2].check_id: SP_read is bound twice",
        ),
        ("= 1", "bind.toml"),
    ],
)
def test_a_wrong_table_is_a_line_and_nothing_is_stored(tmp_path: Path, entry: str, words: str) -> None:
    done = import_rows(tmp_path, [ROW], table=f"[[bind]]\n{entry}\n")
    check_refused(done, tmp_path, "bind.toml: ", words)


def test_wrong_files_and_options_are_a_line(own_task: Task, tmp_path: Path) -> None:
    other = tmp_path / "other"
    check_refused(import_rows(other, ""), other, "rows.jsonl has no row")
    check_refused(run(other, "bench", "import", "none.jsonl", "--format", "octo"), other, "cannot read")
    check_refused(import_rows(other, [ROW], "--bind", "none.toml"), other, "none.toml")
    done = run(other, "bench", "import", "rows.jsonl", "--format", "swe-prbench", "--bind", "bind.toml")
    assert (done.exit_code, "--bind is for --format octo" in done.stderr) == (2, True)
    done = run(tmp_path, "bench", "export", "own", "--format", "moon", "--out", "out")
    assert (done.exit_code, "--format: moon is unknown" in done.stderr) == (2, True)


def test_a_set_without_checklists_is_refused(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    artifacts = open_artifacts(settings.storage)
    with Store.open(settings.storage.db) as store:
        freeze(store, "own", [add_review_task(store, artifacts, 4, KNOWN)], LIMITS, held_out=True)
    done = run(tmp_path, "bench", "export", "own", "--format", "octo", "--out", "out")
    assert (done.exit_code, "octo can carry none of the subjects" in done.stderr) == (3, True)
    assert not (tmp_path / "out").exists()
