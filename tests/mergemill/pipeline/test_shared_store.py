"""Commands whose artifacts are in an S3 store: a real server, and the program as a process."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pytest

from core.config import Settings
from core.errors import InputError
from mergemill.operations.doctor import check_artifacts
from mergemill.operations.machine_checks import Machine
from taskdb.artifacts import Artifacts, make_name
from taskdb.artifacts.shared import SharedArtifacts
from taskdb.records import Record, Rejection, Stage
from taskdb.store import Store
from tests.cli import WITH_KEPT_RUNS, run_mergemill
from tests.mergemill.stages import FakeStages, run
from tests.s3_server import BUCKET, READER, ROOT, S3Server
from tests.sample import make_sample
from tests.taskdb.lineages import add_lineage

RECORDS = ("pull_request", "candidate", "environment", "verification", "verdict", "task", "certificate", "rejection")


@pytest.fixture
def in_process(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server, whose variables are set in this process."""
    for name, value in s3_server.make_environment().items():
        monkeypatch.setenv(name, value)
    yield s3_server
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def make_url(tmp_path: Path) -> str:
    return f"s3://{BUCKET}/{tmp_path.name}"


# ------------------------------------------------------------------------------------------- what is wrong at the start


@pytest.mark.s3
@pytest.mark.parametrize("command", [("mine", "git:ada__greet"), ("run", "git:ada__greet"), ("serve", "--port", "0")])
@pytest.mark.parametrize(
    ("bucket", "keys", "problem"),
    [("nowhere", ROOT, "bucket does not exist"), (BUCKET, (ROOT[0], "a-wrong-secret"), "signature")],
)
def test_a_wrong_bucket_or_key_is_one_line_at_the_start(
    s3_server: S3Server, tmp_path: Path, command: tuple[str, ...], bucket: str, keys: tuple[str, str], problem: str
) -> None:
    make_sample(tmp_path / "ada__greet")
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db"):
        pass
    variables = s3_server.make_environment(keys)
    done = run_mergemill(*command, "--artifacts", f"s3://{bucket}/x", cwd=tmp_path, **variables)
    assert (done.exit_code, done.stdout) == (InputError.exit_code, "")
    (line,) = done.stderr.splitlines()
    assert problem in line
    assert f"s3://{bucket}/x" in line
    assert keys[1] not in line
    assert run_mergemill("sql", "SELECT count(*) AS n FROM changes", "--json", cwd=tmp_path).lines == [{"n": 0}]


@pytest.mark.s3
def test_who_may_read_alone_reads_tasks_and_mines_nothing(s3_server: S3Server, tmp_path: Path) -> None:
    url = make_url(tmp_path)
    make_sample(tmp_path / "ada__greet")
    done = run_mergemill("mine", "git:ada__greet", "--artifacts", url, cwd=tmp_path, **s3_server.make_environment())
    assert done.exit_code == 0, done.stderr
    assert not (tmp_path / "mergemill-store" / "artifacts").exists()
    reader = s3_server.make_environment(READER) | {"MERGEMILL_ARTIFACTS": url, "MERGEMILL_STORE": "other-store"}
    again = run_mergemill("mine", "git:ada__greet", cwd=tmp_path, **reader)
    assert (again.exit_code, "Access Denied" in again.stderr) == (InputError.exit_code, True)
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        patches = {"gold_patch": put(tmp_path, s3_server, b"gold\n"), "test_patch": put(tmp_path, s3_server, b"test\n")}
        add_lineage(store, 1, **patches)
    shown = run_mergemill("tasks", "show", "ada__greet-1.bugfix", "--json", cwd=tmp_path, **reader)
    assert shown.json["patch"] == "gold\n", shown.stderr


def put(tmp_path: Path, server: S3Server, content: bytes) -> str:
    """Put an artifact as somebody else would, without this program: a file of the server."""
    folder = server.objects / tmp_path.name
    return Artifacts(folder).put(content)


