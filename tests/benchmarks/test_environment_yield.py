"""Certified tasks per core-hour over a list of repositories."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import environment_yield
from benchmarks.environment_yield import RATIO_GOAL, RepositoryYield, compare, main, read_list, read_rows

DRAWS = Path(environment_yield.__file__).parent / "draws"
NUMBERS = {"python": 5, "javascript": 4, "typescript": 4, "go": 4, "rust": 4, "java": 3, "c": 3, "cpp": 3}

PROGRAM = """#!/bin/sh
# Stands for mergemill: notes its arguments, and each run adds two tasks, three environments and two verified changes.
echo "$@" >> "$0.calls"
case "$*" in
    *"run git:"*slow__one*) exec sleep 60 ;;
    *broken/one*) exit 2 ;;
    *offline/one*) exit 75 ;;
esac
n=$(grep -c -e "--quiet run" "$0.calls")
case "$1" in
    tasks) for _ in $(seq $n); do
        echo '{"kind": "bugfix", "status": "certified"}'; echo '{"kind": "injected", "status": "rejected"}'; done ;;
    funnel) echo "{\\"stage\\": \\"build\\", \\"out\\": $((3 * n))}"
            echo "{\\"stage\\": \\"verify\\", \\"out\\": $((2 * n))}" ;;
esac
"""


def make_yield(repository: str, certified: int, cpu_seconds: float) -> RepositoryYield:
    return RepositoryYield(
        repository=repository,
        language="python",
        environments=1,
        verified=1,
        derived={"bugfix": certified},
        certified={"bugfix": certified},
        cpu_seconds=cpu_seconds,
        wall_seconds=1.0,
        is_complete=True,
    )


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a program in place of mergemill; each command but those that list costs 10 CPU seconds."""
    path = tmp_path / "program"
    path.write_text(PROGRAM)
    path.chmod(0o755)

    def read_cpu_seconds() -> float:
        calls = Path(f"{path}.calls")
        return 10.0 * (calls.read_text().count("--quiet") if calls.exists() else 0)

    @contextmanager
    def start(folder: Path, **options: Any) -> Iterator[SimpleNamespace]:
        del folder, options
        yield SimpleNamespace(host="unix:///none", group=SimpleNamespace(read_cpu_seconds=read_cpu_seconds))

    monkeypatch.setattr(environment_yield, "start_engine", start)
    # Of a shell in the background programs inherit that they ignore SIGINT, and are killed after these seconds.
    monkeypatch.setattr(environment_yield, "INTERRUPT_SECONDS", 1.0)
    monkeypatch.setenv("DOCKER_HOST", "unix:///none")
    return path


def write_list(folder: Path, *repositories: str) -> Path:
    path = folder / "list.tsv"
    path.write_text("# a list\n" + "".join(f"python\t{name}\n" for name in repositories))
    return path


def test_the_draw_follows_from_its_candidates() -> None:
    candidates = read_list(DRAWS / "environments-1-candidates.tsv")
    drawn = read_list(DRAWS / "environments-1.tsv")
    missing = {"fast-csv/fast-csv"}  # could not be had
    expected = []
    for language, number in NUMBERS.items():
        names = [name for other, name in candidates if other == language and name not in missing]
        names.sort(key=lambda name: hashlib.sha256(f"environments-1 {name}".encode()).hexdigest())
        expected += names[:number]
    assert sorted(name for _, name in drawn) == sorted(expected)
    assert len({language for language, _ in drawn}) == len(NUMBERS)


