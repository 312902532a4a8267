"""The task database: storage, queries and errors."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from datetime import date
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import func, select

from core.errors import InputError, MachineError, Transient, UsageError
from taskdb.artifacts import Artifacts
from taskdb.queries import tasks as queries
from taskdb.records import Candidate, PublishedVerdict, PullRequest, Stage, Task
from taskdb.records.audits import Audit
from taskdb.records.work import StageResult
from taskdb.schema.database import MIGRATIONS, REVISION
from taskdb.schema.indices import INDICES
from taskdb.schema.record_tables import get_record_clause
from taskdb.schema.tables import METADATA
from taskdb.store import Store
from tests import records
from tests.scopes import make_scope
from tests.taskdb.lineages import add_lineage, make_url

ROOT = Path(__file__).parents[2]


# ------------------------------------------------------------------------------------------------------ records


def test_a_stored_record_is_read_back_unchanged(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store)
        again = store.get(Task, task.id)
    assert again == task
    assert again.id == task.id
    assert again.image_digest == task.image_digest  # measured, and kept all the same


def test_a_record_is_stored_once(db: str) -> None:
    pull = records.make_pull_request()
    with Store.open(db) as store:
        assert store.add(pull) == [pull]
        assert store.add(pull, pull) == []


def test_a_read_transaction_sees_one_state_while_others_write(db: str) -> None:
    count = select(func.count()).select_from(get_record_clause(PullRequest))
    with Store.open(db) as store, Store.open(db) as other:
        with store.read_transaction() as connection:
            assert connection.execute(count).scalar_one() == 0
            other.add(records.make_pull_request(1))
            assert connection.execute(count).scalar_one() == 0
        with store.read_transaction() as connection:
            assert connection.execute(count).scalar_one() == 1


def test_a_record_without_its_parent_is_rejected(db: str) -> None:
    with Store.open(db) as store, pytest.raises(Exception, match=r"(?i)foreign key"):
        store.add(records.make_candidate(records.make_pull_request()))


def test_thousands_of_results_are_stored_in_one_transaction_and_once(db: str) -> None:
    pulls = [records.make_pull_request(n) for n in range(3000)]
    verdicts = [(pull, records.make_rejection(pull, Stage.MINE), 0.0) for pull in pulls]
    with Store.open(db) as store:
        assert len(store.add_mined_changes(*verdicts)) == 3000
        assert store.add_mined_changes(*verdicts) == []
        assert queries.compute_summary(store)["rejected"] == {"no-tests": 3000}


def test_two_changes_with_one_number_are_distinct(db: str) -> None:
    first, second = records.make_pull_request(), records.make_pull_request(merge_commit="f" * 40, title="Another")
    with Store.open(db) as store:
        pairs = [(pull, records.make_candidate(pull), 0.0) for pull in (first, second)]
        assert len(store.add_mined_changes(*pairs)) == 2
        assert store.add_mined_changes(*pairs) == []
        with pytest.raises(InputError, match="is ambiguous, 2 changes match"):
            queries.resolve_change(store, first.name)


def test_texts_that_are_not_valid_unicode_are_stored(db: str) -> None:
    pull = records.make_pull_request(title="a tab\t and \N{SNOWMAN} and \x00")
    with Store.open(db) as store:
        store.add(pull)
        assert store.get(PullRequest, pull.id) == pull


# --------------------------------------------------------------------------------------------------- the queue


def test_each_stage_is_pending_after_the_one_before(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, 1, to=Stage.BUILD)
        add_lineage(store, 2, to=Stage.DERIVE)
        add_lineage(store, 3)
        waiting = {
            s: [it.candidate.name for it in store.find_pending(s, make_scope())] for s in Stage if s is not Stage.MINE
        }
    assert waiting == {
        Stage.BUILD: [],
        Stage.VERIFY: ["ada__greet-1"],
        Stage.JUDGE: [],
        Stage.DERIVE: [],
        Stage.CERTIFY: ["ada__greet-2"],
    }


def test_a_rejected_change_is_pending_only_with_retry(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, 1, to=Stage.BUILD)
        environment = next(store.find_pending(Stage.VERIFY, make_scope())).require_environment()
        store.add(records.make_rejection(environment, Stage.VERIFY, "flaky"))
        assert list(store.find_pending(Stage.VERIFY, make_scope())) == []
        assert list(store.find_pending(Stage.VERIFY, make_scope(retry=["other"]))) == []
        assert len(list(store.find_pending(Stage.VERIFY, make_scope(retry=["flaky"])))) == 1


def test_dates_names_and_ids_filter_the_queue(db: str) -> None:
    pulls = [records.make_pull_request(n) for n in range(1, 6)]  # merged on March 2nd to 6th
    with Store.open(db) as store:
        store.add_mined_changes(*[(pull, records.make_candidate(pull), 0.0) for pull in pulls])

        def names(**scope: object) -> str:
            return "".join(it.candidate.name[-1] for it in store.find_pending(Stage.BUILD, make_scope(**scope)))

        assert names() == "54321"
        assert names(since=date(2024, 3, 4), until=date(2024, 3, 5)) == "43"
        assert names(only=["ada__greet-2", records.make_candidate(pulls[3]).id[:12]]) == "42"
        assert names(limit=2) == "54"
        assert names(language="go") == ""


# -------------------------------------------------------------------------------------------------------- names


def test_a_task_is_found_by_id_beginning_of_an_id_or_name(db: str) -> None:
    with Store.open(db) as store:
        task = add_lineage(store)
        for word in (task.id, task.id[:10], task.name):
            assert queries.resolve_task(store, word) == task
        environment = records.make_environment(store.get(Candidate, task.candidate))
        for word in (task.name, "ada__greet-1", environment.id, environment.id[:10], records.make_pull_request().id):
            assert queries.resolve_change(store, word).name == "ada__greet-1"


def test_an_unknown_or_ambiguous_id_is_an_input_error(db: str) -> None:
    with Store.open(db) as store:
        tasks = [add_lineage(store, n) for n in range(1, 20)]
        with pytest.raises(InputError, match="there is no task frob"):
            queries.resolve_task(store, "frob")
        with pytest.raises(InputError, match="there is no change 100%"):
            queries.resolve_change(store, "100%")
        beginning = next(c for c in "0123456789abcdef" if sum(task.id.startswith(c) for task in tasks) > 1)
        with pytest.raises(InputError, match=f"{beginning} is ambiguous, .* tasks match: .*ada__greet-"):
            queries.resolve_task(store, beginning)


def test_a_name_in_two_sources_is_ambiguous(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, source="git:greet")
        add_lineage(store, source="git:/elsewhere/greet")
        with pytest.raises(InputError, match="is ambiguous, 2 tasks match"):
            queries.resolve_task(store, "ada__greet-1.bugfix")
        with pytest.raises(InputError, match="git:/elsewhere/greet"):
            queries.resolve_change(store, "ada__greet-1")


def test_a_name_selects_the_newest_chain(db: str) -> None:
    with Store.open(db) as store:
        old = add_lineage(store)
        pull = records.make_pull_request()
        candidate = records.make_candidate(pull, problem_statement="Told better")
        store.add_mined_changes((pull, candidate, 0.1))
        assert queries.list_tasks(store, queries.TaskFilters()) == []
        verification = records.make_verification(records.make_environment(candidate))
        new = records.make_task(verification, candidate)
        store.add(records.make_environment(candidate), verification, new)
        assert [row["id"] for row in queries.list_tasks(store, queries.TaskFilters())] == [new.id]
        assert queries.resolve_task(store, old.name) == new
        assert queries.resolve_task(store, old.id) == old


# ------------------------------------------------------------------------------------------------------ answers


def test_tasks_are_listed_searched_and_counted(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, 1)
        add_lineage(store, 2, to=Stage.DERIVE)
        listed = queries.list_tasks(store, queries.TaskFilters())
        assert [(row["name"], row["status"]) for row in listed] == [
            ("ada__greet-2.bugfix", "derived"),
            ("ada__greet-1.bugfix", "certified"),
        ]
        assert list(listed[0]) == list(queries.LIST_KEYS)
        assert len(queries.list_tasks(store, queries.TaskFilters(status="certified", repo="Ada/Greet"))) == 1
        assert queries.list_tasks(store, queries.TaskFilters(min_f2p=2)) == []
        assert queries.list_tasks(store, queries.TaskFilters(license="GPL-3.0-only")) == []
        assert [row["name"] for row in queries.search_tasks(store, ["GREETING", "fix 1"], queries.TaskFilters())] == [
            "ada__greet-1.bugfix"
        ]
        assert queries.search_tasks(store, ["gr%ting"], queries.TaskFilters()) == []
        counted = queries.compute_stats(store, queries.TaskFilters())
        assert (counted["tasks"], counted["status"]) == (2, {"derived": 1, "certified": 1})


def test_a_task_is_shown_with_its_patches_and_parents(db: str, tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "artifacts")
    gold, test = artifacts.put(b"gold\n"), artifacts.put(b"test \xff\n")
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull, gold_patch=gold, test_patch=test)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    task = records.make_task(verification, candidate)
    with Store.open(db) as store:
        store.add_mined_changes((pull, candidate, 0.1))
        store.add(environment, verification, task)
        unaudited = queries.look_up_task(store, artifacts, task.id)[1]
        measured = {"score": 0.5, "untested_hunks": ["a.py:3"], "edits": []}
        for number, strength in enumerate((None, measured)):
            store.add(Audit(parent=task.id, name=task.name, clean=True, strength=strength, at=str(number)))
        shown = queries.look_up_task(store, artifacts, task.id)[1]
    assert unaudited["strength"] == {"controls": 0, "fail_to_pass": 1}
    assert shown["strength"] == {**measured, "controls": 0, "fail_to_pass": 1}
    assert (shown["patch"], shown["test_patch"]) == ("gold\n", "test \udcff\n")
    assert shown["FAIL_TO_PASS"] == ["tests/test_greet.py::test_new"]
    assert shown["parents"] == [verification.id, environment.id, candidate.id, pull.id]
    assert (shown["certified"], shown["published"]) == (False, None)


def test_why_shows_a_rejected_change_with_its_test_lists(db: str) -> None:
    nothing: dict[str, tuple[str, ...]] = {"missing": (), "extra": ()}
    many = tuple(f"tests/test_greet.py::test_long_enough_to_be_stored_once[{number}]" for number in range(50))
    verdict = PublishedVerdict.model_validate(
        {"verdict": "subset", "fail_to_pass": nothing, "pass_to_pass": {"missing": many, "extra": ()}}
    )
    with Store.open(db) as store:
        add_lineage(store, to=Stage.BUILD)
        environment = next(store.find_pending(Stage.VERIFY, make_scope())).require_environment()
        rejection = records.make_rejection(environment, Stage.VERIFY, "flaky", published=verdict)
        done = StageResult(stage=Stage.VERIFY, result=rejection, source="git:greet", name="ada__greet-1", seconds=2.5)
        store.add_stage_results(done)
        _, story = queries.look_up_change(store, "ada__greet-1")
    assert set(story) == {
        "name",
        "source",
        "events",
        "attempts",
        "tasks",
        "published",
        "tags",
        "verdict",
        "verification",
        "environment",
        "mirrored",
        "runs",
    }
    assert [(e["stage"], e["ok"], e["reason"]) for e in story["events"]] == [
        ("mine", True, None),
        ("build", True, None),
        ("verify", False, "flaky"),
    ]
    assert list(story["events"][-1]) == ["stage", "ok", "reason", "detail", "seconds", "at"]
    assert (story["tasks"], story["runs"], story["published"]["verdict"]) == ([], [], "subset")
    assert list(story["published"]["pass_to_pass"]["missing"]) == list(many)


def test_the_funnel_adds_up(db: str) -> None:
    with Store.open(db) as store:
        add_lineage(store, 1)
        add_lineage(store, 2, to=Stage.BUILD)
        pull = records.make_pull_request(3)
        store.add_mined_changes((pull, records.make_rejection(pull, Stage.MINE), 0.0))
        steps = queries.compute_funnel(store)
    assert [(s["stage"], s["in"], s["out"], s["waiting"], s["rejected"]) for s in steps] == [
        ("mine", 3, 2, 0, {"no-tests": 1}),
        ("build", 2, 2, 0, {}),
        ("verify", 2, 1, 1, {}),
        ("judge", 1, 1, 0, {}),
        ("derive", 1, 1, 0, {}),
        ("certify", 1, 1, 0, {}),
    ]


# --------------------------------------------------------------------------------------------------- the schema


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_the_migrations_create_the_declared_tables(empty_db: str) -> None:
    """Declared apart: indices of listings (`taskdb.schema.indices`) and the index of words (`taskdb.schema.search`)."""
    assert f"{REVISION}_" in max(path.name for path in (MIGRATIONS / "versions").glob("*.py"))

    def is_compared(_: object, name: str | None, kind: str, *__: object) -> bool:
        declared = {name for indices in INDICES.values() for name in indices}
        return not (name or "").startswith("task_search") and (kind != "index" or name not in declared)

    with Store.open(empty_db) as store, store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_compared})
        assert compare_metadata(context, METADATA) == []


def test_opening_again_writes_nothing(tmp_path: Path) -> None:
    Store.open(make_url(tmp_path)).close()
    before = (tmp_path / "m.db").read_bytes()
    Store.open(make_url(tmp_path)).close()
    assert (tmp_path / "m.db").read_bytes() == before


def test_changed_views_are_created_again(tmp_path: Path) -> None:
    Store.open(make_url(tmp_path)).close()
    with sqlite3.connect(tmp_path / "m.db") as raw:
        raw.execute("DROP VIEW funnel")
        raw.execute("UPDATE meta SET value = 'of an older version' WHERE key = 'views'")
    raw.close()
    with Store.open(make_url(tmp_path)) as store, store.read_transaction() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM funnel").scalar() == 0


def test_several_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    code = f"from taskdb.store import Store; Store.open({make_url(tmp_path)!r}).close()"
    openers = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(4)]
    assert [opener.wait() for opener in openers] == [0] * 4


def test_files_of_other_programs_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough to look like one\n" * 100)
    with pytest.raises(InputError, match="is not a database"):
        Store.open(f"sqlite:///{tmp_path}/text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(InputError, match="not mergemill's"):
        Store.open(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(InputError, match="is a folder"):
        Store.open(f"sqlite:///{tmp_path}")
    with pytest.raises(InputError, match="there is no database"):
        Store.open(f"sqlite:///{tmp_path}/none.db", create=False)
    assert not (tmp_path / "none.db").exists()


def test_a_database_of_a_newer_mergemill_is_rejected(tmp_path: Path) -> None:
    Store.open(make_url(tmp_path)).close()
    raw = sqlite3.connect(tmp_path / "m.db")
    raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.commit()
    raw.close()
    with pytest.raises(InputError, match="newer mergemill"):
        Store.open(make_url(tmp_path))


@pytest.mark.parametrize("word", ["frob", "mysql://x/y", "sqlite://", "frob://x"])
def test_an_invalid_url_is_a_usage_error(word: str) -> None:
    with pytest.raises((UsageError, MachineError)):
        Store.open(word)


# --------------------------------------------------------------------------------------------------- bad weather


def test_a_locked_database_is_a_transient_failure_after_a_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskdb.schema.database.LOCK_SECONDS", 0.1)
    with Store.open(make_url(tmp_path)) as store:
        other = sqlite3.connect(tmp_path / "m.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Transient, match="locked"):
            store.add(records.make_pull_request())
        other.execute("ROLLBACK")
        other.close()
        assert store.add(records.make_pull_request())


def test_a_database_that_another_process_begins_is_waited_for(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "m.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    end = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    end.start()
    with Store.open(make_url(tmp_path)) as store:
        assert store.add(records.make_pull_request())
    end.join()
    other.close()


FILLER = """
import resource, signal, sys
from taskdb.store import Store
from core.errors import Transient
from tests import records

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Store.open(sys.argv[1]) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    try:
        for n in range(100_000):
            store.add(records.make_pull_request(n, body="x" * 10_000))
    except Transient as error:
        print(n, error.format_line())
"""


def test_a_full_disk_is_a_transient_failure_and_keeps_stored_records(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLER, make_url(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    n, _, message = done.stdout.partition(" ")
    assert "run the same command again" in message
    with Store.open(make_url(tmp_path)) as store, store.read_transaction() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM pull_request").scalar() == int(n) > 5
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
