"""Which surroundings are tried for the tests of a change, and why."""

from __future__ import annotations

from pathlib import Path

from backends.git import GitRepository
from backends.tree import CommitTree
from builders.repair.edits import AddService, SetEnv, format_edit
from builders.repair.trials import edit_plan, list_trials
from taskdb.records import BuildPlan, Candidate, TestCommand
from tests import records
from tests.helpers import TinyRepo

SETTINGS = {"README.md": "Times are in Europe/Paris.\n", "src/zones.py": "A = 'Asia/Dubai'\n"}


def make_tree(tmp_path: Path, *, clock: str = "+0000") -> tuple[CommitTree, Candidate]:
    repo = TinyRepo(tmp_path)
    repo.write(SETTINGS)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "Begin", env={"GIT_AUTHOR_DATE": f"2024-03-01T12:00:00{clock}"})
    base = repo.git("rev-parse", "HEAD")
    candidate = records.make_candidate(records.make_pull_request(base_commit=base), merge_commit=base)
    return CommitTree(GitRepository(tmp_path), base), candidate


def list_reasons(tmp_path: Path, patches: str, *, clock: str = "+0000", zone: str = "UTC") -> dict[str, str]:
    trials = list_trials(patches, *make_tree(tmp_path, clock=clock), zone)
    return {" and ".join(map(format_edit, trial.edits)): trial.reason for trial in trials}


def test_zones_of_the_change_come_first_then_settings_then_common_ones(tmp_path: Path) -> None:
    assert list_reasons(tmp_path, "+    at = datetime(1, tz='Asia/Tokyo')\n") == {
        "set-env TZ=Asia/Tokyo": "the change names it",
        "set-env TZ=Europe/Paris": "README.md:1 names it",
        "set-env TZ=America/New_York": "many developers work in it",
        "set-env TZ=Europe/Berlin": "many developers work in it",
    }


def test_the_clock_of_the_author_is_a_reason(tmp_path: Path) -> None:
    reasons = list_reasons(tmp_path, "+strftime\n", clock="+0530", zone="Europe/Paris")
    assert "author was at +0530" in reasons["set-env TZ=Asia/Kolkata"]
    assert "set-env TZ=Europe/Paris" not in reasons


def test_a_change_about_something_else_is_not_tried(tmp_path: Path) -> None:
    assert list_reasons(tmp_path, "+    return greeting + name\n") == {}


def test_a_change_about_terminals_is_tried_in_one(tmp_path: Path) -> None:
    assert list(list_reasons(tmp_path, "+    if stream.isatty():\n")) == ["add-service terminal and set-env TERM=xterm"]


def test_a_trial_changes_variables_and_services_alone() -> None:
    plan = BuildPlan(
        language="python",
        language_version="3.11",
        exclude_newer="2024-03-01",
        system_packages=(),
        dependency_steps=("a",),
        source_steps=("b",),
        env=(("TZ", "UTC"), ("LANG", "C.UTF-8")),
        test=TestCommand(framework="pytest", argv=("pytest",)),
    )
    edited = edit_plan(plan, (SetEnv(name="TZ", value="Asia/Tokyo"), AddService(name="terminal")))
    assert edited.env == (("TZ", "Asia/Tokyo"), ("LANG", "C.UTF-8"))
    assert edited.services == ("terminal",)
    assert edited.model_copy(update={"env": plan.env, "services": ()}) == plan
