"""What cannot be used, and what breaks in mid-run: one clear line, the right exit code, nothing lost."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cable import Cable
from tests.cli import Said, environment, mergemill
from tests.helpers import TinyRepo
from tests.miner.pypi.index import serving
from tests.sample import COUNT_RIGHT, TEST_COUNT_RIGHT, make_sample

SOURCE = "git:ada__greet"
TASKS = ["ada__greet-1.bugfix", "ada__greet-3.bugfix"]


def certified(folder: Path, *words: str) -> list[str]:
    listed = mergemill("tasks", "list", "--status", "certified", "--json", *words, cwd=folder)
    return sorted(row["name"] for row in listed.lines)


def assert_one_line(done: Said, code: int, said: str) -> None:
    """A mistake is told in one line, and never by a traceback."""
    told = [line for line in done.err.splitlines() if line.startswith("mergemill: ")]
    assert done.code == code, done
    assert len(told) == 1, done.err
    assert said in told[0]
    assert "Traceback" not in done.err


# ------------------------------------------------------------------------------------------------------ sources


def no_repository(folder: Path) -> str:
    (folder / "plain").mkdir()
    return "git:plain"


def nothing_there(folder: Path) -> str:
    del folder
    return "git:nowhere"


def empty(folder: Path) -> str:
    TinyRepo(folder / "empty")
    return "git:empty"


def shallow(folder: Path) -> str:
    repo = make_sample(folder / "whole")
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(folder / "shallow"))
    return "git:shallow"


def partial(folder: Path) -> str:
    repo = make_sample(folder / "whole")
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repo.path}", str(folder / "partial"))
    return "git:partial"


def no_such_file(folder: Path) -> str:
    del folder
    return "instances:none.jsonl"


SOURCES = {
    no_repository: "plain is not a git repository (name the folder that holds .git)",
    nothing_there: "nowhere is not a git repository (there is no such folder)",
    empty: "empty is an empty repository (its HEAD has no commits)",
    shallow: "shallow is a shallow clone (git -C shallow fetch --unshallow)",
    partial: "partial is a partial clone (clone it again without --filter)",
    no_such_file: "none.jsonl",
}


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_a_source_that_cannot_be_used_is_one_line_and_the_others_are_done(make, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    done = mergemill("mine", make(tmp_path), SOURCE, cwd=tmp_path)
    assert_one_line(done, 3, SOURCES[make])
    assert len(mergemill("sql", "SELECT * FROM candidates", "--json", cwd=tmp_path).lines) == 2


def test_a_package_that_the_index_does_not_know(tmp_path: Path) -> None:
    with serving() as index:
        done = mergemill("mine", "pypi:no-such-package", cwd=tmp_path, PIP_INDEX_URL=index.url)
    assert_one_line(done, 3, "no-such-package")


def test_an_index_that_does_not_answer_is_to_be_tried_again(tmp_path: Path) -> None:
    with serving() as index:
        url = index.url  # nobody listens there when this block is left
    done = mergemill("mine", "pypi:anything", cwd=tmp_path, PIP_INDEX_URL=url)
    assert_one_line(done, 75, "cannot reach")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine", "svn:greet"], "'svn:greet' is not a source (use github:OWNER/NAME, git:PATH_OR_URL"),
        (["mine", "greet"], "'greet' is not a source"),
        (["mine"], "no source is named"),
        (["mine", SOURCE, "--frob"], "No such option: --frob"),
        (["mine", SOURCE, "--cluster", "ray://head:1"], "--cluster"),
        (["mine", SOURCE, "--llm", "ftp://model"], "--llm"),
        (["mine", SOURCE, "--llm", "http://model/v1"], "--model"),
        (["mine", SOURCE, "--language", "cobol"], "--language"),
        (["mine", SOURCE, "--kind", "poem"], "--kind"),
        (["mine", SOURCE, "--limit", "0"], "--limit"),
        (["export", "--format", "frob", "--out", "out"], "no format 'frob'"),
    ],
)
def test_words_that_mean_nothing_are_a_usage_error(tmp_path: Path, words: list[str], said: str) -> None:
    make_sample(tmp_path / "ada__greet")
    assert mergemill("mine", SOURCE, cwd=tmp_path).code == 0
    assert_one_line(mergemill(*words, cwd=tmp_path), 2, said)


def test_the_only_words_of_cluster_model_and_language_are_taken(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    words = ["--cluster", "local", "--llm", "off", "--language", "python", "--kind", "bugfix"]
    assert mergemill("mine", SOURCE, *words, "--json", cwd=tmp_path).lines[-1]["candidates"] == 2


@pytest.mark.parametrize(
    "words", [["tasks", "show", "frob"], ["why", "frob"], ["grade", "frob", "--gold"], ["images", "audit", "frob"]]
)
def test_a_task_that_is_not_there(tmp_path: Path, words: list[str]) -> None:
    make_sample(tmp_path / "ada__greet")
    assert mergemill("mine", SOURCE, cwd=tmp_path).code == 0
    assert_one_line(mergemill(*words, cwd=tmp_path), 3, "frob")


@pytest.mark.parametrize("words", [["mine", SOURCE], ["tasks", "list"], ["funnel"], ["images", "audit", "x"]])
def test_a_file_that_is_no_database(tmp_path: Path, words: list[str]) -> None:
    make_sample(tmp_path / "ada__greet")
    content = "no database, but long enough to be taken for one\n" * 99
    (tmp_path / "mergemill.db").write_text(content)
    assert_one_line(mergemill(*words, cwd=tmp_path), 3, "is not a database")
    assert (tmp_path / "mergemill.db").read_text() == content


def instance(repo: TinyRepo, name: str) -> dict[str, object]:
    """The sample's last change as a published task."""
    return {
        "instance_id": name, "repo": "ada/greet", "base_commit": repo.git("rev-parse", "HEAD^"), "version": "1.0",
        "patch": repo.git("diff", "HEAD^", "--", "greet") + "\n",
        "test_patch": repo.git("diff", "HEAD^", "--", "tests") + "\n",
        "problem_statement": "Words are miscounted where gaps are wide.", "created_at": "2024-03-01T10:00:00Z",
        "FAIL_TO_PASS": ["tests/test_words.py::test_wide_gaps"], "PASS_TO_PASS": [],
    }  # fmt: skip


