"""`mergemill bundle`: bundles stand alone, and hostile ones do no harm."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from backends.base_trees import open_pack
from backends.clones import CloneStore
from backends.git import GitRepository, run_git
from core.config import Settings
from core.errors import InputError
from core.settings.storage import StorageSettings
from exporters.bundle_records import ARTIFACT_FOLDER, RECORDS_FILE, TREE_FOLDER, TREES_FILE
from exporters.tree import read_tree
from mergemill.bundles.bundle_import import import_bundle
from mergemill.bundles.contents import check_bundle
from mergemill.bundles.export import count_doubtful
from taskdb.queries.lineages import load_lineages
from taskdb.queries.repository_history import HistoryReader
from taskdb.queries.task_filters import TaskFilters
from taskdb.records import Candidate, Certificate, PullRequest, Task
from taskdb.records.audits import Audit
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Finding, QuoteSource, Verdict
from taskdb.schema.task_columns import Range
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.containers import make_services
from tests.exporters.bundles import add_tasks, edit_manifest, seal
from tests.exporters.tasks import make_certificate
from tests.taskdb.lineages import add_lineage

LISTED = "SELECT id, name, status, change_kind, underspecified FROM tasks ORDER BY name"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database, its store, and a bundle in each of two formats; there is no clone any more."""
    folder = tmp_path_factory.mktemp("home")
    services = make_services(folder / "mergemill-store")
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        add_tasks(store, services, folder / "clones")
    for form in ("swebench", "harbor"):
        done = run_mergemill("export", "--format", form, "--out", form, cwd=folder)
        assert done.exit_code == 0, done.stderr
    shutil.rmtree(folder / "clones")
    return folder


@pytest.fixture
def bundle(home: Path, tmp_path: Path) -> Path:
    """A copy of a bundle."""
    shutil.copytree(home / "swebench", tmp_path / "bundle", symlinks=True)
    return tmp_path / "bundle"


@pytest.mark.parametrize("form", ["swebench", "harbor"])
def test_a_bundle_is_imported_into_an_empty_database_as_the_very_tasks(form: str, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / form, tmp_path / "got")
    verified = run_mergemill("bundle", "verify", "got", "--json", cwd=tmp_path)
    assert (verified.exit_code, verified.json["ok"], verified.json["tasks"]) == (0, True, 2), verified
    first = run_mergemill("bundle", "import", "got", "--json", cwd=tmp_path)
    assert first.exit_code == 0, first.stderr
    expected = run_mergemill("sql", LISTED, "--json", cwd=home).lines
    assert len(expected) == 2
    assert run_mergemill("sql", LISTED, "--json", cwd=tmp_path).lines == expected
    assert [(line["id"], line["new"], line["problem"]) for line in first.lines] == [
        (row["id"], True, None) for row in expected
    ]
    again = run_mergemill("bundle", "import", "got", "--json", cwd=tmp_path)
    assert [line["new"] for line in again.lines] == [False, False]
    assert run_mergemill("sql", LISTED, "--json", cwd=tmp_path).lines == expected
    exported = run_mergemill("export", "--format", form, "--out", "again", "--json", cwd=tmp_path)
    assert exported.exit_code == 0, exported.stderr
    bundled, other = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "got", tmp_path / "again")
    )
    assert {path for path in bundled if bundled[path] != other.get(path)} <= {Path("manifest.json")}


def test_a_certificate_names_a_task_that_no_bundle_and_no_database_has(bundle: Path, tmp_path: Path) -> None:
    absent = {"task": "0" * 64, "name": "ada__absent-1.bugfix"}
    _replace_certificate(bundle, exploits_of=absent, environment_family="f" * 64)
    assert run_mergemill("bundle", "verify", "bundle", cwd=tmp_path).exit_code == 0
    imported = run_mergemill("bundle", "import", "bundle", "--json", cwd=tmp_path)
    assert [line["problem"] for line in imported.lines] == [None, None]
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        (relying,) = (certificate for certificate in store.load_all(Certificate) if certificate.exploits_of)
        assert HistoryReader(store).find(store.get(Task, relying.parent).repo).exploited_families == {}
    assert (
        run_mergemill("tasks", "show", relying.name, "--json", cwd=tmp_path).json["certificate"]["exploits_of"]
        == absent
    )
    exported = run_mergemill("export", "--format", "swebench", "--out", "again", cwd=tmp_path)
    assert exported.exit_code == 0, exported.stderr
    assert absent["name"] in (tmp_path / "again" / RECORDS_FILE).read_text()


