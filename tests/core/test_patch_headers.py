"""Names in headers of patches, on patches that git writes of paths in which ` b/` stands."""

from __future__ import annotations

import subprocess

import pytest

from core.patch_headers import leave_out_files, parse_patch_set, read_path, read_paths, split_sections
from evaluation.script.render import extract_config_patch, leave_out_config
from mergemill.web.diffs import render_patch
from miner.tags.diffs import list_source_lines
from samplers.trajectories.measures import list_changed_paths
from verifiers.statement import find_leaks

BEFORE = {
    "x b/mod.py": "a = 1\n",
    "x b/gone.py": "gone = 1\n",
    "x b/bin.dat": "\0\1",
    "x b/moved.txt": "".join(f"line {n}\n" for n in range(30)),
    "x b/run.sh": "run\n",
    'x b/"quoted" naïve b/y.py': "a = 1\n",
    "plain.py": "a = 1\n",
}
AFTER = {
    **{path: text for path, text in BEFORE.items() if path not in ("x b/gone.py", "x b/moved.txt")},
    "x b/mod.py": "a = 2\n",
    "x b/bin.dat": "\0\2",
    "x b/to b/moved b/x": BEFORE["x b/moved.txt"],
    "x b/new.py": "new = 1\n",
    "x b/empty.py": "",
    'x b/"quoted" naïve b/y.py': "a = 2\n",
    "plain.py": "a = 2\n",
}
PATHS = {path for path in (BEFORE | AFTER) if BEFORE.get(path) != AFTER.get(path)} - {"x b/moved.txt"} | {"x b/run.sh"}


@pytest.fixture(scope="module")
def patch(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("repository")

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout

    def write(files: dict[str, str]) -> None:
        for path in folder.rglob("*"):
            if path.is_file() and ".git" not in path.parts:
                path.unlink()
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    git("init", "-q")
    write(BEFORE)
    git("add", "-A")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Begin")
    write(AFTER)
    (folder / "x b/run.sh").chmod(0o755)
    git("add", "-A")
    return git("diff", "--cached", "-M", "--binary")


def test_both_names_of_each_section_are_read(patch: str) -> None:
    sections = split_sections(patch)
    assert "".join(sections) == patch
    assert {read_path(section) for section in sections} == PATHS
    moved = next(section for section in sections if "\nrename from " in section)
    assert read_paths(moved) == ("x b/moved.txt", "x b/to b/moved b/x")
    assert read_path("no patch b/x\n") == ""


def test_unidiff_finds_the_names_and_lines(patch: str) -> None:
    files = {file.path: file for file in parse_patch_set(patch)}
    quoted = next(path for path in files if "quoted" in path)
    assert files.keys() - {quoted} == PATHS - {'x b/"quoted" naïve b/y.py'}
    assert (files["x b/mod.py"].source_file, files["x b/mod.py"].target_file) == ("a/x b/mod.py", "b/x b/mod.py")
    assert [line.value for hunk in files["x b/mod.py"] for line in hunk if line.is_added] == ["a = 2\n"]
    assert files["x b/new.py"].is_added_file
    assert files["x b/gone.py"].is_removed_file


def test_files_are_left_out_by_their_names(patch: str) -> None:
    rest = leave_out_files(patch.encode(), {"x b/mod.py", "x b/to b/moved b/x"}).decode()
    assert {read_path(section) for section in split_sections(rest)} == PATHS - {"x b/mod.py", "x b/to b/moved b/x"}


def test_readers_of_patches_name_the_same_files(patch: str) -> None:
    changed = {path for path, _, _ in list_source_lines(patch)}
    assert changed == {path for path in PATHS if path.endswith("b/y.py") or path in ("x b/mod.py", "x b/gone.py")} | {
        "x b/new.py",
        "plain.py",
    }
    assert set(list_changed_paths(patch.encode())) == PATHS
    assert {file.path for file in render_patch(patch).files} >= {"x b/mod.py", "x b/to b/moved b/x", "x b/gone.py"}
    config = "".join(section for section in split_sections(patch) if read_path(section) == "x b/mod.py")
    config = config.replace("x b/mod.py", "x b/pyproject.toml")
    assert extract_config_patch((patch + config).encode()).decode() == config
    assert leave_out_config((patch + config).encode()).decode() == patch
    lines = "".join(f"+line_{n} = compute({n})\n" for n in range(4))
    head = "diff --git a/x b/m.py b/x b/m.py\nnew file mode 100644\n--- /dev/null\n+++ b/x b/m.py\t\n"
    new = f"{head}@@ -0,0 +1,4 @@\n{lines}"
    assert [quote for quote, _ in find_leaks("Use line_2 = compute(2) then", new.encode(), "ada/x", frozenset())]
