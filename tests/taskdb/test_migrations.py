"""Databases that earlier versions wrote are opened, brought up to date and lose nothing.

`old_databases/revision_N.sql` is a dump of a small database that the last version with schema N wrote: a row of every
record, with every field that a later migration renames.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from taskdb.queries import tasks as queries
from taskdb.records import (
    Bundle,
    Candidate,
    Certificate,
    Environment,
    PullRequest,
    Rejection,
    RunVariant,
    Task,
    Verification,
)
from taskdb.records.audits import Audit
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.questions import Corpus, Question, QuestionCertificate, QuestionRejection, Walk
from taskdb.records.rollouts import Rollout, Trajectory, TrajectorySelection
from taskdb.records.simulations import SimulatedConversation, SimulationRejection
from taskdb.records.simulator_measurements import SimulatorMeasurement
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.worlds import Scenario, ScenarioCertificate, Theme, World, WorldCertificate, WorldRejection
from taskdb.schema import schema_0006
from taskdb.schema.mapping import RECORD_TABLES
from taskdb.schema.stored_records import unpack_bodies
from taskdb.store import Store
from tests.taskdb.lineages import make_url

NEWER_CLASSES = {
    Audit,
    Rollout,
    Trajectory,
    TrajectorySelection,
    Theme,
    World,
    WorldCertificate,
    Scenario,
    ScenarioCertificate,
    WorldRejection,
    SimulatedConversation,
    SimulationRejection,
    SimulatorMeasurement,
    BenchSet,
    BenchRun,
    Corpus,
    Walk,
    Question,
    QuestionCertificate,
    QuestionRejection,
}
"""Classes of records that schema 0006 did not have."""
DUMP = Path(__file__).with_name("old_databases") / "revision_0006.sql"


@pytest.fixture
def old(tmp_path: Path) -> str:
    """URL of a database as schema 0006 left it."""
    with sqlite3.connect(tmp_path / "m.db") as connection:
        connection.executescript(DUMP.read_text())
    connection.close()
    return make_url(tmp_path)


def count_rows(path: Path) -> dict[str, int]:
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}  # noqa: S608
    connection.close()
    return counts


def test_no_row_is_lost(old: str, tmp_path: Path) -> None:
    before = count_rows(tmp_path / "m.db")
    Store.open(old).close()
    after = count_rows(tmp_path / "m.db")
    before.pop("meta")
    assert {name: after[name] for name in before} == before
    assert after["change_listing"] == after["change"] > 0
    assert sum(before.values()) > 60


def test_every_record_can_be_read_and_has_the_id_of_its_content(old: str) -> None:
    with Store.open(old) as store:
        for kind in set(RECORD_TABLES) - NEWER_CLASSES:
            with store.read_transaction() as connection:
                table = RECORD_TABLES[kind][0].__tablename__
                rows = connection.exec_driver_sql(f"SELECT id, body FROM {table}").all()  # noqa: S608
                bodies = unpack_bodies(connection, [row.body for row in rows])
            assert rows, f"the dump holds no {kind.__name__}"
            assert [kind.model_validate(body).id for body in bodies] == [row.id for row in rows]


def test_every_chain_still_holds_together(old: str) -> None:
    with Store.open(old) as store:
        pulls = {record.id for record in store.load_all(PullRequest)}
        candidates = {record.id: record for record in store.load_all(Candidate)}
        environments = {record.id for record in store.load_all(Environment)}
        verifications = {record.id for record in store.load_all(Verification)}
        tasks = {record.id: record for record in store.load_all(Task)}
        verdicts = {record.id for record in store.load_all(Verdict)}
        assert {record.parent for record in candidates.values()} <= pulls
        assert {record.parent for record in store.load_all(Tags)} <= pulls
        assert {record.parent for record in tasks.values()} <= verifications
        everything = pulls | set(candidates) | environments | verifications | set(tasks) | verdicts
        assert {record.parent for record in store.load_all(Rejection)} <= everything
        (combined,) = [task for task in tasks.values() if task.other_candidates]
        assert set(combined.other_candidates) <= set(candidates)
        (bundle,) = store.load_all(Bundle)
        assert set(bundle.tasks) <= set(tasks)
        with store.read_transaction() as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
            records = {row[0] for row in connection.exec_driver_sql("SELECT record FROM event")}
            scored = {row[0] for row in connection.exec_driver_sql("SELECT task FROM score")}
        assert records <= everything | {
            record.id for kind in (Rejection, Certificate) for record in store.load_all(kind)
        }
        assert scored <= set(tasks)


def test_values_are_mapped_to_the_glossary(old: str) -> None:
    with Store.open(old) as store:
        assert {record.reason for record in store.load_all(Rejection)} == {
            "test-patch-does-not-apply",
            "not-on-default-branch",
            "fails-together",
            "install-failed",
        }
        (verification,) = [verification for verification in store.load_all(Verification) if verification.runs]
        assert [run.variant for run in verification.runs] == list(RunVariant)
        assert verification.controls == ("tests/test_greet.py::test_new",)
        assert (
            dict(verification.flaky)["tests/test_greet.py::test_time"]
            == "test-only: failed 2; gold: passed 2, failed 1"
        )
        (environment,) = [environment for environment in store.load_all(Environment) if environment.attempts]
        assert [(attempt.proposed_by, attempt.rolled_back, attempt.reason) for attempt in environment.attempts] == [
            ("draft", False, "install-failed"),
            ("(agent)", True, "rejected-edit"),
            ("(skill gcc)", False, "accepted"),
        ]
        with store.read_transaction() as connection:
            reasons = {row[0] for row in connection.exec_driver_sql("SELECT reason FROM event")}
        assert reasons == {
            None,
            "test-patch-does-not-apply",
            "not-on-default-branch",
            "fails-together",
            "install-failed",
        }


def test_the_certified_task_is_still_listed_and_explained(old: str) -> None:
    with Store.open(old) as store:
        (row,) = queries.list_tasks(store, queries.TaskFilters(status="certified"))
        assert row["name"] == "ada__greet-1.bugfix"
        _, explained = queries.look_up_change(store, "ada__greet-1")
        assert [event["stage"] for event in explained["events"]] == [
            "mine",
            "build",
            "verify",
            "judge",
            "derive",
            "certify",
        ]
        assert explained["tags"]["change_kinds"][0]["evidence"][0]["rule"] == "title"


def test_tasks_of_old_bundles_are_read_under_their_old_id(old: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "m.db") as connection:
        bodies = dict(connection.execute("SELECT id, body FROM task"))
    connection.close()
    with Store.open(old) as store:
        current = {task.name: task for task in store.load_all(Task)}
    for key, body in bodies.items():
        assert schema_0006.is_task(json.loads(body))
        old_id, upgraded = schema_0006.upgrade_task(json.loads(body))
        task = Task.model_validate(upgraded)
        assert old_id == key
        assert (task.name, task.gold_patch) == (current[task.name].name, current[task.name].gold_patch)
        assert not schema_0006.is_task(upgraded)


@pytest.mark.postgres
def test_postgresql_is_migrated_with_its_foreign_keys(empty_postgresql: str, old: str) -> None:
    """The rows of the dump are copied into tables that the first six migrations make in PostgreSQL."""
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from sqlalchemy import create_engine, inspect  # noqa: PLC0415

    from taskdb.schema.database import MIGRATIONS  # noqa: PLC0415

    engine = create_engine(empty_postgresql)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    source = sqlite3.connect(old.removeprefix("sqlite:///"))
    source.row_factory = sqlite3.Row
    with engine.connect() as connection, connection.begin():
        config.attributes["connection"] = connection
        command.upgrade(config, "0006")
        tables = inspect(connection).get_table_names()
        connection.exec_driver_sql("SET session_replication_role = replica")  # rows come in any order
        for table in (name for name in tables if name != "alembic_version"):
            for row in source.execute(f"SELECT * FROM {table}"):  # noqa: S608
                columns = {column["name"]: column for column in inspect(connection).get_columns(table)}
                values = {
                    name: bool(row[name]) if str(columns[name]["type"]) == "BOOLEAN" else row[name]
                    for name in list(row.keys())
                }
                names, marks = ", ".join(values), ", ".join(f"%({name})s" for name in values)
                connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)  # noqa: S608
        connection.exec_driver_sql("SET session_replication_role = origin")
        keys = sum(len(inspect(connection).get_foreign_keys(table)) for table in tables)
    source.close()
    engine.dispose()
    with Store.open(empty_postgresql) as store:
        for kind in RECORD_TABLES:
            for record in store.load_all(kind):
                assert store.get(kind, record.id) == record
        assert len(queries.list_tasks(store, queries.TaskFilters(status="certified"))) == 1
        with store.engine.connect() as connection:
            inspector = inspect(connection)
            n_keys = sum(len(inspector.get_foreign_keys(table)) for table in inspector.get_table_names())
            # audit, trajectory, trajectory_selection, world, scenario and their certificates, measurements, walk,
            # question and its certificate
            assert n_keys == keys + 12 > 12