@pytest.mark.s3
def test_no_secret_is_written_down(s3_server: S3Server, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    variables = s3_server.make_environment() | {"AWS_SESSION_TOKEN": ""}
    done = run_mergemill(
        "--verbose", "mine", "git:ada__greet", "--artifacts", make_url(tmp_path), cwd=tmp_path, **variables
    )
    assert done.exit_code == 0, done.stderr
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"ada__greet" in content for content in written)
    for content in (*written, done.stdout.encode(), done.stderr.encode()):
        assert ROOT[1].encode() not in content


@pytest.mark.s3
def test_doctor_checks_the_store(in_process: S3Server, tmp_path: Path) -> None:
    good = check_artifacts(Machine(Settings(store=tmp_path, artifacts=make_url(tmp_path))))
    assert (good.ok, good.detail) == (True, make_url(tmp_path))
    with pytest.raises(InputError, match="bucket does not exist"):
        check_artifacts(Machine(Settings(store=tmp_path, artifacts="s3://nowhere")))


# ------------------------------------------------------------------------------------------------------ a run


@dataclass
class StoringStages(FakeStages):
    """Stages that keep a log of each change; the server dies while the second change is built."""

    artifacts: SharedArtifacts = field(kw_only=True)
    server: S3Server = field(kw_only=True)
    dies: bool = field(kw_only=True)

    def build(self, it: Any, services: Any) -> Record | Rejection:
        built = [name for stage, name in self.calls if stage is Stage.BUILD]
        if self.dies and built:
            self.server.stop()
        result = super().build(it, services)
        self.artifacts.put(f"log of {it.candidate.name}".encode())
        return result


@pytest.mark.s3
def test_a_run_whose_server_dies_has_no_verdicts_of_it_and_goes_on_later(in_process: S3Server, tmp_path: Path) -> None:
    artifacts = SharedArtifacts(make_url(tmp_path), tmp_path / "cache")
    stages = StoringStages(artifacts=artifacts, server=in_process, dies=True)
    first = run(tmp_path, stages, workers=1)
    assert first.exit_code == 75
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        assert {rejection.stage for rejection in store.load_all(Rejection)} == {Stage.MINE}
    assert first.n_certified == 1
    in_process.start()
    second = run(tmp_path, StoringStages(artifacts=artifacts, server=in_process, dies=False), workers=1)
    assert (second.exit_code, second.n_certified) == (0, 2)
    names = {name for stage, name in stages.calls if stage is Stage.BUILD}
    elsewhere = SharedArtifacts(make_url(tmp_path), tmp_path / "elsewhere")
    for name in names:
        assert elsewhere.get(artifacts.put(f"log of {name}".encode()))