def test_bundles_of_two_databases_meet_in_one(home: Path, tmp_path: Path) -> None:
    services = make_services(tmp_path / "other")
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        (task,) = add_tasks(store, services, tmp_path / "elsewhere", count=1)
        before = load_lineages(store, [task])
        assert run_mergemill("bundle", "import", str(home / "swebench"), cwd=tmp_path).exit_code == 0
        assert load_lineages(store, [task]) == before
        assert len(store.load_all(Task)) == 3


def test_a_change_that_the_database_has_keeps_its_own_chain(home: Path, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{home}/mergemill.db") as store:
        task = store.load_all(Task)[0]
        pull, tags, candidate, *_ = load_lineages(store, [task])[task.id]
    assert isinstance(pull, PullRequest)
    assert isinstance(tags, Tags)
    newer = Candidate(**candidate.model_dump() | {"problem_statement": "Written again"})
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        store.add_mined_changes((pull, newer, 0.1), tags=[tags])
        assert run_mergemill("bundle", "import", str(home / "swebench"), cwd=tmp_path).exit_code == 0
        with store.read_transaction() as connection:
            query = text("SELECT result FROM change WHERE name = :name")
            assert list(connection.execute(query, {"name": pull.name}).scalars()) == [newer.id]
        assert Candidate in {type(record) for record in load_lineages(store, [task])[task.id]}


def test_a_chain_with_a_missing_record_is_an_input_error(home: Path) -> None:
    with Store.open(f"sqlite:///{home}/mergemill.db") as store:
        task = store.load_all(Task)[0].model_copy(update={"candidate": "f" * 64})
        with pytest.raises(InputError, match="there is no Candidate ffffffffffff"):
            load_lineages(store, [task])


# ------------------------------------------------------------------------------------------------- hostile bundles


def _change_line(folder: Path, edit: Callable[[dict], object], kind: str = "Task") -> None:  # type: ignore[type-arg]
    path = folder / RECORDS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    edit(next(row for row in rows if row["record"] == kind))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    seal(folder)


def _replace_record(folder: Path, **fields: object) -> None:
    """Change fields of the first task and give it the id of its new content, here and in the manifest."""
    path = folder / RECORDS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = next(row for row in rows if row["record"] == "Task")
    task = Task.model_validate(row["body"] | fields)
    old, row["id"], row["body"] = row["id"], task.id, task.model_dump(mode="json")
    rows = [row for row in rows if row["record"] != "Certificate"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    edit_manifest(
        folder, lambda content: [entry.update(id=task.id) for entry in content["tasks"] if entry["id"] == old]
    )
    seal(folder)


def _replace_certificate(folder: Path, **fields: object) -> None:
    """Change fields of the first certificate and give it the id of its new content."""
    path = folder / RECORDS_FILE
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = next(row for row in rows if row["record"] == "Certificate")
    certificate = Certificate.model_validate(row["body"] | fields)
    row["id"], row["body"] = certificate.id, certificate.model_dump(mode="json")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    seal(folder)


def _store_patch(folder: Path, patch: bytes) -> str:
    digest = hashlib.sha256(patch).hexdigest()
    path = folder / ARTIFACT_FOLDER / digest[:2] / digest[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(patch)
    return digest


def _link_out(folder: Path) -> None:
    (folder / "tasks.jsonl").unlink()
    (folder / "tasks.jsonl").symlink_to("/etc/hostname")
    edit_manifest(folder, lambda content: content["files"].update({"tasks.jsonl": "0" * 64}))


def _link_folder_out(folder: Path) -> None:
    (folder / "more").symlink_to("/etc")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def _socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
    os.chdir(here)


def _name(path: str) -> Callable[[Path], None]:
    return lambda folder: edit_manifest(folder, lambda content: content["files"].update({path: "0" * 64}))


def _task_row(**fields: object) -> Callable[[Path], None]:
    return lambda folder: edit_manifest(folder, lambda content: content["tasks"][0].update(fields))


def _same_name(folder: Path) -> None:
    edit_manifest(folder, lambda content: content["tasks"][1].update(name=content["tasks"][0]["name"]))


def _record_twice(folder: Path) -> None:
    path = folder / RECORDS_FILE
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    seal(folder)


def _no_parent(folder: Path) -> None:
    path = folder / RECORDS_FILE
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[1:]))
    seal(folder)


def _deep(folder: Path) -> None:
    (folder / RECORDS_FILE).write_text("[" * 200_000 + "\n")
    seal(folder)


def _deep_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text("[" * 200_000)


def _patch_paths(path: str) -> Callable[[Path], None]:
    patch = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n".encode()
    return lambda folder: _replace_record(folder, gold_patch=_store_patch(folder, patch))


def _no_patch(folder: Path) -> None:
    _replace_record(folder, gold_patch=_store_patch(folder, b"GIF89a\0\xff"))


def _no_artifact(folder: Path) -> None:
    next((folder / ARTIFACT_FOLDER).rglob("??????????*")).unlink()
    seal(folder)


def _no_pack(folder: Path) -> None:
    (folder / TREE_FOLDER / "0.pack").write_bytes(b"PACK\0\0\0\2\x7f\xff\xff\xff")
    seal(folder)


def _other_commit(folder: Path) -> None:
    listed = json.loads((folder / TREES_FILE).read_text())
    listed["0.pack"]["commits"].append("f" * 40)
    (folder / TREES_FILE).write_text(json.dumps(listed))
    seal(folder)


def _pack_outside(folder: Path) -> None:
    listed = json.loads((folder / TREES_FILE).read_text())
    listed["../../../etc/passwd"] = listed.pop("0.pack")
    (folder / TREES_FILE).write_text(json.dumps(listed))
    seal(folder)


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a link to a file": (_link_out, "not a regular file: 'tasks.jsonl'"),
    "a link to a folder": (_link_folder_out, "not a regular file: 'more'"),
    "a pipe": (_pipe, "not a regular file: 'pipe'"),
    "a socket": (_socket, "not a regular file: 's'"),
    "a path above": (_name("../../outside"), "is not one inside the bundle"),
    "an absolute path": (_name("/etc/passwd"), "is not one inside the bundle"),
    "a path with control characters": (_name("a\x1b[2Jb"), r"a\x1b[2Jb"),
    "a hash that is none": (lambda f: edit_manifest(f, lambda c: c["files"].update(x="y")), "has no sha256"),
    "a foreign file": (lambda f: (f / "x").touch(), "not part of the bundle: x"),
    "a task without a name": (_task_row(name=None), "has no name"),
    "a task with a line end in its name": (_task_row(name="a\nb"), r"'a\nb'"),
    "two tasks of one name": (_same_name, "not unique"),
    "a task of another id": (_task_row(id="0" * 64), "is in the manifest and not in the records"),
    "a record of another id": (lambda f: _change_line(f, lambda row: row.update(id="0" * 64)), "has another id"),
    "a record of other content": (
        lambda f: _change_line(f, lambda row: row["body"].update(problem_statement="x")),
        "has another id",
    ),
    "a record that is there twice": (_record_twice, "twice"),
    "a record without its parent": (_no_parent, "its parent"),
    "a record of another class": (lambda f: _change_line(f, lambda row: row.update(record="Settings")), "not a record"),
    "a record with a further field": (lambda f: _change_line(f, lambda row: row["body"].update(x=1)), "'x'"),
    "a deep record": (_deep, "is not a record"),
    "a deep manifest": (_deep_manifest, "holds no manifest.json"),
    "control characters in a name": (lambda f: _replace_record(f, name="a\x1b[2J"), "control characters"),
    "control characters in a name of a task that is not there": (
        lambda f: _replace_certificate(f, exploits_of={"task": "0" * 64, "name": "a\x1b[2J"}),
        "control characters",
    ),
    "no commit": (lambda f: _replace_record(f, base_commit="--output=/etc/x"), "base_commit is not"),
    "no image": (lambda f: _replace_record(f, image="--privileged x"), "image is not"),
    "a patch of a path above": (_patch_paths("../../.bashrc"), "which is not a file of the tree"),
    "a patch of git's files": (_patch_paths(".git/hooks/post-checkout"), "which is not a file of the tree"),
    "a patch that is none": (_no_patch, "gold_patch is not a patch"),
    "a missing artifact": (_no_artifact, "is missing, changed or too large"),
    "a tree list that names other files": (_pack_outside, "is malformed"),
}
IMPORTED_ONLY: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pack that is none": (_no_pack, "is no sound pack"),
    "a commit that is not in the pack": (_other_commit, "ls-tree"),
}


