"""Dockerfile and tree of a bundle."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from backends.git import GitRepository
from dockerfiles.render import find_official_image, render_dockerfile
from exporters.build_context import write_build_context
from exporters.tree import write_tree
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
    assert 'ENV GREETING="say \\"\\$5\\""' in text
    assert "@sha256:" in text


@pytest.mark.docker
@pytest.mark.slow
def test_the_dockerfile_builds_a_clean_repository_of_one_commit(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task(services, tmp_path)
    write_build_context(task, tmp_path / "context", services)
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
