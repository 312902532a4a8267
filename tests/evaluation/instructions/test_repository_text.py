"""A text in a file of the repository is no part of the difference, whatever the agent does to the file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.instructions.repository_text import render_addition, render_cut, render_text
from samplers.rollouts.container import AddedText, RolloutContainer
from samplers.subjects.subject import Subject
from tests.samplers.guidance import GUIDANCE

TEXT = GUIDANCE.repository
OWN = "# Project\n\nRun the tests.\n"
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


class TextRepository:
    """A repository, the copy of its `.git` that differences are made from, and the folder with the text."""

    def __init__(self, root: Path, content: str | None, name: str = "AGENTS.md") -> None:
        self.tree, self.base, self.folder = root / "my tree", root / "base.git", root / "text"
        self.file = self.tree / name
        (self.tree / "docs").mkdir(parents=True)
        self.folder.mkdir()
        (self.tree / "code.py").write_text("a = 1\n")
        if content is not None:
            self.file.write_bytes(content.encode())
        self.run("git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm base")
        self.run(f"cp -a .git {self.base}")

    def run(self, script: str, **env: str) -> str:
        """Run a script in the tree and return its output."""
        result = subprocess.run(
            ["bash", "-c", script],
            cwd=self.tree,
            env=os.environ | GIT | env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def add_text(self, path: str = "AGENTS.md") -> None:
        """Append the text to a file."""
        (self.folder / "text").write_bytes(render_text(TEXT))
        self.run(render_addition(str(self.tree), path, str(self.folder)))

    def read_patch(self) -> str:
        """Return the difference, made as containers make it."""
        env = {"GIT_DIR": str(self.base), "GIT_WORK_TREE": str(self.tree), "GIT_INDEX_FILE": str(self.folder / "index")}
        add = "rm -f $GIT_INDEX_FILE; git read-tree HEAD && git add -A -- . && "
        return self.run(f"{{ {add}{render_cut(str(self.folder))} && git diff --cached HEAD; }}", **env)


@pytest.mark.parametrize("content", [None, OWN, OWN.rstrip(), "", "one\r\ntwo\r\n"])
def test_the_text_follows_that_of_the_repository_and_is_in_no_difference(content: str | None, tmp_path: Path) -> None:
    repository = TextRepository(tmp_path, content)
    repository.add_text()
    written = repository.file.read_bytes().decode()
    assert written.startswith(content or "")
    assert written.endswith(f"{TEXT}\n")
    assert repository.read_patch() == ""
    (repository.tree / "code.py").write_text("a = 2\n")
    assert "+a = 2" in (patch := repository.read_patch())
    assert patch.count("diff --git") == 1


def test_a_repository_without_an_added_text_has_its_whole_difference(tmp_path: Path) -> None:
    repository = TextRepository(tmp_path, OWN)
    repository.file.write_text(f"{OWN}More.\n")
    assert "+More." in repository.read_patch()


def edit_before(text: str) -> str:
    return text.replace("Run the tests.", "Run the tests twice.")


def edit_after(text: str) -> str:
    return f"{text}- Added by the agent.\n"


def edit_inside(text: str) -> str:
    return text.replace("Keep {{ braces }}", "Drop {{ braces }}").replace("Run the tests.", "Run the tests twice.")


@pytest.mark.parametrize(
    ("edit", "added"),
    [
        (edit_before, ["Run the tests twice."]),
        (edit_after, ["- Added by the agent."]),
        (lambda _: "# All new\n", ["# All new"]),
        (lambda text: text.replace(f"{TEXT}\n", ""), []),
    ],
)
def test_an_edit_of_the_agent_is_kept_without_the_text(
    edit: Callable[[str], str], added: list[str], tmp_path: Path
) -> None:
    repository = TextRepository(tmp_path, OWN)
    repository.add_text()
    repository.file.write_text(edit(repository.file.read_text()))
    patch = repository.read_patch()
    lines = [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert [line for line in lines if line] == added
    assert "Rules of the repository" not in patch


def test_lines_of_the_text_that_are_left_of_it_are_cut_out(tmp_path: Path) -> None:
    repository = TextRepository(tmp_path, OWN)
    repository.add_text()
    repository.file.write_text(edit_inside(repository.file.read_text()))
    patch = repository.read_patch()
    assert "+Run the tests twice." in patch
    assert "+- Drop {{ braces }}" in patch
    assert "Rules of the repository" not in patch
    assert "make repository" not in patch


def test_a_file_that_only_the_text_made_is_no_new_file(tmp_path: Path) -> None:
    repository = TextRepository(tmp_path, None)
    repository.add_text("docs/AGENTS.md")
    assert (repository.tree / "docs/AGENTS.md").read_text() == f"{TEXT}\n"
    assert repository.run("git status --short") == ""
    assert repository.read_patch() == ""
    (repository.tree / "docs/AGENTS.md").write_text(edit_after(f"{TEXT}\n"))
    assert "+- Added by the agent." in (patch := repository.read_patch())
    assert "Rules of the repository" not in patch


def test_the_file_may_be_removed_committed_and_replaced(tmp_path: Path) -> None:
    repository = TextRepository(tmp_path, OWN)
    repository.add_text()
    repository.run("git add -A && git -c user.name=a -c user.email=a@b commit -qm all")
    assert repository.read_patch() == ""
    repository.file.unlink()
    assert "deleted file" in repository.read_patch()
    repository.file.mkdir()
    (repository.file / "new.md").write_text("new\n")
    assert "+new" in repository.read_patch()


def test_a_link_to_another_file_stays_one(tmp_path: Path) -> None:
    repository = TextRepository(tmp_path, OWN)
    (repository.tree / "CLAUDE.md").symlink_to("AGENTS.md")
    repository.run(f"git add -A && git -c user.name=a -c user.email=a@b commit -qm link && rm -r {repository.base}")
    repository.run(f"cp -a .git {repository.base}")
    repository.add_text("CLAUDE.md")
    assert (repository.tree / "CLAUDE.md").is_symlink()
    assert repository.file.read_text() == f"{OWN}\n{TEXT}\n"
    assert repository.read_patch() == ""


def test_a_text_that_the_start_appends_is_not_appended_again() -> None:
    no_shell: Any = None
    subject = Subject(id="", name="", environment="", statement="", workdir="/testbed")
    added = AddedText(path="AGENTS.md", text="- Be kind.")
    container = RolloutContainer(shell=no_shell, subject=subject, start_seconds=0.0, added=added)
    container.add_repository_text("AGENTS.md", "- Be kind.")
    with pytest.raises(AttributeError):
        container.add_repository_text("AGENTS.md", "- Be brief.")