def test_tasks_and_seconds_of_each_repository_are_kept(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, work = write_list(tmp_path, "a/one", "b/two"), tmp_path / "work"
    assert main([str(path), "--work", str(work), "--program", str(program), "--per-environment", "15"]) == 0
    calls = [call for call in Path(f"{program}.calls").read_text().splitlines() if call.startswith("--quiet")]
    assert [call.split()[1] for call in calls] == ["run", "derive", "certify", "derive", "certify"] * 2
    assert "git:https://github.com/a/one --limit 1 --kind bugfix" in calls[0]
    for number, call in ((10, calls[1]), (15, calls[3])):
        assert f"--from environments --per-environment {number} --kind injected,rebuild" in call
    row = read_rows(work)["b/two"]
    assert (row.environments, row.verified, row.n_certified, row.cpu_seconds) == (3, 2, 1, 50)
    assert (row.derived, row.certified) == ({"bugfix": 1, "injected": 1}, {"bugfix": 1})
    assert "| all 2 | | 6 | | | 2 | 100 | 72 |" in capsys.readouterr().out
    # What was measured is not measured again.
    assert main([str(path), "--work", str(work), "--program", str(program)]) == 0
    assert Path(f"{program}.calls").read_text().count("--quiet") == len(calls)


def test_a_repository_that_takes_too_much_is_cut_off(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clones = tmp_path / "clones"
    (clones / "slow__one").mkdir(parents=True)
    path, work = write_list(tmp_path, "slow/one"), tmp_path / "work"
    options = ["--program", str(program), "--clones", str(clones), "--cpu-seconds", "5", "--per-environment", "5"]
    assert main([str(path), "--work", str(work), *options]) == 0
    calls = Path(f"{program}.calls").read_text().splitlines()
    assert [call.split()[1] for call in calls if call.startswith("--quiet")] == ["run"]
    assert not read_rows(work)["slow/one"].is_complete
    assert "slow/one (cut off)" in capsys.readouterr().out


def test_an_interrupted_measurement_counts_what_it_had_used(program: Path, tmp_path: Path) -> None:
    path, work = write_list(tmp_path, "a/one"), tmp_path / "work"
    work.mkdir()
    counts = {"environments": 1, "verified": 0, "derived": {}, "certified": {}}
    begun = {"repository": "a/one", "before": counts, "cpu_seconds": 7.0, "wall_seconds": 100.0}
    (work / "begun.json").write_text(json.dumps(begun))
    assert main([str(path), "--work", str(work), "--program", str(program)]) == 0
    row = read_rows(work)["a/one"]
    assert (row.cpu_seconds, row.environments, row.verified) == (17, 2, 2)
    assert row.wall_seconds > 100


def test_an_interruption_ends_the_command(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, work = write_list(tmp_path, "slow__one/two"), tmp_path / "work"
    started = []

    class NotedProcess(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

        def wait(self, timeout: float | None = None) -> int:
            if timeout == environment_yield.POLL_SECONDS:
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", NotedProcess)
    with pytest.raises(KeyboardInterrupt):
        main([str(path), "--work", str(work), "--program", str(program)])
    assert started[-1].returncode is not None
    assert read_rows(work) == {}


@pytest.mark.parametrize(("repository", "code"), [("broken/one", 2), ("offline/one", 75)])
def test_what_a_later_run_may_give_ends_the_measurement_without_a_row(
    program: Path, tmp_path: Path, repository: str, code: int
) -> None:
    path, work = write_list(tmp_path, repository), tmp_path / "work"
    with pytest.raises(SystemExit, match=f"{repository}: run ended with {code}"):
        main([str(path), "--work", str(work), "--program", str(program)])
    assert read_rows(work) == {}


def test_the_ratio_is_that_of_the_sums_over_repositories_of_both() -> None:
    now = {"a/a": make_yield("a/a", 90, 3600.0), "b/b": make_yield("b/b", 10, 3600.0), "c/c": make_yield("c/c", 900, 1)}
    before = {"a/a": make_yield("a/a", 5, 3600.0), "b/b": make_yield("b/b", 5, 3600.0)}
    line, reaches_goal = compare(now, before)
    assert "2 repositories: 100 certified tasks, 50.0 per core-hour" in line
    assert "ratio 10.0" in line
    assert reaches_goal
    _, reaches_goal = compare({"a/a": make_yield("a/a", int(5 * RATIO_GOAL) - 1, 3600.0)}, before)
    assert not reaches_goal
    assert not compare({}, before)[1]


def test_the_benchmark_comes_out_bad_below_its_goal(program: Path, tmp_path: Path) -> None:
    path, work, other = write_list(tmp_path, "a/one"), tmp_path / "work", tmp_path / "other"
    other.mkdir()
    row = make_yield("a/one", 1, 20.0)
    (other / "rows.jsonl").write_text(json.dumps(row.__dict__) + "\n")
    assert main([str(path), "--work", str(work), "--program", str(program), "--compare", str(other)]) == 1