def test_a_malformed_line_is_named_by_its_number_and_the_others_go_on(tmp_path: Path) -> None:
    repo = make_sample(tmp_path / "ada__greet")
    rows = [json.dumps(instance(repo, "ada__greet-7")), '{"instance_id": "torn', json.dumps(instance(repo, "last"))]
    (tmp_path / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    done = mergemill("mine", "instances:tasks.jsonl", "--clones", ".", cwd=tmp_path)
    assert_one_line(done, 3, "tasks.jsonl:2: not JSON")
    found = mergemill("sql", "SELECT name FROM candidates ORDER BY name", "--json", cwd=tmp_path).lines
    assert [row["name"] for row in found] == ["ada__greet-7", "last"]


# ------------------------------------------------------------------------------------------------------- engine


def test_no_docker_names_the_fix(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    done = mergemill("run", SOURCE, cwd=tmp_path, DOCKER_HOST="unix:///nonexistent")
    assert_one_line(done, 4, "(scripts/setup docker)")
    assert done.out == ""


@contextmanager
def running(
    folder: Path, *words: str, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], list[dict[str, object]]]]:
    """A `mergemill run` under way, with the events it told until its first change was built."""
    with subprocess.Popen(
        ["mergemill", "run", SOURCE, "--json", *words], cwd=folder, env=environment(**variables),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as driver:  # fmt: skip
        assert driver.stdout is not None
        told: list[dict[str, object]] = []
        try:
            for line in driver.stdout:
                told.append(json.loads(line))
                if told[-1].get("stage") == "build":
                    break
            time.sleep(2)  # it is verified now
            yield driver, told
        finally:
            driver.kill()


@pytest.mark.docker
def test_docker_that_dies_in_mid_run_costs_nothing(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    cable = Cable(tmp_path / "docker.sock")
    try:
        with running(tmp_path, DOCKER_HOST=f"unix://{cable.path}") as (driver, _):
            cable.cut()
            out, err = driver.communicate(timeout=120)
    finally:
        cable.cut()
    assert driver.returncode == 75, err
    assert "scripts/setup docker" in err
    assert "Traceback" not in err
    assert [line["rejected"] for line in map(json.loads, out.splitlines()) if line["event"] == "summary"] == [
        {"no-base": 1, "no-source": 1}
    ]
    again = mergemill("run", SOURCE, cwd=tmp_path)
    assert again.code == 0, again.err
    assert certified(tmp_path) == TASKS


# --------------------------------------------------------------------------------------------------------- disk


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder on a disk of two megabytes."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path, leave: int) -> None:
    """Write until only `leave` bytes are free."""
    free = int(subprocess.run(["stat", "-fc", "%a", str(disk)], capture_output=True, check=True).stdout) * 4096
    (disk / "ballast").write_bytes(bytes(free - leave))


@pytest.mark.docker
@pytest.mark.parametrize("what", ["--store", "--db"])
def test_a_disk_that_is_full_in_mid_run_costs_nothing(what: str, tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    with small_disk(tmp_path / "disk") as disk:
        place = "disk/store" if what == "--store" else f"sqlite:///{disk}/tasks.db"
        assert mergemill("mine", SOURCE, what, place, cwd=tmp_path).code == 0
        fill(disk, leave=12 * 1024 if what == "--store" else 120 * 1024)
        full = mergemill("run", SOURCE, what, place, cwd=tmp_path)
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        before = mergemill("funnel", "--json", what, place, cwd=tmp_path).lines
        again = mergemill("run", SOURCE, what, place, cwd=tmp_path)
        done = certified(tmp_path, what, place)

    assert full.code == 75, full.err
    assert "free some space" in full.err
    assert "Traceback" not in full.err
    assert (before[0]["in"], before[0]["out"]) == (4, 2)
    assert sum(sum(row["rejected"].values()) for row in before) == 2
    assert again.code == 0, again.err
    assert done == TASKS


# ------------------------------------------------------------------------------------------------------- Ctrl-C


@pytest.mark.docker
def test_ctrl_c_in_mid_run_ends_within_seconds_and_the_same_command_finishes(tmp_path: Path) -> None:
    repo = make_sample(tmp_path / "ada__greet")
    endless = "import time\n\ndef test_endless():\n    time.sleep(10_000)\n"
    repo.commit(
        "Count right once more (#9)\n\nIt was wrong for texts of many words.",
        {
            "greet/words.py": COUNT_RIGHT.replace("words.", "words.lower()."),
            "tests/test_words.py": TEST_COUNT_RIGHT + "\n\n" + endless,
        },
    )
    only = ["--only", "ada__greet-9"]
    with running(tmp_path, *only) as (driver, _):
        started = time.monotonic()
        driver.send_signal(signal.SIGINT)
        _, err = driver.communicate(timeout=60)
        took = time.monotonic() - started
    story = mergemill("why", "ada__greet-9", "--json", cwd=tmp_path).json["events"]

    assert driver.returncode == 130, err
    assert took < 10
    assert "Traceback" not in err
    assert "the same command goes on from here" in err
    assert [(event["stage"], event["ok"]) for event in story] == [("mine", True), ("build", True)]

    again = mergemill("run", SOURCE, *only, "--test-timeout", "5", cwd=tmp_path)
    story = mergemill("why", "ada__greet-9", "--json", cwd=tmp_path).json["events"]
    assert again.code == 0, again.err
    assert (story[-1]["stage"], story[-1]["reason"]) == ("verify", "killed-by-time")
