"""Trees around reviews: in bundles, prompts, containers of agents, and in the audit."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import exporters
from backends.clones import CloneStore
from backends.git import GitRepository
from backends.services import Services
from core.errors import InputError
from exporters.bundle_reader import check_content
from exporters.item import ExportItem
from mergemill.bundles.solver_files import write_material
from samplers.subjects.task_subject import make_task_subject
from taskdb.records import Task
from taskdb.records.oracles import Defect, LaterFix, ReviewOracle
from tests import records
from tests.containers import make_services
from tests.exporters.test_verifiers import make_review_task
from tests.helpers import TinyRepo
from verifiers.audit import audit_review_tree
from verifiers.base_tree import index_base_tree

TREE = {"shop.py": "import cart\n", "cart.py": "RATE = 1\n", "run.sh": "exit\n"}
LATER = LaterFix(path="shop.py", first_line=9, last_line=9, message="Fix what nobody sees")


@pytest.fixture
def tree(tmp_path: Path) -> TinyRepo:
    """A repository whose second commit is a later version than the one under review."""
    repo = TinyRepo(tmp_path / "repo")
    (repo.path / "run.sh").write_text("")
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link.py").symlink_to("cart.py")
    repo.commit("Begin", TREE)
    repo.commit("Later", {"shop.py": "import cart  # later\n"})
    return repo


def make_review(services: Services, repo: TinyRepo, **fields: object) -> Task:
    """Return a review of the first commit, whose tree is in the store as that of the base commit is."""
    task = make_review_task(services, Defect(path="shop.py", first_line=40, last_line=42, claim="Off by one"))
    reviewed, base = repo.git("rev-parse", "HEAD~1"), repo.git("rev-parse", "HEAD")
    for commit in (reviewed, base):
        services.clones.trees.keep(task.repo, commit, GitRepository(repo.path))
    related = services.artifacts.put_text(json.dumps({"z.py": "Z = 1\n", "a.py": "A = 1\n"}))
    update = {"tree": reviewed, "related": related, "others": (LATER,), **fields}
    assert isinstance(task.oracle, ReviewOracle)
    oracle = task.oracle.model_copy(update=update)
    return task.model_copy(update={"base_commit": base, "oracle": oracle})


def read_members(archive: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return name -> owner, mode and content."""
    with tarfile.open(archive) as tar:
        return {
            member.name: (member.uid, member.mode, content.read() if (content := tar.extractfile(member)) else b"")
            for member in tar
        }


def test_bundles_carry_the_tree_once_and_hide_what_is_fixed_later(tree: TinyRepo, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_review(services, tree)
    tasks = [task.model_copy(update={"name": f"ada__words-{number}.review-1"}) for number in (1, 2)]
    out = tmp_path / "out"
    exporters.export_tasks("harbor", tasks, {}, out, services)
    archives = sorted(out.rglob("tree.tar.gz"))
    assert [archive.parent.name for archive in archives] == ["environment"] * 2
    assert len({archive.stat().st_ino for archive in archives}) == 1
    members = read_members(archives[0])
    assert set(members) == {*TREE, "link.py"}
    assert members["shop.py"] == (0, 0o444, TREE["shop.py"].encode())
    assert members["run.sh"][:2] == (0, 0o555)
    folder = archives[0].parent.parent
    assert "ADD tree.tar.gz /tree/" in (folder / "environment" / "Dockerfile").read_text(encoding="utf-8")
    assert "`/tree`" in (folder / "instruction.md").read_text(encoding="utf-8")
    holding = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and has_later_fix(path)]
    assert holding == [Path("tests/record.json")]


def has_later_fix(path: Path) -> bool:
    if path.name.endswith(".tar.gz"):
        return any(LATER.message.encode() in content for *_, content in read_members(path).values())
    return LATER.message.encode() in path.read_bytes()


