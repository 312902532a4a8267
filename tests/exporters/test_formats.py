"""Rows and folders of each format. test_third_parties runs the tools that read them."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import exporters
from core.errors import InputError
from exporters.formats.swebench import escape_test_id
from exporters.task_files import read_container_file
from exporters.tree import read_tree
from taskdb.records import Task
from tests.containers import make_services
from tests.exporters.tasks import BASE, FAIL_TO_PASS, PASS_TO_PASS, WORDS_RIGHT, make_task
from tests.helpers import TinyRepo

SWEBENCH_FIELDS = {
    "instance_id",
    "repo",
    "version",
    "base_commit",
    "environment_setup_commit",
    "patch",
    "test_patch",
    "problem_statement",
    "hints_text",
    "created_at",
    "FAIL_TO_PASS",
    "PASS_TO_PASS",
    "image",
    "image_name",
    "docker_image",
    "log_parser",
    "eval_type",
    "eval_script",
}


def test_a_swebench_row_has_the_fields_its_harness_reads_on_one_line(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    exporters.export_tasks("swebench", [task], {}, tmp_path / "out", services)
    [line] = (tmp_path / "out" / "tasks.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert row.keys() >= SWEBENCH_FIELDS
    assert row["image"] == row["image_name"] == row["docker_image"] == task.image
    assert json.loads(row["PASS_TO_PASS"]) == list(PASS_TO_PASS)
    assert json.loads(row["FAIL_TO_PASS"]) == [escape_test_id(test) for test in FAIL_TO_PASS]
    assert row["patch"].encode() == services.artifacts.get(task.gold_patch)
    lines = row["eval_script"].splitlines()
    assert lines.count("echo '>>>>> Start Test Output'") == lines.count("echo '>>>>> End Test Output'") == 1
    folder = tmp_path / "out" / "ada__words-1.bugfix"
    assert {path.name for path in folder.iterdir()} >= {"Dockerfile", "eval.sh", "gold.patch", "test.patch"}
    assert (folder / "eval.sh").read_bytes() == services.artifacts.get(task.eval_script)


def test_a_row_has_the_difference_between_its_tree_and_the_base_commit(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    plain = make_task(services, tmp_path, name="ada__words-1")
    repo = TinyRepo(tmp_path / "ada__words-2")
    task = make_task(services, tmp_path, name="ada__words-2")
    repo.write({"words.py": BASE["words.py"].replace("split", "rsplit"), "README.md": None})
    repo.git("add", "-A")
    setup = repo.git("diff", "--binary", "--cached") + "\n"
    repo.write({"words.py": WORDS_RIGHT})
    gold = repo.git("diff", "--binary") + "\n"
    repo.git("reset", "-q", "--hard")
    put = services.artifacts.put_text
    begun = Task(**task.model_dump() | {"setup_patch": put(setup), "gold_patch": put(gold)})
    exporters.export_tasks("swebench", [plain, begun], {}, tmp_path / "out", services)
    rows = [json.loads(line) for line in (tmp_path / "out" / "tasks.jsonl").read_text().splitlines()]
    assert [row["setup_patch"] for row in rows] == ["", setup]
    notes = [row["notes"] for row in json.loads((tmp_path / "out" / "manifest.json").read_bytes())["tasks"]]
    assert ["setup_patch" in " ".join(lines) for lines in notes] == [False, True]
    repo.git("checkout", "-q", rows[1]["base_commit"])
    with pytest.raises(subprocess.CalledProcessError):
        apply(repo, rows[1]["patch"])
    apply(repo, rows[1]["setup_patch"])
    packed = dict(read_tree(tmp_path / "out" / "ada__words-2.bugfix" / "tree.tar.gz"))
    assert {path.name for path in repo.path.rglob("*") if path.is_file() and ".git" not in path.parts} == {
        Path(path).name for path in packed
    }
    assert (repo.path / "words.py").read_bytes() == packed["words.py"]
    for name in ("patch", "test_patch"):
        apply(repo, rows[1][name])
    assert (repo.path / "words.py").read_text() == WORDS_RIGHT


def apply(repo: TinyRepo, patch: str) -> None:
    subprocess.run(["git", "apply", "-"], cwd=repo.path, input=patch.encode(), check=True, capture_output=True)


@pytest.mark.parametrize(
    ("test", "escaped"),
    [
        ("a.py::t[x y]", "a.py::t[x y]"),
        ("a.py::t[x  y]", "a.py::t[x\\x20 y]"),
        ("a.py::t[x - y]", "a.py::t[x \\x2d y]"),
        ("a.py::t[\t]", "a.py::t[\\x09]"),
        ("a.py::t[31m]", "a.py::t\\x5b31m]"),
        ("a.py::t[\u2028]", "a.py::t[\\u2028]"),
        ("a.py::t ", "a.py::t\\x20"),
    ],
)
def test_ids_that_the_log_parser_would_misread_are_escaped(test: str, escaped: str) -> None:
    assert escape_test_id(test) == escaped


def test_ids_with_equal_lines_are_named_in_the_manifest(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    both = ("a.py::t[x\ty]", "a.py::t[x\\x09y]")
    exporters.export_tasks("swebench", [task.model_copy(update={"PASS_TO_PASS": both})], {}, tmp_path / "out", services)
    row = json.loads((tmp_path / "out" / "tasks.jsonl").read_text())
    assert json.loads(row["PASS_TO_PASS"]) == ["a.py::t[x\\x09y]"]
    notes = json.loads((tmp_path / "out" / "manifest.json").read_text())["tasks"][0]["notes"]
    assert any("pass together or not at all" in note for note in notes)


def test_a_task_with_a_patch_that_is_not_utf8_is_skipped_with_a_note_in_the_manifest(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    good = make_task(services, tmp_path)
    bad = make_task(services, tmp_path, name="ada__words-2")
    bad = bad.model_copy(update={"gold_patch": services.artifacts.put(b"diff --git a/x b/x\n+\xff\n")})
    exporters.export_tasks("swebench", [good, bad], {}, tmp_path / "out", services)
    assert len((tmp_path / "out" / "tasks.jsonl").read_text().splitlines()) == 1
    notes = {
        task["name"]: task["notes"] for task in json.loads((tmp_path / "out" / "manifest.json").read_text())["tasks"]
    }
    assert notes[bad.name] == ["skipped: a patch is not UTF-8, which this format cannot carry"]
    with pytest.raises(InputError, match="UTF-8"):
        exporters.export_tasks("swebench", [bad], {}, tmp_path / "other", services)


def test_a_harbor_task_is_verified_in_a_separate_container_without_network(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    exporters.export_tasks("harbor", [task], {}, tmp_path / "out", services)
    folder = tmp_path / "out" / "ada__words-1.bugfix"
    config = tomllib.loads((folder / "task.toml").read_text())
    assert config["schema_version"] == "1.4"
    assert config["agent"]["user"] == "mergemill"
    assert config["environment"]["docker_image"] == task.image
    verifier = config["verifier"]
    assert verifier["environment_mode"] == "separate"
    assert verifier["environment"]["network_mode"] == "no-network"
    assert "docker_image" not in verifier["environment"]  # Harbor would look for tests in that image
    assert verifier["collect"][0]["command"].startswith("out=/logs/artifacts/model.patch;")
    assert config["metadata"]["FAIL_TO_PASS"] == list(FAIL_TO_PASS)
    assert (folder / "tests" / "eval.sh").read_bytes() == services.artifacts.get(task.eval_script)
    assert "Wide gaps are miscounted" in (folder / "instruction.md").read_text()
    assert (folder / "tests" / "test.sh").stat().st_mode & 0o111


def test_the_solution_of_a_harbor_task_applies_the_gold_patch(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    exporters.export_tasks("harbor", [make_task(services, tmp_path)], {}, tmp_path / "out", services)
    script = (tmp_path / "out" / "ada__words-1.bugfix" / "solution" / "solve.sh").read_text()
    tree = TinyRepo(tmp_path / "testbed")
    tree.commit("Begin", BASE)
    subprocess.run(["bash", "-c", script.replace("cd /testbed", f"cd {tree.path}")], check=True)
    assert (tree.path / "words.py").read_text() == WORDS_RIGHT


def test_the_work_of_an_agent_is_collected_with_new_files_and_commits_without_caches(tmp_path: Path) -> None:
    tree = TinyRepo(tmp_path / "testbed")
    tree.commit("Begin", {**BASE, ".gitignore": "*.log\n"})
    tree.commit("An agent's own commit", {"words.py": WORDS_RIGHT})
    tree.write({"new.bin": b"\0\1", "trace.log": "x", "pkg/__pycache__/a.pyc": b"\0", "README.md": None})
    command = read_container_file("collect.sh").decode().replace("/testbed", str(tree.path))
    subprocess.run(["bash", "-c", command.replace("/logs/artifacts", str(tmp_path))], check=True)
    fresh = TinyRepo(tmp_path / "fresh")
    fresh.commit("Begin", {**BASE, ".gitignore": "*.log\n"})
    fresh.git("apply", str(tmp_path / "model.patch"))
    assert fresh.git("status", "--porcelain").split() == ["D", "README.md", "M", "words.py", "??", "new.bin"]
    assert (fresh.path / "words.py").read_text() == WORDS_RIGHT


def test_repositories_inside_of_the_tree_are_collected_as_files(tmp_path: Path) -> None:
    tree = TinyRepo(tmp_path / "testbed")
    tree.commit("Begin", BASE)
    for name in ("empty", "full"):
        TinyRepo(tree.path / name)
        (tree.path / name / "new.txt").write_text("new\n")
    for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "New"]):
        subprocess.run(["git", "-C", tree.path / "full", *words], check=True)
    command = read_container_file("collect.sh").decode().replace("/testbed", str(tree.path))
    subprocess.run(["bash", "-c", command.replace("/logs/artifacts", str(tmp_path))], check=True)
    fresh = TinyRepo(tmp_path / "fresh")
    fresh.commit("Begin", BASE)
    fresh.git("apply", str(tmp_path / "model.patch"))
    assert [(fresh.path / name / "new.txt").read_text() for name in ("empty", "full")] == ["new\n", "new\n"]


def test_an_agent_that_destroys_the_repository_submits_an_empty_patch(tmp_path: Path) -> None:
    tree = TinyRepo(tmp_path / "testbed")
    tree.commit("Begin", BASE)
    shutil.rmtree(tree.path / ".git")
    (tmp_path / "model.patch").symlink_to(tmp_path / "elsewhere")
    command = read_container_file("collect.sh").decode().replace("/testbed", str(tree.path))
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    subprocess.run(["bash", "-c", command.replace("/logs/artifacts", str(tmp_path))], check=True, env=environment)
    assert not (tmp_path / "model.patch").is_symlink()
    assert (tmp_path / "model.patch").read_bytes() == b""


def test_the_grader_needs_nothing_newer_than_python_3_6() -> None:
    ast.parse(read_container_file("grade.py"), feature_version=(3, 6))
