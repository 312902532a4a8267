"""Grader of instruction tasks in a container: decides on an agent's log and patch, and runs the tests.

It is packed with what it imports (`exporters.verifier_archive.pack_checks`) and needs Python 3.11 with the packages of
`exporters.verifier_archive.CHECK_PACKAGES`. It runs as root in a fresh container of the task's environment, whose tree
is at the base commit. The folder of the archive has checks.json, apply_patch.py and the grader of the tests, grade.py.

Exit code 0: value 1. 1: a lower value. 97: the grading itself failed, or nothing can be decided on the log, and no
reward was written, as a missing score is not zero.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.instructions.actions import read_actions
from evaluation.instructions.agent_log import AgentLog, AgentLogError, read_agent_log
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checklist import ConstraintChecklist, decide_constraints
from evaluation.instructions.evidence import RolloutEvidence
from taskdb.records.instructions import InstructionOracle, InstructionSource

PATCH = Path("/logs/artifacts/model.patch")
LOG = Path("/logs/artifacts/trajectory.json")
REWARD = Path("/logs/verifier/reward.json")
CHECKS_FILE = "checks.json"
INFRASTRUCTURE_EXIT = 97
MAX_PATCH_BYTES = 64 << 20
MAX_LOG_BYTES = 256 << 20
_FILE_MODES = (b"100644", b"100755", b"120000")
"""Git's modes of files and links; a submodule has no text."""
_CLEAN_GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}


class NoValueError(Exception):
    """Nothing can be decided on the submission; the message is the reason."""


@dataclass(frozen=True, kw_only=True)
class GradingSetup:
    """Facts that are known of the task."""

    folder: Path
    """Folder of the verifier."""
    oracle: InstructionOracle
    workdir: str
    suffixes: tuple[str, ...]
    """Suffixes of program files of the task's language."""
    readers: frozenset[str]
    """Names of agents that read files of the repository by themselves."""


def main(folder: str) -> int:
    """Grade the submission that was collected, write the reward and return the exit code.

    Args:
        folder: folder of the verifier.
    """
    try:
        setup = load_setup(Path(folder))
        reward = grade(setup, read_collected(PATCH, MAX_PATCH_BYTES), lambda: read_collected(LOG, MAX_LOG_BYTES))
    except NoValueError as error:
        REWARD.unlink(missing_ok=True)
        print(f"MERGEMILL_INFRASTRUCTURE_ERROR: {error}")
        return INFRASTRUCTURE_EXIT
    REWARD.write_text(json.dumps(reward) + "\n")
    return 0 if reward["reward"] == 1 else 1


def load_setup(folder: Path) -> GradingSetup:
    """Return the setup of CHECKS_FILE in a folder."""
    data = json.loads((folder / CHECKS_FILE).read_bytes())
    return GradingSetup(
        folder=folder,
        oracle=InstructionOracle.model_validate(data["oracle"]),
        workdir=data["workdir"],
        suffixes=tuple(data["suffixes"]),
        readers=frozenset(data["readers"]),
    )


def read_collected(path: Path, limit: int) -> bytes | None:
    """Return the content of a file that was collected; None where there is none, and nothing for one of another kind.

    Raises:
        NoValueError: it is larger than the limit, in bytes.
    """
    try:
        status = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):  # a process of the agent put something else there
        return b""
    if status.st_size > limit:
        raise NoValueError(f"{path} has more than {limit} bytes")
    return path.read_bytes()


def grade(setup: GradingSetup, patch: bytes | None, load_log: Callable[[], bytes | None]) -> dict[str, float]:
    """Return the reward and its parts. An empty patch earns 0, whatever its log.

    Raises:
        NoValueError: nothing was collected, nothing can be decided on the log, or the tests could not be run.
    """
    if patch is None:
        raise NoValueError(f"the agent's work was not collected to {PATCH}")
    # Before any code of the agent is run.
    checklist = decide(setup, patch, read_log(load_log())) if patch.strip() else None
    tests = run_tests(setup.folder)
    if checklist is None:
        return {**tests, "reward": 0.0, "tests": tests["reward"]}
    is_resolved = tests["reward"] == 1
    for failure in checklist.list_failures():
        print(f"not followed: {failure}", flush=True)
    return {
        **tests,
        "reward": 1.0 if is_resolved and not checklist.failing else 0.0,
        **checklist.list_parts_with_tests(tests["reward"], is_resolved=is_resolved),
    }


def read_log(data: bytes | None) -> AgentLog:
    """Return the log of a collected file.

    Raises:
        NoValueError: there is none, or it is not whole.
    """
    if not data:
        raise NoValueError(f"no-log: the agent has no log at {LOG}")
    try:
        return read_agent_log(data)
    except AgentLogError as error:
        raise NoValueError(str(error)) from error


