"""Quotas of repositories: what is left out stays pending, is shown as waiting, and is taken once they are raised."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from core.config import Settings
from mergemill.execution.quotas import list_waiting, load_quotas
from mergemill.pipeline.pipeline import PipelineRun
from taskdb.records import Stage
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.mergemill.stages import FakeStages, mine_changes, run
from tests.sample import make_sample


def run_with_quotas(folder: Path, stages: FakeStages, **quotas: int) -> PipelineRun:
    """Run all of 8 changes, 6 of them candidates, of one repository."""
    settings = Settings(db=f"sqlite:///{folder}/m.db", **quotas)
    with Store.open(settings.storage.db) as store:
        limits = load_quotas(store, settings.quota)
    return run(folder, stages, workers=1, mine=partial(mine_changes, changes=8), quotas=limits)


def find_waiting(folder: Path, **quotas: int) -> list[dict[str, Any]]:
    settings = Settings(db=f"sqlite:///{folder}/m.db", **quotas)
    with Store.open(settings.storage.db) as store:
        return list_waiting(store, settings.quota)


def list_built(stages: FakeStages) -> list[str]:
    return [name for stage, name in stages.calls if stage is Stage.BUILD]


def test_no_more_changes_of_a_repository_are_begun_in_all_runs(tmp_path: Path) -> None:
    faults: dict[tuple[Stage, str], Exception | str] = {(Stage.BUILD, "ada__greet-8"): "build-failed"}
    first, again, raised = FakeStages(faults), FakeStages(), FakeStages()
    done = run_with_quotas(tmp_path, first, quota_changes=2)
    assert list_built(first) == ["ada__greet-8", "ada__greet-7"]
    assert done.quotas.format_left_out() == "waiting because of quotas: 4 changes of 1 repository (ada/greet 4)"
    assert done.exit_code == 0
    run_with_quotas(tmp_path, again, quota_changes=2)
    assert again.calls == []
    assert find_waiting(tmp_path, quota_changes=2) == [
        {"repo": "ada/greet", "quota": "--quota-changes 2", "waiting": 4}
    ]
    assert find_waiting(tmp_path, quota_changes=3) == find_waiting(tmp_path) == []
    run_with_quotas(tmp_path, raised, quota_changes=3)
    assert list_built(raised) == ["ada__greet-5"]


def test_a_change_in_progress_continues_beyond_the_quota_of_changes(tmp_path: Path) -> None:
    interrupted = FakeStages({(Stage.VERIFY, "ada__greet-8"): KeyError("x")})
    run_with_quotas(tmp_path, interrupted, quota_changes=1)
    continued = FakeStages()
    run_with_quotas(tmp_path, continued, quota_changes=1)
    assert [name for _, name in continued.calls] == ["ada__greet-8"] * 4


def test_a_repository_with_enough_tasks_takes_no_more_changes(tmp_path: Path) -> None:
    first, again, raised = FakeStages(), FakeStages(), FakeStages()
    done = run_with_quotas(tmp_path, first, quota_tasks=2)
    assert done.n_certified in (2, 3, 4)  # those in progress are finished
    assert len(list_built(first)) == done.n_certified
    run_with_quotas(tmp_path, again, quota_tasks=2)
    assert again.calls == []
    (row,) = find_waiting(tmp_path, quota_tasks=2)
    assert row == {"repo": "ada/greet", "quota": "--quota-tasks 2", "waiting": 6 - done.n_certified}
    run_with_quotas(tmp_path, raised, quota_tasks=9)
    assert len(list_built(first)) + len(list_built(raised)) == 6


def test_the_commands_show_what_waits(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada" / "greet")
    folder = tmp_path / "ada"
    words = ("run", "git:greet", "--kind", "review")
    done = run_mergemill(*words, "--quota-changes", "1", cwd=folder)
    assert done.exit_code == 0
    assert "mergemill: waiting because of quotas: 1 change of 1 repository (ada/greet 1)" in done.stderr
    waiting = {"repo": "ada/greet", "quota": "--quota-changes 1", "waiting": 1}
    status = run_mergemill("status", "--json", "--quota-changes", "1", "--sandbox", "bubblewrap", cwd=folder).json
    assert status["quotas"] == [waiting]
    assert "--quota-changes 1" in run_mergemill("funnel", "--quota-changes", "1", cwd=folder).stdout
    assert "--quota-changes" not in run_mergemill("funnel", cwd=folder).stdout
    stories = {
        name: run_mergemill("why", name, "--json", "--quota-changes", "1", cwd=folder).json.get("waiting_for")
        for name in ("ada__greet-3", "ada__greet-1", "ada__greet-2")
    }
    assert stories == {"ada__greet-3": None, "ada__greet-1": "--quota-changes 1", "ada__greet-2": None}
    assert "waits because of a quota" in run_mergemill("why", "ada__greet-1", "--quota-changes", "1", cwd=folder).stdout
    run_mergemill(*words, cwd=folder)
    assert len(run_mergemill("tasks", "list", "--json", cwd=folder).lines) == 4