def test_a_prompt_has_the_files_under_review_first_and_then_the_related_ones(tree: TinyRepo, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    diff = services.artifacts.put_text("+ the diff\n")
    out = tmp_path / "out"
    exporters.export_tasks("slime", [make_review(services, tree, diff=diff)], {}, out, services)
    (rows,) = out.glob("*.jsonl")
    prompt = json.loads(rows.read_text(encoding="utf-8"))["prompt"][0]["content"]
    places = [prompt.index(word) for word in ("`shop.py`:", "+ the diff", "not under review", "`z.py`:", "`a.py`:")]
    assert places == sorted(places)
    assert LATER.message not in prompt
    assert "/tree" not in prompt


def test_a_bundle_of_records_has_the_tree_of_a_review(tree: TinyRepo, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_review(services, tree)
    out = tmp_path / "out"
    candidate = records.make_candidate(pull := records.make_pull_request(), **get_patches(task))
    verification = records.make_verification(environment := records.make_environment(candidate))
    lineage = (pull, candidate, environment, verification)
    item = ExportItem(task=task, certificate=None)
    exporters.export_items("slime", [item], out, services, load_lineage=lambda _: lineage)
    listed = out / ".mergemill" / "trees.json"
    text = listed.read_text(encoding="utf-8")
    assert [set(row["commits"]) for row in json.loads(text).values()] == [set(task.list_tree_commits())]
    _, reviewed = task.list_tree_commits()
    problem = f"{task.name}: the base tree {reviewed[:12]} is not in the bundle"
    assert problem not in check_content(out)
    listed.write_text(text.replace(reviewed, "0" * 40), encoding="utf-8")
    assert problem in check_content(out)


def get_patches(task: Task) -> dict[str, str]:
    return {"gold_patch": task.gold_patch, "test_patch": task.test_patch}


def test_the_container_of_an_agent_holds_the_tree_without_git_and_read_only(tree: TinyRepo, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    subject = make_task_subject(make_review(services, tree), services, "review")
    assert subject.tree is not None
    with subject.tree() as stream, tarfile.open(fileobj=stream) as tar:
        members = {member.name: member for member in tar}
        assert set(members) == {"tree", "tree/link.py", *(f"tree/{name}" for name in TREE)}
        content = tar.extractfile("tree/shop.py")
        assert content is not None
        assert content.read() == TREE["shop.py"].encode()
    assert {member.uid for member in members.values()} == {0}
    assert not any(member.mode & 0o222 for member in members.values() if member.isreg())
    assert "is in /tree to be read" in subject.instruction
    assert not any(
        LATER.message.encode() in content for content in (*subject.files.values(), subject.instruction.encode())
    )


def test_reviews_of_earlier_versions_have_no_tree(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_review_task(services)
    subject = make_task_subject(task, services, "review")
    assert subject.tree is None
    assert "/tree" not in subject.instruction
    exporters.export_tasks("harbor", [task], {}, tmp_path / "out", services)
    assert not list((tmp_path / "out").rglob("tree.tar.gz"))
    assert "tree" not in next((tmp_path / "out").rglob("Dockerfile")).read_text(encoding="utf-8")


def test_the_audit_finds_the_solution_in_the_tree_of_a_review(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    repo = TinyRepo(tmp_path / "repo")
    fixed = "".join(f"number_of_items_{n} = {n}\n" for n in range(4))
    repo.commit("Begin", {"shop.py": fixed, "old.py": "number_of_items_1 = 1\n"})
    base = repo.commit("Break", {"shop.py": "broken = 1\n"})
    patch = repo.git("diff", base, f"{base}~1", "--", "shop.py") + "\n"
    gold = services.artifacts.put_text(patch)
    index = index_base_tree([("shop.py", b"broken = 1\n")])

    def audit(target: str) -> list[str]:
        task = make_review(services, repo, target=target).model_copy(update={"gold_patch": gold})
        return [path for path, _ in audit_review_tree(task, services, index)]

    assert audit("cross-file") == audit("diff") == ["shop.py"]
    assert audit("before-fix") == audit("threads") == []


def test_a_tree_that_is_gone_is_an_error_with_its_name(tree: TinyRepo, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    subject = make_task_subject(make_review(services, tree), services, "review")
    assert isinstance(services.clones, CloneStore)
    for path in services.clones.trees.folder.glob("*/shallow"):
        path.unlink()
    assert subject.tree is not None
    with pytest.raises(InputError), subject.tree():
        pass


def test_the_material_of_a_review_is_written_with_its_tree(tree: TinyRepo, tmp_path: Path) -> None:
    services = make_services(tmp_path)
    folder = tmp_path / "material"
    assert write_material(make_review(services, tree), services.artifacts, services.clones, folder) == 5
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"statement.md", "files/shop.py", "related/a.py", "related/z.py", "tree.tar.gz"}
    assert read_members(folder / "tree.tar.gz")["shop.py"][2] == TREE["shop.py"].encode()
