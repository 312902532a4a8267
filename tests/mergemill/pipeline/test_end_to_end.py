"""From a repository to bundles, through every command, as a newcomer types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from exporters.manifest import check_manifest
from tests.cli import run_mergemill, run_with_closed_pipe
from tests.command_server import SHORT_CERTIFICATES
from tests.mergemill.cli.test_closed_pipe import IMAGE_COMMANDS
from tests.sample import make_sample

NAME = "ada__greet-3.bugfix"
SUMMARY = [
    "event",
    "new",
    "mined",
    "candidates",
    "environments",
    "verified",
    "tasks",
    "certified",
    "rejected",
    "seconds",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the sample was run."""
    folder = tmp_path_factory.mktemp("whole")
    make_sample(folder / "ada__greet")
    complete = {"MERGEMILL_CERTIFY_EXPLOITS": "quick", "MERGEMILL_REPEATS": "3", SHORT_CERTIFICATES: ""}
    first = run_mergemill("run", "git:ada__greet", "--json", cwd=folder, **complete)
    assert first.exit_code == 0, first.stderr
    last = first.lines[-1]
    assert list(last) == SUMMARY
    assert (last["new"], last["mined"], last["candidates"], last["certified"]) == (14, 4, 2, 2)
    assert (last["tasks"], last["rejected"]) == ({"bugfix": 2}, {"no-source": 1, "no-base": 1})
    assert {line["event"] for line in first.lines[:-1]} == {"record"}
    assert len(first.lines) == 15
    return folder


@pytest.mark.docker
def test_the_same_run_again_finds_nothing_to_do(folder: Path) -> None:
    tasks = run_mergemill("tasks", "list", "--json", cwd=folder).lines
    again = run_mergemill("run", "git:ada__greet", "--json", cwd=folder)
    assert (again.exit_code, len(again.lines), again.lines[-1]["new"], again.lines[-1]["certified"]) == (0, 1, 0, 2)
    shown = run_mergemill("--quiet", "run", "git:ada__greet", cwd=folder)
    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, "", "")
    assert run_mergemill("tasks", "list", "--json", cwd=folder).lines == tasks


@pytest.mark.docker
def test_the_funnel_counts_stages_and_reasons(folder: Path) -> None:
    rows = run_mergemill("funnel", "git:ada__greet", "--json", cwd=folder).lines
    assert [(row["stage"], row["in"], row["out"], row["waiting"]) for row in rows] == [
        ("mine", 4, 2, 0),
        ("build", 2, 2, 0),
        ("verify", 2, 2, 0),
        ("judge", 2, 2, 0),
        ("derive", 2, 2, 0),
        ("certify", 2, 2, 0),
    ]
    shown = run_mergemill("funnel", cwd=folder).stdout
    assert "4 changes, 2 candidates, 2 of them certified (100 %)" in shown
    assert [line.split() for line in shown.splitlines() if "no-source" in line] == [
        ["mine", "1", "no-source", "ada__greet-2"]
    ]


@pytest.mark.docker
def test_why_shows_the_stages_of_a_task_and_the_reason_of_a_rejection(folder: Path) -> None:
    story = run_mergemill("why", NAME, "--json", cwd=folder).json
    assert [event["stage"] for event in story["events"]] == ["mine", "build", "verify", "judge", "derive", "certify"]
    assert story["tasks"] == [run_mergemill("tasks", "show", NAME, "--json", cwd=folder).json["id"]]
    assert (
        f"ada__greet-3 of git:{folder}/ada__greet: certified" in run_mergemill("why", "ada__greet-3", cwd=folder).stdout
    )
    assert (
        "rejected by mine, no-source: no source file is changed"
        in run_mergemill("why", "ada__greet-2", cwd=folder).stdout
    )


@pytest.mark.docker
def test_tasks_are_listed_searched_shown_and_counted(folder: Path) -> None:
    assert [row["name"] for row in run_mergemill("tasks", "list", "--json", cwd=folder).lines] == [
        NAME,
        "ada__greet-1.bugfix",
    ]
    assert [row["name"] for row in run_mergemill("tasks", "search", "gap", "--json", cwd=folder).lines] == [NAME]
    shown = run_mergemill("tasks", "show", NAME, "--json", cwd=folder).json
    assert shown["FAIL_TO_PASS"] == ["tests/test_words.py::test_wide_gaps"]
    assert len(shown["PASS_TO_PASS"]) == 3
    assert (shown["certified"], shown["license"], shown["repo"]) == (True, "MIT", "ada/greet")
    assert shown["certificate"]["gold"] == [1.0, 1.0, 1.0]
    assert run_mergemill("tasks", "stats", "--json", cwd=folder).json["status"] == {"certified": 2}
    answer = run_mergemill(
        "sql", "SELECT name FROM tasks WHERE status = 'certified' ORDER BY name", "--json", cwd=folder
    )
    assert answer.lines == [{"name": "ada__greet-1.bugfix"}, {"name": NAME}]


