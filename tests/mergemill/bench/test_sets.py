"""Frozen sets: files, versions, and subjects that have changed since."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from core.errors import InputError, UsageError
from mergemill.bench.choice import choose_of_each_kind
from mergemill.bench.sets import find_changed_subjects, freeze, hash_grading, open_set, read_set, write_set
from taskdb.records import Kind, Stage, Task
from taskdb.records.bench import BenchLimits
from taskdb.records.work import StageResult
from taskdb.schema.stored_records import compress_body
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.records import make_certificate
from tests.samplers.worlds.database import make_database as make_worlds
from tests.taskdb.lineages import add_lineage, make_url

LIMITS = BenchLimits(turns=100, seconds=3600.0)


def replace_task(store: Store, task: Task, **changes: object) -> Task:
    """Add a task with some fields changed, which takes the place of the earlier one."""
    changed = Task.model_validate(task.model_dump() | changes)
    for stage, record in ((Stage.DERIVE, changed), (Stage.CERTIFY, make_certificate(changed))):
        name = task.name.rpartition(".")[0]
        store.add_stage_results(StageResult(stage=stage, result=record, source=task.source, name=name, seconds=1.0))
    return changed


def freeze_by_command(folder: Path, *words: str) -> dict[str, object]:
    done = run_mergemill("bench", "freeze", *words, "--db", make_url(folder), "--json", cwd=folder)
    assert done.exit_code == 0, done.stderr
    document: dict[str, object] = done.json
    return document


def test_a_frozen_set_is_a_file_with_hashes_and_a_canary(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        tasks = [add_lineage(store, number) for number in (2, 1)]
    document = freeze_by_command(tmp_path, "first", "--held-out", "--out", "first.json", "--rollout-turns", "30")
    written = json.loads((tmp_path / "first.json").read_text())
    assert written == document
    assert list(written) == ["schema", "name", "version", "held_out", "canary", "subjects", "limits", "sha256"]
    assert (written["schema"], written["name"], written["version"], written["held_out"]) == (1, "first", "1", True)
    assert written["canary"].startswith("mergemill-bench ")
    assert written["limits"] == {"turns": 30, "seconds": 3600.0}
    assert written["subjects"] == [
        {"name": task.name, "id": task.id, "kind": "bugfix", "grading": hash_grading(task)} for task in reversed(tasks)
    ]
    digest = written.pop("sha256")
    assert digest == hashlib.sha256(json.dumps(written, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    assert (
        freeze_by_command(tmp_path, "first", "--held-out", "--out", "again.json", "--rollout-turns", "30") == document
    )


def test_as_many_tasks_of_each_kind_are_drawn_from_several_repositories(tmp_path: Path) -> None:
    rows = [
        {"id": f"{kind}{repo}{number}", "name": f"{repo}-{number}.{kind}", "kind": kind, "repo": f"ada/{repo}"}
        for kind, size in (("bugfix", 9), ("feature", 2), ("review", 9))
        for repo in ("cart", "Cart", "greet", "thermo")
        for number in range(size)
    ]
    kinds = ("feature", "bugfix")
    chosen = choose_of_each_kind(rows, kinds, 6, "0")
    by_id = {row["id"]: row for row in rows}
    assert [by_id[key]["kind"] for key in chosen] == ["feature"] * 6 + ["bugfix"] * 6
    for part in (chosen[:6], chosen[6:]):
        assert sorted(Counter(by_id[key]["repo"].lower() for key in part).values()) == [2, 2, 2]
    assert choose_of_each_kind(rows[::-1], kinds, 6, "0") == chosen
    assert choose_of_each_kind(rows, kinds, 6, "1") != chosen
    assert set(choose_of_each_kind(rows, kinds, 3, "0")) < set(chosen)
    with pytest.raises(InputError, match=r"--of-each-kind 9: there are fewer tasks of feature 8, terse 0$"):
        choose_of_each_kind(rows, ("feature", "bugfix", "terse"), 9, "0")


def test_a_set_of_each_kind_is_frozen_by_command(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        for number in range(1, 4):
            add_lineage(store, number)
        fields = {"kind": Kind.FEATURE, "name": "ada__greet-4.feature"}
        add_lineage(store, 4, task_fields=fields)
    words = ("even", "--kind", "bugfix,feature", "--out", "even.json")
    subjects = freeze_by_command(tmp_path, *words, "--of-each-kind", "1")["subjects"]
    assert [subject["kind"] for subject in subjects] == ["bugfix", "feature"]  # type: ignore[attr-defined]
    for given, line in (
        ((*words, "--sample", "2"), "--of-each-kind and --sample are two ways to draw"),
        ((words[0], *words[3:]), "--of-each-kind needs --kind"),
    ):
        command = ("bench", "freeze", *given, "--of-each-kind", "1", "--db", make_url(tmp_path))
        done = run_mergemill(*command, cwd=tmp_path)
        assert (done.exit_code, line in done.stderr) == (2, True), done.stderr


def test_a_sample_is_drawn_and_other_content_is_another_version(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        for number in range(1, 6):
            add_lineage(store, number)
    words = ("drawn", "--out", "drawn.json", "--stratify", "language,kind")
    first = freeze_by_command(tmp_path, *words, "--sample", "2")
    second = freeze_by_command(tmp_path, *words, "--sample", "3")
    assert [len(document["subjects"]) for document in (first, second)] == [2, 3]  # type: ignore[arg-type]
    assert (first["version"], second["version"]) == ("1", "2")
    assert first["canary"] != second["canary"]
    with Store.open(make_url(tmp_path)) as store:
        assert open_set(store, "drawn").version == "2"
    listed = run_mergemill("bench", "list", "--db", make_url(tmp_path), "--json", cwd=tmp_path).lines
    assert [(row["name"], row["version"], row["subjects"], row["kinds"]) for row in listed] == [
        ("drawn", "1", 2, {"bugfix": 2}),
        ("drawn", "2", 3, {"bugfix": 3}),
    ]


def test_tasks_and_scenarios_are_frozen_together(tmp_path: Path) -> None:
    settings = make_worlds(tmp_path, ["library_loans"])
    with Store.open(settings.storage.db) as store:
        add_lineage(store, 1)
    words = ("bench", "freeze", "mixed", "--environment", "verified,synthetic", "--out", "mixed.json", "--json")
    done = run_mergemill(*words, "--db", settings.storage.db, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    kinds = [subject["kind"] for subject in done.json["subjects"]]
    assert set(kinds) == {"bugfix", "scenario"}
    assert [subject["name"] for subject in done.json["subjects"]] == sorted(s["name"] for s in done.json["subjects"])
    with Store.open(settings.storage.db) as store:
        assert find_changed_subjects(store, open_set(store, "mixed")) == []


def test_changed_subjects_are_found_by_id_and_by_hash(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        tasks = [add_lineage(store, number) for number in range(1, 5)]
        bench_set = freeze(store, "first", tasks, LIMITS, held_out=False)
        assert find_changed_subjects(store, bench_set) == []
        changed = replace_task(store, tasks[0], problem_statement=tasks[0].problem_statement + ".")
        gone = bench_set.model_copy(
            update={
                "subjects": (
                    *bench_set.subjects[:2],
                    bench_set.subjects[2].model_copy(update={"grading": "0" * 64}),
                    bench_set.subjects[3].model_copy(update={"name": "ada__greet-9.bugfix"}),
                )
            }
        )
        problems = {subject.name: subject.problem for subject in find_changed_subjects(store, gone)}
    assert problems == {
        tasks[0].name: f"its id is {changed.id[:12]} now",
        tasks[2].name: "it is graded otherwise: image, script or lists",
        "ada__greet-9.bugfix": "it is not in the database",
    }


def test_one_byte_of_a_task_stops_runs_and_is_named(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        tasks = [add_lineage(store, number) for number in range(1, 4)]
        freeze(store, "first", tasks, LIMITS, held_out=False)
        statement = tasks[0].problem_statement
        later = replace_task(store, tasks[0], problem_statement=f"{statement[:-1]}!")
        digest = tasks[1].image_digest
        other = Task.model_validate(tasks[1].model_dump() | {"image_digest": f"{digest[:-1]}_"})
        with store.write_transaction() as connection:
            body = compress_body(other.model_dump_json().encode())
            connection.exec_driver_sql("UPDATE task SET body = ? WHERE id = ?", (body, tasks[1].id))
    words = ("--db", make_url(tmp_path))
    done = run_mergemill("bench", "run", "first", "--scaffold", "noop", *words, cwd=tmp_path)
    assert (done.exit_code, done.stdout) == (3, "")
    assert f"changed-subject: {tasks[0].name}: its id is {later.id[:12]} now; " in done.stderr
    assert f"{tasks[1].name}: it is graded otherwise" in done.stderr
    assert tasks[2].name not in done.stderr
    shown = run_mergemill("bench", "show", "first", "--json", *words, cwd=tmp_path)
    assert set(shown.json["changed"]) == {tasks[0].name, tasks[1].name}
    assert shown.exit_code == 3
    assert "changed-subject: 2 of 3 subjects" in shown.stderr


def test_a_set_that_is_as_it_was_is_shown_without_an_error(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        freeze(store, "first", [add_lineage(store, 1)], LIMITS, held_out=False)
    shown = run_mergemill("bench", "show", "first", "--db", make_url(tmp_path), cwd=tmp_path)
    assert (shown.exit_code, shown.stderr) == (0, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"image_digest": "sha256:" + "0" * 64},
        {"eval_script": "0" * 64},
        {"control_patch": "0" * 64},
        {"PASS_TO_PASS": ("tests/test_greet.py::test_old",)},
        {"evaluations": 2},
    ],
)
def test_everything_that_decides_grading_is_hashed(tmp_path: Path, changes: dict[str, object]) -> None:
    with Store.open(make_url(tmp_path)) as store:
        task = add_lineage(store, 1)
    assert hash_grading(Task.model_validate(task.model_dump() | changes)) != hash_grading(task)
    seconds = Task.model_validate(task.model_dump() | {"test_seconds": 9.0})
    assert hash_grading(seconds) == hash_grading(task)
    rebuilt = [
        hash_grading(changed, rebuilt_images=True)
        for changed in (task, Task.model_validate(task.model_dump() | changes))
    ]
    assert (rebuilt[0] == rebuilt[1]) == ("image_digest" in changes)


def test_a_set_of_rebuilt_images_holds_with_other_digests_and_a_certificate(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        tasks = [add_lineage(store, number) for number in (1, 2, 3)]
    words = ("built", "--rebuilt-images", "--held-out", "--out", "built.json")
    document = freeze_by_command(tmp_path, *words)
    assert document["rebuilt_images"] is True
    assert freeze_by_command(tmp_path, *words) == document
    bench_set = read_set(tmp_path / "built.json")
    other = tmp_path / "other"
    other.mkdir()
    with Store.open(make_url(other)) as store:
        add_lineage(store, 1, task_fields={"image_digest": "sha256:" + "7" * 64})
        add_lineage(store, 2, task_fields={"PASS_TO_PASS": ("tests/test_greet.py::test_old",)})
        add_lineage(store, 3, to=Stage.DERIVE)
        problems = {subject.name: subject.problem for subject in find_changed_subjects(store, bench_set)}
    assert tasks[0].name not in problems
    assert problems.keys() == {tasks[1].name, tasks[2].name}
    assert problems[tasks[2].name].startswith("it has no certificate")


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "first.json"
    with Store.open(make_url(tmp_path)) as store:
        write_set(freeze(store, "first", [add_lineage(store, 1)], LIMITS, held_out=True), path)
    assert read_set(path).held_out
    path.write_text(path.read_text().replace('"held_out": true', '"held_out": false'))
    with pytest.raises(InputError, match="was changed"):
        read_set(path)
    for text in ("{}", "[]", "no", '{"schema": 1, "sha256": "", "name": 1}'):
        path.write_text(text)
        with pytest.raises(InputError, match="is no set"):
            read_set(path)
    with pytest.raises(InputError, match="cannot read"):
        read_set(tmp_path / "none.json")


def test_bad_names_and_selections_are_a_line(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        task = add_lineage(store, 1)
        with pytest.raises(UsageError, match="no name of a set"):
            freeze(store, "../x", [task], LIMITS, held_out=False)
        with pytest.raises(InputError, match="no subject"):
            freeze(store, "x", [], LIMITS, held_out=False)
        with pytest.raises(InputError, match="two subjects are named"):
            freeze(store, "x", [task, task], LIMITS, held_out=False)
        with pytest.raises(InputError, match="there is no set x"):
            open_set(store, "x")