@pytest.mark.parametrize("case", [*HOSTILE, *IMPORTED_ONLY])
def test_a_hostile_bundle_is_refused_in_one_line_and_nothing_is_written(case: str, bundle: Path) -> None:
    change, expected = (HOSTILE | IMPORTED_ONLY)[case]
    change(bundle)
    folder = bundle.parent
    if case in HOSTILE:
        assert expected in find_problem(bundle)
    settings = Settings(db=f"sqlite:///{folder}/mergemill.db", store=folder / "store")
    with pytest.raises(InputError) as caught:
        list(import_bundle(bundle, settings))
    assert expected in str(caught.value)
    assert not any(ord(character) < 32 for character in str(caught.value))
    assert sorted(path.name for path in folder.iterdir()) in (["bundle"], ["bundle", "store"])
    assert not [path for path in (folder / "store").rglob("*") if path.is_file()]


def find_problem(folder: Path) -> str:
    """Return all problems that `bundle verify` prints."""
    try:
        return "\n".join(check_bundle(folder).problems)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("case", ["a link to a folder", "a path with control characters", "a record of another id"])
def test_a_refused_bundle_is_one_line_on_the_command_line(case: str, bundle: Path) -> None:
    HOSTILE[case][0](bundle)
    for command in ("verify", "import", "certify"):
        done = run_mergemill("bundle", command, "bundle", cwd=bundle.parent)
        assert (done.exit_code, len(done.stderr.splitlines())) == (3, 1), done
        assert "\x1b" not in done.stdout + done.stderr
    assert [path.name for path in bundle.parent.iterdir()] == ["bundle"]


