"""The grader of logs: when it gives a value, and what it decides on; the tests' own grader is a stub here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.instructions import log_grader
from evaluation.instructions.agent_log import read_agent_log, write_agent_log
from evaluation.instructions.log_grader import GradingSetup, NoValueError, grade, list_changes, read_collected
from evaluation.runner.run import load_patch_program
from taskdb.records.instructions import BoundConstraint, InstructionOracle, InstructionSource
from tests.evaluation.instructions.conversations import bash, make_answers
from tests.helpers import TinyRepo

STUB = """\
import json, sys
with open(sys.argv[sys.argv.index("--reward") + 1], "w") as file:
    json.dump({"reward": VALUE, "f2p_rate": VALUE}, file)
"""
PATCH = b"""\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-a = 1
+a = 2
diff --git a/b.py b/c.py
similarity index 100%
rename from b.py
rename to c.py
"""
NO_PUSH = BoundConstraint(
    name="no-push",
    family="commands",
    source=InstructionSource.REPOSITORY,
    text="Never\npush.",
    check="never-command",
    arguments={"commands": ["git push"]},
)
FEW_FILES = BoundConstraint(
    name="few-files",
    family="files",
    source=InstructionSource.TURN,
    text="Change one file.",
    check="files-at-most",
    arguments={"number": 3},
)
HONEST = make_answers([bash("sed -i s/1/2/ a.py")], "Done.")


def make_setup(folder: Path, *constraints: BoundConstraint, value: str = "1") -> GradingSetup:
    repo = TinyRepo(folder / "tree")
    repo.commit("Begin", {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    (folder / "tests").mkdir()
    (folder / "tests/apply_patch.py").write_bytes(load_patch_program())
    (folder / "tests/grade.py").write_text(STUB.replace("VALUE", value))
    oracle = InstructionOracle(constraints=constraints or (NO_PUSH, FEW_FILES), dutiful="0" * 64, careless=())
    return GradingSetup(
        folder=folder / "tests",
        oracle=oracle,
        workdir=str(repo.path),
        suffixes=(".py",),
        readers=frozenset(["codex"]),
    )


def give(answers: object = HONEST, agent: str = "codex", *given: str) -> Callable[[], bytes]:
    return lambda: write_agent_log(answers, agent=agent, given=given)  # type: ignore[arg-type]


def test_the_changes_are_those_of_the_patch_and_the_tree_stays(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    changes = list_changes(setup, PATCH)
    assert [(change.path, change.before, change.after) for change in changes] == [
        ("a.py", b"a = 1\n", b"a = 2\n"),
        ("b.py", b"b = 1\n", None),
        ("c.py", None, b"b = 1\n"),
    ]
    assert TinyRepo(tmp_path / "tree").git("status", "--porcelain") == ""
    assert list_changes(setup, PATCH.replace(b"-a = 1", b"-a = 3")) == []


def test_a_repository_inside_is_no_file(tmp_path: Path) -> None:
    commit = "1" * 40
    patch = f"diff --git a/sub b/sub\nnew file mode 160000\nindex {'0' * 40}..{commit}\n--- /dev/null\n+++ b/sub\n"
    added = f"{patch}@@ -0,0 +1 @@\n+Subproject commit {commit}\n".encode()
    assert [change.path for change in list_changes(make_setup(tmp_path), added + PATCH)] == ["a.py", "b.py", "c.py"]


def test_an_honest_log_earns_1_and_a_broken_instruction_0(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    reward = grade(setup, PATCH, give())
    assert (reward["reward"], reward["tests"], reward["csr"], reward["graded"], reward["f2p_rate"]) == (1, 1, 1, 1, 1)
    broken = grade(setup, PATCH, give([*HONEST, *make_answers([bash("git -C . push")], first=2)]))
    assert (broken["reward"], broken["tests"], broken["csr"], broken["graded"]) == (0, 1, 0.5, 0.5)
    assert broken["csr_repository"] == 0


def test_a_check_of_files_sees_the_patch(tmp_path: Path) -> None:
    setup = make_setup(tmp_path, FEW_FILES.model_copy(update={"arguments": {"number": 2}}))
    assert grade(setup, PATCH, give())["reward"] == 0


def test_tests_that_fail_earn_0_and_half_of_the_partial_value(tmp_path: Path) -> None:
    reward = grade(make_setup(tmp_path, value="0"), PATCH, give())
    assert (reward["reward"], reward["graded"], reward["partial"], reward["isr"]) == (0, 0, 0.5, 1)


def test_an_empty_patch_earns_0_without_a_log_even_where_the_tests_pass(tmp_path: Path) -> None:
    reward = grade(make_setup(tmp_path), b"\n", lambda: None)
    assert (reward["reward"], reward["tests"]) == (0, 1)


@pytest.mark.parametrize(
    ("patch", "load", "problem"),
    [
        (None, give(), "the agent's work was not collected"),
        (PATCH, lambda: None, "no-log: the agent has no log"),
        (PATCH, lambda: b"", "no-log: the agent has no log"),
        (PATCH, lambda: b"{}", "no-log"),
        (PATCH, give(make_answers("I ran a command.", "Done.")), "no-log: no step of the log calls a tool"),
        (PATCH, give(make_answers([bash("ls"), ("warp", {})])), "tools-unknown: 1 of 2 calls"),
        (PATCH, give(HONEST, "terminus-2"), "source-not-delivered: nothing shows that terminus-2 .* have no-push$"),
    ],
)
def test_there_is_no_value_where_nothing_can_be_decided(
    patch: bytes | None, load: Callable[[], bytes | None], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(NoValueError, match=problem):
        grade(make_setup(tmp_path), patch, load)


def test_the_texts_in_a_log_show_that_they_were_delivered(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    assert grade(setup, PATCH, give(HONEST, "own", "Rules:\n- Never push."))["reward"] == 1
    log = read_agent_log(write_agent_log(make_answers("Never push."), agent="own"))
    assert log_grader.list_undelivered(setup, log) == ["no-push"]  # the agent's own words show nothing


def test_tests_that_were_not_graded_give_no_value(tmp_path: Path) -> None:
    setup = make_setup(tmp_path)
    (setup.folder / "grade.py").write_text("raise SystemExit(97)\n")
    with pytest.raises(NoValueError, match=r"the tests were not graded \(exit code 97\)"):
        grade(setup, PATCH, give())


def test_only_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_collected(tmp_path / "none", 10) is None
    assert read_collected(tmp_path / "file", 10) == b"12345"
    assert read_collected(tmp_path / "link", 10) == read_collected(tmp_path, 10) == b""
    with pytest.raises(NoValueError, match="more than 4 bytes"):
        read_collected(tmp_path / "file", 4)


@pytest.mark.parametrize("value", ["1", "0", ""])
def test_the_program_writes_a_reward_or_none(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = make_setup(tmp_path, value=value or "1")
    paths = {name: tmp_path / name.lower() for name in ("PATCH", "LOG", "REWARD")}
    for name, path in paths.items():
        monkeypatch.setattr(log_grader, name, path)
    checks = {"oracle": setup.oracle.model_dump(mode="json"), "workdir": setup.workdir, "suffixes": [], "readers": []}
    (setup.folder / "checks.json").write_text(json.dumps(checks | {"readers": ["codex"]}))
    paths["PATCH"].write_bytes(PATCH)
    paths["LOG"].write_bytes(give()() if value else b"")
    paths["REWARD"].write_text('{"reward": 1}')
    assert log_grader.main(str(setup.folder)) == {"1": 0, "0": 1, "": 97}[value]
    if value:
        assert json.loads(paths["REWARD"].read_text())["reward"] == int(value)
    else:
        assert not paths["REWARD"].exists()
        assert "MERGEMILL_INFRASTRUCTURE_ERROR: no-log" in capsys.readouterr().out