@pytest.mark.s3
@pytest.mark.docker
def test_a_run_gives_the_records_that_it_gives_with_a_folder(s3_server: S3Server, tmp_path: Path) -> None:
    variables = s3_server.make_environment() | WITH_KEPT_RUNS
    make_sample(tmp_path / "ada__greet")
    url = make_url(tmp_path)
    for name, artifacts in (("folder", "elsewhere/artifacts"), ("shared", url)):
        (tmp_path / name).mkdir()
        options = ["--db", f"{name}/mergemill.db", "--artifacts", artifacts]
        done = run_mergemill("run", "git:ada__greet", "--limit", "1", *options, "--json", cwd=tmp_path, **variables)
        assert (done.exit_code, done.lines[-1]["certified"]) == (0, 1), done.stderr
    records = [list_records(tmp_path / name / "mergemill.db") for name in ("folder", "shared")]
    assert records[0] == records[1]
    assert set(records[0]) == set(RECORDS)
    in_folder = {path.name for path in (tmp_path / "elsewhere" / "artifacts").rglob("*.zst")}
    in_bucket = {path.name for path in (s3_server.objects / tmp_path.name).rglob("*.zst")}
    assert len(in_folder) > 10
    assert len(in_bucket) > 10
    assert not list(tmp_path.glob("*/mergemill-store/artifacts"))

    other = ["--db", "shared/mergemill.db", "--store", "another-machine", "--artifacts", url]
    task = "ada__greet-3.bugfix"
    graded = run_mergemill("grade", task, "--gold", "--json", *other, cwd=tmp_path, **variables)
    assert (graded.exit_code, graded.json["value"]) == (0, 1.0), graded.stderr
    story = run_mergemill("why", "ada__greet-3", "--json", *other, cwd=tmp_path, **variables)
    assert story.json["tasks"], story.stderr
    log = run_mergemill("why", "ada__greet-3", "--log", *other, cwd=tmp_path, **variables)
    folder = ["--db", "folder/mergemill.db", "--artifacts", "elsewhere/artifacts"]
    assert log.stdout == run_mergemill("why", "ada__greet-3", "--log", *folder, cwd=tmp_path).stdout
    exports = []
    for out, options in (("of-shared", [*other[:2], *other[4:]]), ("of-folder", folder)):
        done = run_mergemill("export", "--format", "swebench", "--out", out, *options, cwd=tmp_path, **variables)
        assert done.exit_code == 0, done.stderr
        rows = map(json.loads, (tmp_path / out / "tasks.jsonl").read_text().splitlines())
        exports.append([{name: row[name] for name in ("instance_id", "patch", "test_patch")} for row in rows])
    assert len(exports[0]) == 1
    assert exports[0] == exports[1]


def list_records(database: Path) -> dict[str, set[str]]:
    """Return table -> ids of its records."""
    with sqlite3.connect(database) as connection:
        rows = {table: {row[0] for row in connection.execute(f"SELECT id FROM {table}")} for table in RECORDS}  # noqa: S608 - its own names
    connection.close()
    return rows


# ------------------------------------------------------------------------------------------------------ moving


@pytest.mark.s3
def test_artifacts_are_copied_to_a_store_and_back(s3_server: S3Server, tmp_path: Path) -> None:
    variables, url = s3_server.make_environment(), make_url(tmp_path)
    folder = tmp_path / "mergemill-store" / "artifacts"
    digests = [Artifacts(folder).put(b"artifact %d" % number) for number in range(30)]
    (folder / "ab" / ".half-written").parent.mkdir(exist_ok=True)
    (folder / "ab" / ".half-written").write_bytes(b"")
    damaged = folder / make_name(digests[7])
    whole = damaged.read_bytes()
    damaged.write_bytes(b"damaged")

    done = run_mergemill("db", "copy-artifacts", url, "--workers", "4", "--json", cwd=tmp_path, **variables)
    assert done.exit_code == InputError.exit_code
    (problem,) = done.json["unreadable"]
    assert digests[7][:12] in problem
    assert (done.json["copied"], done.json["present"]) == (29, 0)
    assert problem in done.stderr

    damaged.write_bytes(whole)
    again = run_mergemill("db", "copy-artifacts", url, cwd=tmp_path, **variables)
    assert (again.exit_code, again.stdout) == (0, "1 artifact copied, 29 there already\n")

    (tmp_path / "back").mkdir()
    back = run_mergemill("db", "copy-artifacts", "back", "--artifacts", url, "--json", cwd=tmp_path, **variables)
    assert (back.exit_code, back.json["copied"]) == (0, 31), back.stderr  # the empty one is that of the check
    assert [Artifacts(tmp_path / "back").get(digest) for digest in digests] == [
        b"artifact %d" % number for number in range(30)
    ]


def test_a_copy_to_the_same_place_is_a_mistake(tmp_path: Path) -> None:
    done = run_mergemill("db", "copy-artifacts", "mergemill-store/artifacts", cwd=tmp_path)
    assert done.exit_code == 2
    assert "already" in done.stderr