def decide(setup: GradingSetup, patch: bytes, log: AgentLog) -> ConstraintChecklist:
    """Return the verdicts on the constraints.

    Raises:
        NoValueError: the log has no calls or unknown tools, or nothing shows that an instruction was given.
    """
    actions = read_actions(log.answers, workdir=setup.workdir, own_tools=[tool.name for tool in setup.oracle.tools])
    if not actions.is_readable:
        raise NoValueError(f"tools-unknown: {actions.n_unknown} of {actions.n_calls} calls are of unknown tools")
    if not actions.n_calls:  # an agent may write no calls to its log, such as Terminus 2 with raw contents
        raise NoValueError("no-log: no step of the log calls a tool, and there is a patch")
    if undelivered := list_undelivered(setup, log):
        raise NoValueError(
            f"source-not-delivered: nothing shows that {log.agent or 'the agent'} reads files of the repository, which "
            f"have {', '.join(undelivered)}"
        )
    evidence = RolloutEvidence(actions=actions.actions, changes=list_changes(setup, patch), suffixes=setup.suffixes)
    return decide_constraints(setup.oracle, evidence)


def list_undelivered(setup: GradingSetup, log: AgentLog) -> list[str]:
    """Return the constraints in files of the repository, unless the agent reads them, or its log shows their texts."""
    if log.agent in setup.readers:
        return []
    given = " ".join(log.given.split())
    return [
        constraint.name
        for constraint in setup.oracle.constraints
        if constraint.source is InstructionSource.REPOSITORY and " ".join(constraint.text.split()) not in given
    ]


def list_changes(setup: GradingSetup, patch: bytes) -> list[ChangedFile]:
    """Return the changes of files that a patch makes to the tree; none for one that does not apply."""
    with tempfile.TemporaryDirectory() as work:
        given = Path(work, "patch")
        given.write_bytes(patch)
        git = _make_git(setup.workdir, Path(work, "index"))
        git("read-tree", "HEAD")
        command = ["python3", "-I", "-S", "-B", str(setup.folder / "apply_patch.py"), "--cached", str(given)]
        # A patch that does not apply leaves the index as it is.
        subprocess.run(
            command, cwd=setup.workdir, env=_make_environment(setup.workdir, Path(work, "index")), check=False
        )
        entries = git("diff-index", "--cached", "--no-renames", "-z", "HEAD").split(b"\0")
        changes = []
        for facts, name in zip(entries[::2], entries[1::2], strict=False):
            mode, new_mode, blob, new_blob, _ = facts.lstrip(b":").split(b" ")
            before, after = (
                git("cat-file", "blob", number.decode()) if kind in _FILE_MODES else None
                for kind, number in ((mode, blob), (new_mode, new_blob))
            )
            changes.append(ChangedFile(os.fsdecode(name), before, after))
        return [change for change in changes if change.before != change.after]


def _make_environment(workdir: str, index: Path) -> dict[str, str]:
    # A repository that is named is used whoever owns it.
    named = {"GIT_DIR": f"{workdir}/.git", "GIT_WORK_TREE": workdir, "GIT_INDEX_FILE": str(index)}
    return {**os.environ, **_CLEAN_GIT, **named}


def _make_git(workdir: str, index: Path) -> Callable[..., bytes]:
    """Return the function that runs git with an index of its own.

    Raises:
        NoValueError: git failed.
    """

    def run(*words: str) -> bytes:
        ran = subprocess.run(
            ["git", *words], cwd=workdir, env=_make_environment(workdir, index), capture_output=True, check=False
        )
        if ran.returncode:
            raise NoValueError(f"git {words[0]} failed: {ran.stderr.decode(errors='replace').strip()[-300:]}")
        return ran.stdout

    return run


def run_tests(folder: Path) -> Mapping[str, Any]:
    """Return the reward that the grader of the tests writes.

    Raises:
        NoValueError: it wrote nothing.
    """
    with tempfile.TemporaryDirectory() as work:
        # Out of the reach of whoever reads the reward, until the checks are counted, too.
        reward = Path(work, "reward.json")
        command = ["python3", "-I", "-S", str(folder / "grade.py"), "--patch", str(PATCH), "--reward", str(reward)]
        ran = subprocess.run(command, check=False)
        try:
            data: dict[str, Any] = json.loads(reward.read_bytes())
        except (OSError, ValueError) as error:
            raise NoValueError(f"the tests were not graded (exit code {ran.returncode})") from error
        return data
