"""From a repository to bundles, through every command, as a newcomer types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exporters.manifest import check
from tests.cli import mergemill
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
    first = mergemill("run", "git:ada__greet", "--json", cwd=folder)
    assert first.code == 0, first.err
    last = first.lines[-1]
    assert list(last) == SUMMARY
    assert (last["new"], last["mined"], last["candidates"], last["certified"]) == (14, 4, 2, 2)
    assert (last["tasks"], last["rejected"]) == ({"bugfix": 2}, {"no-source": 1, "no-base": 1})
    assert {line["event"] for line in first.lines[:-1]} == {"record"}
    assert len(first.lines) == 15
    return folder


@pytest.mark.docker
def test_the_same_run_again_finds_nothing_to_do(folder: Path) -> None:
    again = mergemill("run", "git:ada__greet", "--json", cwd=folder)
    assert (again.code, len(again.lines), again.lines[-1]["new"], again.lines[-1]["certified"]) == (0, 1, 0, 2)
    told = mergemill("--quiet", "run", "git:ada__greet", cwd=folder)
    assert (told.code, told.out, told.err) == (0, "", "")


@pytest.mark.docker
def test_the_funnel_tells_how_far_and_why_not(folder: Path) -> None:
    rows = mergemill("funnel", "git:ada__greet", "--json", cwd=folder).lines
    assert [(row["stage"], row["in"], row["out"], row["waiting"]) for row in rows] == [
        ("mine", 4, 2, 0), ("build", 2, 2, 0), ("verify", 2, 2, 0), ("judge", 2, 2, 0),
        ("derive", 2, 2, 0), ("certify", 2, 2, 0),
    ]  # fmt: skip
    told = mergemill("funnel", cwd=folder).out
    assert "4 changes, 2 candidates, 2 certified tasks (100 %)" in told
    assert [line.split() for line in told.splitlines() if "no-source" in line] == [
        ["mine", "1", "no-source", "ada__greet-2"]
    ]


@pytest.mark.docker
def test_why_tells_a_tasks_way_and_a_rejections_reason(folder: Path) -> None:
    story = mergemill("why", NAME, "--json", cwd=folder).json
    assert [event["stage"] for event in story["events"]] == ["mine", "build", "verify", "judge", "derive", "certify"]
    assert story["tasks"] == [mergemill("tasks", "show", NAME, "--json", cwd=folder).json["id"]]
    assert "ada__greet-3 of git:ada__greet: certified" in mergemill("why", "ada__greet-3", cwd=folder).out
    assert "rejected by mine, no-source: no source file is changed" in mergemill("why", "ada__greet-2", cwd=folder).out


@pytest.mark.docker
def test_tasks_are_listed_searched_shown_counted_and_asked_for(folder: Path) -> None:
    assert [row["name"] for row in mergemill("tasks", "list", "--json", cwd=folder).lines] == [
        NAME,
        "ada__greet-1.bugfix",
    ]
    assert [row["name"] for row in mergemill("tasks", "search", "gap", "--json", cwd=folder).lines] == [NAME]
    shown = mergemill("tasks", "show", NAME, "--json", cwd=folder).json
    assert shown["FAIL_TO_PASS"] == ["tests/test_words.py::test_wide_gaps"]
    assert len(shown["PASS_TO_PASS"]) == 3
    assert (shown["certified"], shown["license"], shown["repo"]) == (True, "MIT", "ada/greet")
    assert mergemill("tasks", "stats", "--json", cwd=folder).json["status"] == {"certified": 2}
    asked = mergemill("sql", "SELECT name FROM tasks WHERE status = 'certified' ORDER BY name", "--json", cwd=folder)
    assert asked.lines == [{"name": "ada__greet-1.bugfix"}, {"name": NAME}]


@pytest.mark.docker
def test_submissions_are_graded(folder: Path) -> None:
    gold = mergemill("grade", NAME, "--gold", "--json", cwd=folder).json
    assert list(gold) == [
        "task", "value", "resolved", "f2p_rate", "p2p_rate", "tampering", "explanation", "infrastructure_error",
    ]  # fmt: skip
    assert (gold["value"], gold["resolved"], gold["tampering"], gold["infrastructure_error"]) == (1.0, True, [], None)
    noop = mergemill("grade", NAME, "--noop", "--json", cwd=folder).json
    assert (noop["value"], noop["f2p_rate"], noop["p2p_rate"]) == (0.0, 0.0, 1.0)
    (folder / "mine.patch").write_text(mergemill("tasks", "show", NAME, "--json", cwd=folder).json["patch"])
    assert mergemill("grade", NAME, "--patch", "mine.patch", "--json", cwd=folder).json["value"] == 1.0


@pytest.mark.docker
@pytest.mark.parametrize("form", ["swebench", "harbor"])
def test_a_bundle_is_written_whole_and_the_same_again(form: str, folder: Path) -> None:
    first = mergemill("export", "--format", form, "--out", f"out-{form}", "--json", cwd=folder)
    again = mergemill("export", "--format", form, "--out", f"out-{form}", "--json", cwd=folder)
    assert first.code == 0, first.err
    assert (first.json["id"], first.json["manifest_sha256"]) == (again.json["id"], again.json["manifest_sha256"])
    assert check(folder / f"out-{form}") == []
    manifest = json.loads((folder / f"out-{form}" / "manifest.json").read_text())
    assert [task["name"] for task in manifest["tasks"]] == ["ada__greet-1.bugfix", NAME]


@pytest.mark.docker
def test_a_task_stands_its_audit(folder: Path) -> None:
    done = mergemill("audit", NAME, "--json", cwd=folder)
    assert done.code == 0, done.err
    told = done.json
    assert list(told) == ["task", "id", "image", "clean", "skipped", "findings", "probes", "strength"]
    assert (told["task"], told["clean"], told["skipped"], told["findings"]) == (NAME, True, None, [])
    assert {row["name"]: row["value"] for row in told["probes"] if row["value"]} == {"gold": 1.0}
    assert told["strength"] == {"fail_to_pass": 1, "twins": 1, "share": 1.0}


@pytest.mark.docker
def test_images_are_clean_listed_and_kept_as_long_as_tasks_need_them(folder: Path) -> None:
    audited = mergemill("images", "audit", "--json", cwd=folder)
    assert audited.code == 0, audited.err
    assert [(line["task"], line["clean"]) for line in audited.lines] == [("ada__greet-1.bugfix", True), (NAME, True)]
    image = mergemill("tasks", "show", NAME, "--json", cwd=folder).json["image"]
    pruned = mergemill("images", "prune", "--json", cwd=folder)
    assert (pruned.code, pruned.out) == (0, "")
    listed = {row["name"]: row["kind"] for row in mergemill("images", "list", "--json", cwd=folder).lines}
    assert listed[image] == "env"
    unknown = {row["name"] for row in mergemill("images", "prune", "--all", "--dry-run", "--json", cwd=folder).lines}
    assert image not in unknown
    assert all(name.startswith(("mergemill/env:", "mergemill/deps:")) for name in unknown)