def test_a_pack_of_a_tree_with_paths_that_lead_out_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.git"
    run_git("init", "-q", "--bare", str(path))
    evil = GitRepository(path)
    blob = evil.run_git("hash-object", "-w", "--stdin", data=b"x").decode().strip()
    tree = bytes.fromhex(blob)
    raw = b"100644 ..\0" + tree
    inner = evil.run_git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=raw).decode().strip()
    commit = (
        evil.run_git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit-tree", inner, "-m", "x")
        .decode()
        .strip()
    )
    objects = f"{commit}\n{inner}\n{blob}\n".encode()
    (tmp_path / "0.pack").write_bytes(evil.run_git("pack-objects", "--stdout", "-q", data=objects))
    with pytest.raises(InputError, match="leads out of its tree"), open_pack(tmp_path / "0.pack", [commit]):
        pass


def _make_tree_archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))


def _member(name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        (_member("../../outside"), "leads out"),
        (_member("/etc/passwd"), "leads out"),
        (_member(".git/config"), "leads out"),
        (_member("a", tarfile.LNKTYPE, link="/etc/passwd"), "hard link or a device"),
        (_member("a", tarfile.CHRTYPE), "hard link or a device"),
        (_member("a", tarfile.FIFOTYPE), "hard link or a device"),
    ],
)
def test_a_hostile_archive_of_a_tree_is_refused(member: tarfile.TarInfo, expected: str, tmp_path: Path) -> None:
    _make_tree_archive(tmp_path / "tree.tar.gz", (member, b""))
    with pytest.raises(InputError, match=expected):
        list(read_tree(tmp_path / "tree.tar.gz"))


def test_an_archive_that_claims_terabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = _member("big", size=5 << 40).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "tree.tar.gz").write_bytes(gzip.compress(header + bytes(10_240)))
    with pytest.raises(InputError, match="claims more than"):
        list(read_tree(tmp_path / "tree.tar.gz"))


def test_messages_count_one_thing_as_one(home: Path, bundle: Path) -> None:
    name = run_mergemill("tasks", "list", "--limit", "1", "--json", cwd=home).json["name"]
    (bundle.parent / "ids").write_text(name)
    words = (
        "--ids",
        "ids",
        "--out",
        "one",
        "--db",
        str(home / "mergemill.db"),
        "--store",
        str(home / "mergemill-store"),
    )
    done = run_mergemill("export", "--format", "swebench", *words, cwd=bundle.parent)
    assert "1 task in " in done.stdout, done
    for extra in ("x", "y"):
        (bundle / extra).touch()
    refused = run_mergemill("bundle", "import", "bundle", cwd=bundle.parent)
    assert "and 1 more problem (" in refused.stderr


@pytest.mark.parametrize("bound", [None, 1.0])
def test_tasks_without_controls_are_exported_only_when_they_are_asked_for(bound: float | None, tmp_path: Path) -> None:
    services = make_services(tmp_path / "mergemill-store")
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        first, second = add_tasks(store, services, tmp_path / "clones")
        plain = Task(**first.model_dump() | {"control_bound": bound, "name": f"{first.name}-plain"})
        store.add(plain, make_certificate(plain))
    export = ("export", "--format", "swebench", "--json", "--out")
    done = run_mergemill(*export, "without", cwd=tmp_path)
    assert (done.exit_code, set(done.json["tasks"])) == (0, {first.id, second.id}), done
    assert "1 task not exported: without negative controls" in done.stderr
    allowed = run_mergemill(*export, "all", "--allow-no-controls", cwd=tmp_path)
    assert (allowed.exit_code, "not exported" in allowed.stderr) == (0, False)
    assert set(allowed.json["tasks"]) == {first.id, second.id, plain.id}


def add_judged_tasks(folder: Path, *rules: str) -> tuple[Task, Task]:
    """Store two tasks: one with findings, weak tests and a bad verdict, and one that was neither judged nor audited.

    `rules`: rules of the findings of the verdict.
    """
    services = make_services(folder / "mergemill-store")
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        first, second = add_tasks(store, services, folder / "clones", n_judged=1)
        verdict = next(verdict for verdict in store.load_all(Verdict) if verdict.parent == first.parent)
        findings = [Finding(rule=rule, quote="a", detail="", quote_source=QuoteSource.TESTS) for rule in rules]
        bad = {"unfair_tests": 0.8, "underspecified": 0.6, "findings": findings}
        store.add(Verdict(**verdict.model_dump() | bad))
        strength = {"score": 0.25, "untested_hunks": [], "edits": []}
        store.add(Audit(parent=first.id, name=first.name, clean=False, strength=strength, at="2024-01-01"))
    return first, second


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--max-unfair", "0.7"), "the tests are unfair with a probability above 0.7"),
        (("--max-underspecified", "0.5"), "the statement is vague with a probability above 0.5"),
        (("--max-unfair", "0.8", "--max-underspecified", "0.6"), None),
    ],
)
def test_tasks_above_a_probability_are_left_out(options: tuple[str, ...], reason: str | None, tmp_path: Path) -> None:
    first, second = add_judged_tasks(tmp_path)
    done = run_mergemill("export", "--format", "swebench", "--json", "--out", "out", *options, cwd=tmp_path)
    expected = {second.id} if reason else {first.id, second.id}
    assert (done.exit_code, set(done.json["tasks"])) == (0, expected), done
    left_out = [line for line in done.stderr.splitlines() if "not exported" in line]
    assert left_out == ([f"mergemill: 1 task not exported: {reason}"] if reason else [])


def test_an_export_warns_of_doubtful_tasks_unless_a_filter_decides_about_them(tmp_path: Path) -> None:
    add_judged_tasks(tmp_path, "name-not-stated")
    export = ("export", "--format", "swebench", "--out", "out")
    done = run_mergemill(*export, cwd=tmp_path)
    assert [line for line in done.stderr.splitlines() if "warning" in line] == [
        "mergemill: warning: 1 exported task: findings in the newest audit",
        "mergemill: warning: 1 exported task: tests that detect at most 0.5 of the faults in the gold patch",
        "mergemill: warning: 1 exported task: tests that require what the statement lacks, by findings of the judge",
        "mergemill: warning: 1 exported task: a statement that leaves open what to do, by findings of the judge",
    ]
    decided = ("--audited", "findings", "--strength", "0.1:", "--unfair-tests", "0:1", "--max-underspecified", "1")
    assert "warning" not in run_mergemill(*export, *decided, cwd=tmp_path).stderr
    limited = run_mergemill(*export, "--max-unfair", "0.1", cwd=tmp_path).stderr
    assert "warning: 1 exported task: not judged" in limited


def test_an_export_warns_of_the_odds_of_readers_unless_a_filter_decides_about_them(tmp_path: Path) -> None:
    storage = StorageSettings(db=f"sqlite:///{tmp_path / 'mergemill.db'}")
    with Store.open(storage.db) as store:
        for number, bound in enumerate((0.001, 0.49, 0.5, 0.98)):
            add_lineage(store, number, task_fields={"control_bound": bound})
    warning = "control_bound of 0.5 or more: a submission that only reads the tests is likely to pass"
    assert count_doubtful(TaskFilters(), storage) == {warning: 2}
    assert count_doubtful(TaskFilters(control_bound=Range(0.5, None)), storage) == {}


def test_an_export_does_not_warn_of_a_probability_without_a_finding(tmp_path: Path) -> None:
    add_judged_tasks(tmp_path, "solution-line")
    done = run_mergemill("export", "--format", "swebench", "--out", "out", cwd=tmp_path)
    assert [line for line in done.stderr.splitlines() if "warning" in line] == [
        "mergemill: warning: 1 exported task: findings in the newest audit",
        "mergemill: warning: 1 exported task: tests that detect at most 0.5 of the faults in the gold patch",
    ]


def test_a_folder_without_a_bundle_is_an_input_error(tmp_path: Path) -> None:
    commands = [("bundle", word) for word in ("verify", "certify", "import")]
    for words in [*commands, ("certify", "--again")]:
        done = run_mergemill(*words, str(tmp_path), cwd=tmp_path)
        assert (done.exit_code, len(done.stderr.splitlines())) == (3, 1), done


def test_a_kept_tree_of_an_import_is_read_without_a_clone(home: Path, tmp_path: Path) -> None:
    assert run_mergemill("bundle", "import", str(home / "harbor"), cwd=tmp_path).exit_code == 0
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        task = store.load_all(Task)[0]
    tree = CloneStore(tmp_path / "mergemill-store" / "clones").open_tree(task.source, task.repo, task.base_commit)
    assert tree.read_file(task.base_commit, "README.md") == b"# words\n"


def test_quiet_leaves_out_all_but_errors(tmp_path: Path) -> None:
    add_judged_tasks(tmp_path, "name-not-stated")
    none = ("tasks", "list", "--status", "certified", "--repo", "no/where")
    for command in (("export", "--format", "swebench", "--max-unfair", "0.7", "--out", "out"), none):
        shown = run_mergemill(*command, cwd=tmp_path)
        quiet = run_mergemill("--quiet", *command, cwd=tmp_path)
        assert (shown.exit_code, quiet.exit_code, bool(shown.stderr), quiet.stderr) == (0, 0, True, ""), (shown, quiet)
    counted = run_mergemill("export", "--format", "harbor", "--out", "counted", cwd=tmp_path)
    assert "images exist only on this engine" in counted.stderr
    failed = run_mergemill("--quiet", "export", "--format", "harbor", "--out", "mergemill.db", cwd=tmp_path)
    assert (failed.exit_code != 0, bool(failed.stderr)) == (True, True)