@pytest.mark.docker
def test_submissions_are_graded(folder: Path) -> None:
    gold = run_mergemill("grade", NAME, "--gold", "--json", cwd=folder).json
    assert list(gold) == [
        "task",
        "value",
        "resolved",
        "f2p_rate",
        "p2p_rate",
        "tampering",
        "explanation",
        "infrastructure_error",
        "verdicts",
        "evaluations",
        "control_bound",
        "worst_block_bound",
    ]
    assert (gold["value"], gold["resolved"], gold["tampering"], gold["infrastructure_error"]) == (1.0, True, [], None)
    noop = run_mergemill("grade", NAME, "--noop", "--json", cwd=folder).json
    assert (noop["value"], noop["f2p_rate"], noop["p2p_rate"]) == (0.0, 0.0, 1.0)
    patch = run_mergemill("tasks", "show", NAME, "--json", cwd=folder).json["patch"]
    (folder / "mine.patch").write_text(patch)
    assert run_mergemill("grade", NAME, "--patch", "mine.patch", "--json", cwd=folder).json["value"] == 1.0
    (folder / "model.patch").write_text(patch.replace("a/", "").replace("b/", "").rstrip("\n"))
    repaired = run_mergemill("grade", NAME, "--patch", "model.patch", "--json", cwd=folder).json
    assert repaired["value"] == 1.0
    assert repaired["explanation"].endswith(
        "tests pass; applied after: added missing last line feed, corrected the prefixes of paths"
    )


@pytest.mark.docker
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_patch_is_a_submission(folder: Path, content: str) -> None:
    (folder / "empty.patch").write_text(content)
    graded = run_mergemill("grade", NAME, "--patch", "empty.patch", "--json", cwd=folder)
    assert (graded.exit_code, graded.stderr) == (0, "")
    assert (graded.json["value"], graded.json["infrastructure_error"]) == (0.0, None)
    assert graded.json["explanation"].startswith("the patch is empty: 1 FAIL_TO_PASS and 0 PASS_TO_PASS tests do not")


@pytest.mark.docker
@pytest.mark.parametrize("form", ["swebench", "harbor"])
def test_an_export_is_complete_and_reproducible(form: str, folder: Path) -> None:
    first = run_mergemill("export", "--format", form, "--out", f"out-{form}", "--json", cwd=folder)
    again = run_mergemill("export", "--format", form, "--out", f"out-{form}", "--json", cwd=folder)
    assert first.exit_code == 0, first.stderr
    assert (first.json["id"], first.json["manifest_sha256"]) == (again.json["id"], again.json["manifest_sha256"])
    assert check_manifest(folder / f"out-{form}") == []
    manifest = json.loads((folder / f"out-{form}" / "manifest.json").read_text())
    assert [task["name"] for task in manifest["tasks"]] == ["ada__greet-1.bugfix", NAME]


@pytest.mark.docker
def test_a_certified_task_passes_its_audit(folder: Path) -> None:
    done = run_mergemill("audit", NAME, "--json", cwd=folder)
    assert done.exit_code == 0, done.stderr
    shown = done.json
    assert list(shown) == ["task", "id", "image", "clean", "skipped", "findings", "probes", "strength"]
    assert (shown["task"], shown["clean"], shown["skipped"], shown["findings"]) == (NAME, True, None, [])
    assert {row["name"]: row["value"] for row in shown["probes"] if row["value"]} == {"gold": 1.0}
    strength = shown["strength"]
    assert (strength["fail_to_pass"], strength["controls"], strength["score"]) == (1, 1, 1.0)
    assert strength["mutants"] == strength["mutants_detected"] > 0
    assert strength["variants"] == strength["variants_accepted"] > 0
    (listed,) = run_mergemill("tasks", "list", "--strength", "1:", "--json", cwd=folder).lines
    assert listed["name"] == NAME
    assert run_mergemill("tasks", "show", NAME, "--json", cwd=folder).json["strength"] == strength


@pytest.mark.docker
def test_images_are_clean_and_kept_while_tasks_need_them(folder: Path) -> None:
    audited = run_mergemill("images", "audit", "--json", cwd=folder)
    assert audited.exit_code == 0, audited.stderr
    assert [(line["task"], line["clean"]) for line in audited.lines] == [("ada__greet-1.bugfix", True), (NAME, True)]
    image = run_mergemill("tasks", "show", NAME, "--json", cwd=folder).json["image"]
    pruned = run_mergemill("images", "prune", "--json", cwd=folder)
    assert (pruned.exit_code, pruned.stdout) == (0, "")
    listed = {row["name"]: row["kind"] for row in run_mergemill("images", "list", "--json", cwd=folder).lines}
    assert listed[image] == "env"
    unknown = {
        row["name"] for row in run_mergemill("images", "prune", "--all", "--dry-run", "--json", cwd=folder).lines
    }
    assert image not in unknown
    assert all(name.startswith(("mergemill/env:", "mergemill/deps:")) for name in unknown)


@pytest.mark.docker
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=pytest.mark.slow) if command.startswith("audit") else command
        for command in IMAGE_COMMANDS
    ],
)
def test_a_closed_pipe_ends_a_command_on_images_quietly(command: str, folder: Path) -> None:
    # Each worker has a folder of its own, and may run any of the commands: none relies on what another one wrote.
    for name in re.findall(r"bundle-(\w+)", command):
        if not (folder / f"bundle-{name}").is_dir():
            assert run_mergemill("export", "--format", name, "--out", f"bundle-{name}", cwd=folder).exit_code == 0
    done = run_with_closed_pipe(command, folder)
    assert done.exit_code in (0, 141), done.stderr
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr
