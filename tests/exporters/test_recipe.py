"""A bundle's Dockerfile and tree."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

from backends.git import Repository
from dockerfiles.render import official_image, render
from exporters.recipe import write_recipe
from exporters.tree import write_tree
from tests.boxes import make_services
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
    write_tree(Repository(repo.path), commit, tmp_path / "tree.tar.gz")
    write_tree(Repository(repo.path), commit, tmp_path / "again.tar.gz")
    assert (tmp_path / "tree.tar.gz").read_bytes() == (tmp_path / "again.tar.gz").read_bytes()
    unpacked = TinyRepo(tmp_path / "unpacked")
    with tarfile.open(tmp_path / "tree.tar.gz") as tar:
        assert {member.uid for member in tar} == {1000}
    subprocess.run(["tar", "-xzf", tmp_path / "tree.tar.gz", "-C", unpacked.path], check=True)
    unpacked.git("add", "-A", "-f")
    assert unpacked.git("write-tree") == repo.git("rev-parse", f"{commit}^{{tree}}")


def test_the_dockerfile_holds_the_plans_steps_in_order() -> None:
    plan = PLAN.model_copy(update={"dependency_steps": ("first", "second 'a b'"), "source_steps": ("third \\ $x",)})
    text = render(plan, name="n", base=official_image(plan), tree="tree.tar.gz")
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
    write_recipe(task, tmp_path / "context", services)
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
        look = (
            "git status --porcelain && git rev-list --all --count && stat -c %U words.py && echo $GREETING && python -V"
        )
        said = subprocess.run(
            ["docker", "run", "--rm", tag, "bash", "-c", look], check=True, capture_output=True, text=True
        )
        assert said.stdout.splitlines()[:3] == ["1", "mergemill", 'say "$5"']
        assert said.stdout.splitlines()[3].startswith("Python 3.11")
    finally:
        subprocess.run(["docker", "rmi", "--force", tag], check=False, capture_output=True)
