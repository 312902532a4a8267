"""Dockerfile and tree of a bundle."""

from __future__ import annotations

import errno
import subprocess
import tarfile
from pathlib import Path

import pytest

import exporters
from backends.git import GitRepository
from dockerfiles.render import find_official_image, render_dockerfile
from exporters.build_context import write_build_context
from exporters.item import ExportItem
from exporters.manifest import check_manifest
from exporters.tree import read_tree, write_tree
from tests.containers import make_services
from tests.exporters.tasks import PLAN, make_task
from tests.helpers import TinyRepo


def test_the_archive_is_the_tree_of_the_commit(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    (repo.path / "run.sh").write_text("#!/bin/sh\n")
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("deep/er/file.txt")
    commit = repo.commit(
        "All sorts", {"deep/er/file.txt": b"\r\n\xff\0", ".gitattributes": "deep export-ignore\n", "ä": ""}
    )
    write_tree(GitRepository(repo.path), commit, tmp_path / "tree.tar.gz")
    write_tree(GitRepository(repo.path), commit, tmp_path / "again.tar.gz")
    assert (tmp_path / "tree.tar.gz").read_bytes() == (tmp_path / "again.tar.gz").read_bytes()
    unpacked = TinyRepo(tmp_path / "unpacked")
    with tarfile.open(tmp_path / "tree.tar.gz") as tar:
        assert {member.uid for member in tar} == {1000}
    subprocess.run(["tar", "-xzf", tmp_path / "tree.tar.gz", "-C", unpacked.path], check=True)
    unpacked.git("add", "-A", "-f")
    assert unpacked.git("write-tree") == repo.git("rev-parse", f"{commit}^{{tree}}")


def test_the_dockerfile_holds_the_plans_steps_in_order() -> None:
    plan = PLAN.model_copy(update={"dependency_steps": ("first", "second 'a b'"), "source_steps": ("third \\ $x",)})
    text = render_dockerfile(plan, name="n", base=find_official_image(plan), tree="tree.tar.gz")
    places = [
        text.index(word)
        for word in ("FROM ", "; first\n", "; second 'a b'\n", "ADD tree.tar.gz /testbed/", "; third \\ $x\n")
    ]
    assert places == sorted(places)
    assert 'RUN { "$PYTHON" -m compileall ' in text
    assert 'ENV GREETING="say \\"\\$5\\""' in text
    assert "@sha256:" in text


SETUP = b"diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# words\n+# Words\n"


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("format_name", exporters.FORMATS)
def test_a_base_tree_is_packed_once_for_all_tasks_that_start_from_it(
    format_name: str, has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[Path] = []

    def count(repository: GitRepository, commit: str, path: Path) -> None:
        packed.append(path)
        write_tree(repository, commit, path)

    monkeypatch.setattr("exporters.tree.write_tree", count)
    if not has_links:
        monkeypatch.setattr("os.link", forbid_link)
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    tasks = [task.model_copy(update={"name": f"ada__words-{number}.bugfix"}) for number in range(1, 7)]
    setup = services.artifacts.put(SETUP)
    tasks[1:4:2] = [task.model_copy(update={"setup_patch": setup}) for task in tasks[1:4:2]]
    out = tmp_path / "out"
    exporters.export_tasks(format_name, tasks, {}, out, services)
    assert len(packed) == 2
    archives = sorted(out.rglob("tree.tar.gz"))
    assert len(archives) == len(tasks)
    titles = [dict(read_tree(archive))["README.md"] for archive in archives]
    assert [title == b"# Words\n" for title in titles] == [False, True, False, True, False, False]
    assert {archive.stat().st_mode & 0o777 for archive in archives} == {0o644}
    assert len({archive.stat().st_ino for archive in archives}) == (2 if has_links else len(tasks))
    assert check_manifest(out) == []


def forbid_link(*_: object, **__: object) -> None:
    raise PermissionError(errno.EPERM, "no links here")


@pytest.mark.docker
@pytest.mark.slow
def test_the_dockerfile_builds_a_clean_repository_of_one_commit(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    write_build_context(ExportItem(task=task, certificate=None), tmp_path / "context", services)
    from builders.bases import ensure_base  # noqa: PLC0415 - only this test needs a base

    base = ensure_base("python", "3.11", services).name
    tag = "mergemill-test/recipe:1"
    try:
        build = ["docker", "build", "--quiet", "--network", "none", "--build-arg", f"BASE={base}", "--tag", tag, "."]
        subprocess.run(
            build,
            cwd=tmp_path / "context",
            check=True,
            capture_output=True,
            env={"DOCKER_BUILDKIT": "0", "PATH": "/usr/bin:/bin"},
        )
        script = (
            "git status --porcelain && git rev-list --all --count && stat -c %U words.py && echo $GREETING && python -V"
        )
        process = subprocess.run(
            ["docker", "run", "--rm", tag, "bash", "-c", script], check=True, capture_output=True, text=True
        )
        assert process.stdout.splitlines()[:3] == ["1", "mergemill", 'say "$5"']
        assert process.stdout.splitlines()[3].startswith("Python 3.11")
    finally:
        subprocess.run(["docker", "rmi", "--force", tag], check=False, capture_output=True)
