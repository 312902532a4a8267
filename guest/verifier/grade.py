"""Grade the submission in the task's tree: run eval.sh, read its report and check for tampering.

    python3 -I -S grade.py [--patch FILE] --reward FILE     Harbor: apply the patch, write flat numbers as JSON
    python3 -I -S grade.py --lines FILE                     SWE-bench: `PASSED id` or `FAILED id`, a line per test

Runs as root in a container of the task's image, on Python 3.6 or later, with the standard library only. The folder of
this file also holds task.json, eval.sh, modules of `guest` and, where the task has controls, controls.json.
Exit code 0: resolved. 1: not resolved. 97: infrastructure failure, nothing was written.

Where the folder has image_state.json and image_state.py, as in formats whose harness runs this in a single container, a
submission is refused, with the result 0, unless the container is as its image made it.

Only the part that fails before the submission is applied, and a script that reports an infrastructure error in a file
of root's, is an infrastructure failure. From then on the result is 0 unless it is replaced by a better score: whatever
ends this program, the submission is not left without a result.

Output of the test process is ignored. Only a JUnit report counts, and every listed test must be in it. Two canaries of
unpredictable names must have the required status. Controlled tests stand several times under drawn names; the true
instance must pass, and the others fail as they do with the gold patch. Tests that cannot are real or not by a coin, in
several evaluations (`guest.controls.blind`).
"""

import argparse
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))  # of the program, which is this file or an archive with it
if __name__ == "__main__":
    sys.path.insert(0, HERE)  # with -I, Python leaves it out

from guest.controls import blind  # noqa: E402
from guest.reports import canaries, junit  # noqa: E402
from guest.reports.entries import MAX_LIST_BYTES, name_restored_files, split_entries  # noqa: E402

HOME = "/home/mergemill"
UID = 1000
INFRASTRUCTURE_EXIT = 97
PATCH_RECORD = "patch"
STATE_FILE = "image_state.json"
SHARED = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run", "/var/lock")  # noqa: S108 - every user can write there
CLOCK_TICK = 0.02  # seconds after which the kernel gives a change another time
HEAD_BYTES, TAIL_BYTES = 64 * 1024, 192 * 1024
MAX_PATCH = 64 * 1024 * 1024
MAX_REASONS = 20  # against grading in a container that the output names


TreeEntry = Tuple[Optional[Tuple[int, int]], Optional[Set[str]]]
"""Inode and time of the last change of a file or folder, and the names in a folder; None, None for nothing."""
# A submission can write a configuration of git, whose hooks and filters would run as root.
CLEAN_GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}


class InfrastructureFailure(Exception):  # noqa: N818 - not an error of the submission
    """The evaluation itself failed, so there is no score."""


# ------------------------------------------------------------------------------------------------ running eval.sh


class OutputBuffer:
    """Head and tail of a command's output; the rest is dropped."""

    def __init__(self) -> None:
        self.head = b""
        self.tail = b""
        self.killed = False  # whether the time limit ended the command
        self.tree_error = ""  # why no test could run in the tree

    def read(self, stream: IO[bytes]) -> None:
        """Read until the end of `stream`."""
        while True:
            block = os.read(stream.fileno(), 65536)
            if not block:
                return
            room = HEAD_BYTES - len(self.head)
            self.head += block[:room] if room > 0 else b""
            rest = block[room:] if room > 0 else block
            self.tail = (self.tail + rest)[-TAIL_BYTES:]

    def to_text(self) -> str:
        """Return the kept output, with lines changed that a harness would take for markers or results."""
        text = (self.head + self.tail).decode("utf-8", "replace")
        return "".join("| {}\n".format(line.replace(">>>>> ", "---- ")) for line in text.splitlines())


def kill_tests() -> None:
    """Kill all processes of the tests' user, at once where a process can be started for that."""
    # Killing by `kill(-1)` is the only way that cannot miss a process that forks faster than /proc is read.
    for _ in range(50):
        kill_listed_tests()
        try:
            child = os.fork()
        except OSError:  # they have all processes that the container may have
            continue
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(UID, UID, UID)
                os.setresuid(UID, UID, UID)
                os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return


def kill_listed_tests() -> None:
    """Kill the processes of the tests' user individually."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat("/proc/" + name).st_uid == UID:
                    os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass  # it has ended


def delete_leftovers(*folders: str) -> None:
    """Delete files of the tests' user in folders, so that they take no disk or memory from later processes."""
    existing = [path for path in folders + SHARED if os.path.isdir(path)]
    subprocess.call(["find", *existing, "-mindepth", "1", "-user", str(UID), "-delete"], stderr=subprocess.DEVNULL)


def prefer_to_kill_tests() -> None:
    """Let the kernel end this process and its children first where memory runs out, so that the grader survives."""
    try:
        with open("/proc/self/oom_score_adj", "wb") as file:
            file.write(b"1000")
    except OSError:
        pass  # some sandboxes have no such file


def run_script(
    report: str,
    seconds: float,
    test_patch: Optional[str] = None,
    files: Sequence[str] = (),
    *,
    test_files: Optional[Mapping[str, bytes]] = None,
    command: Optional[Sequence[str]] = None,
    seed: int = 0,
) -> OutputBuffer:
    """Run eval.sh, or another command, once and return its output; `report` is the folder of its report.

    It is killed after `seconds` and then leaves no report. `test_patch` and `files` replace the script's own;
    `test_files` (path -> content) those of the patch.
    """
    os.mkdir(report)
    # The container's own variables of this name would reach the tests.
    env = {k: v for k, v in os.environ.items() if not k.startswith("MERGEMILL_")}
    env["MERGEMILL_REPORT_DIR"] = report
    env["MERGEMILL_SEED"] = str(seed)
    if test_patch is not None:
        env["MERGEMILL_TEST_PATCH"] = shutil.copy(str(test_patch), report + ".patch")  # the script removes it
    if files:
        env["MERGEMILL_FILES"] = report + ".files"
        write_file(report + ".files", "".join(name + "\n" for name in files))
    if test_files:
        env["MERGEMILL_TEST_FILES"] = report + ".tests"  # the script removes it
        write_tree(report + ".tests", test_files)
    output = OutputBuffer()
    process = subprocess.Popen(
        command or ["/bin/bash", os.path.join(HERE, "eval.sh")],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=prefer_to_kill_tests,  # noqa: PLW1509 - no thread is running yet
    )
    reader = threading.Thread(target=output.read, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        output.killed = True
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    kill_tests()
    # A process that escaped the group may still hold the pipe.
    reader.join(timeout=10)
    delete_leftovers(report)
    has_begun = os.path.exists(os.path.join(report, "known"))  # what the script writes before it looks at the tree
    if os.path.exists(os.path.join(report, "error")) or not (has_begun or output.killed):
        print(output.to_text())
        raise InfrastructureFailure("; ".join(read_entries(report, "error")) or "the evaluation script failed")
    output.tree_error = "; ".join(read_entries(report, "tree_error"))
    return output


class WritableState:
    """Everything that the tests' user can write, saved before the first run and restored before later runs.

    Caches and build folders outside of the tree are among it: the files that a run leaves there would serve the next.
    Only the part that has changed is copied back, by the inode and the time of its last change, which only the kernel
    sets.
    """

    def __init__(self, tree: str, backup: str) -> None:
        os.mkdir(backup, 0o700)  # out of reach of the tests' user, so it is not itself part of the state
        self.backup = backup
        self.saved: Dict[str, TreeEntry] = {}
        for path in find_writable([folder for folder in map(os.path.realpath, (tree, HOME)) if os.path.isdir(folder)]):
            subprocess.check_call(["cp", "-a", "--parents", "-t", backup, "--", path[1:]], cwd="/")
            self.saved.update(read_entries_below(path))
        time.sleep(CLOCK_TICK)

    def restore(self) -> None:
        """Restore the files that have changed, and delete files of the tests' user in shared folders."""
        missing: List[str] = []
        folders: Set[str] = set()
        for path, (stamp, names) in self.saved.items():  # a folder comes before what it contains
            entry = read_entry(path)
            if entry[0] == stamp:
                continue
            if names is None:
                delete(path)
                missing.append(path)
                folders.add(os.path.dirname(path))
                continue
            folders.add(path)
            if entry[1] is None:
                delete(path)
                os.mkdir(path)
                folders.add(os.path.dirname(path))
            for name in (entry[1] or set()) - names:
                delete(os.path.join(path, name))
        subprocess.run(
            ["xargs", "-0", "-r", "cp", "-a", "--parents", "-t", "/", "--"],
            cwd=self.backup,
            input=os.fsencode("".join(path[1:] + "\0" for path in missing)),
            check=True,
        )
        # From the inside outwards: restoring a folder's times must come after its content.
        for path in sorted(
            folders.intersection(self.saved), reverse=True
        ):  # what is copied into a folder changes its times
            saved = os.stat(self.backup + path)
            os.chown(path, saved.st_uid, saved.st_gid)
            shutil.copystat(self.backup + path, path)
        for path in folders.union(missing).intersection(self.saved):
            self.saved[path] = (read_entry(path)[0], self.saved[path][1])
        delete_leftovers()
        time.sleep(CLOCK_TICK)


def find_writable(folders: List[str]) -> List[str]:
    """Return `folders` and, outside of them, the outermost files and folders that the tests' user can write or own."""
    user = str(UID)
    # One `find` for the whole file system; what the tests' user cannot reach is pruned first.
    command = ["find", "/", "-mindepth", "1", "-xdev", "("]
    for path in list(SHARED) + folders:
        command += ["-path", path, "-o"]
    command += ["-type", "d", "!", "-user", user, "!", "-perm", "-001", "!", "(", "-group", user, "-perm", "-010", ")"]
    command += [")", "-prune", "-o", "(", "-type", "d", "-o", "-type", "f", ")"]  # so far, what is out of reach
    command += ["(", "-user", user, "-o", "-perm", "-002", "-o", "-group", user, "-perm", "-020", ")"]
    output = subprocess.run([*command, "-prune", "-print0"], stdout=subprocess.PIPE, check=False).stdout
    outermost: List[str] = []
    for path in sorted({*folders, *(os.fsdecode(name) for name in output.split(b"\0") if name)}):
        if not any(path.startswith(other + "/") for other in outermost):
            outermost.append(path)
    return outermost


def read_entry(path: str) -> TreeEntry:
    """Return (inode and time of the last change, names in it if it is a folder); (None, None) for nothing."""
    try:
        status = os.lstat(path)
        names = set(os.listdir(path)) if stat.S_ISDIR(status.st_mode) else None
    except OSError:
        return None, None
    return (status.st_ino, status.st_ctime_ns), names


def read_entries_below(path: str) -> Dict[str, TreeEntry]:
    """Return path -> `read_entry` of `path` and all below it, each folder before the entries that it contains."""
    entries, waiting = {}, [path]
    while waiting:
        path = waiting.pop()
        entries[path] = read_entry(path)
        waiting.extend(os.path.join(path, name) for name in entries[path][1] or ())
    return entries


def delete(path: str) -> None:
    """Delete a file, a link, a folder with all below, or nothing."""
    if os.path.isdir(path) and not os.path.islink(path):
        subprocess.check_call(["rm", "-rf", path])  # of any depth
    elif os.path.lexists(path):
        os.remove(path)


# ---------------------------------------------------------------------------------------------- reading the report


def read_entries(report: str, name: str) -> List[str]:
    """Return the entries of a file that eval.sh wrote, separated by lines or NULs; [] when it is absent."""
    return split_entries(read_bytes(report, name, MAX_LIST_BYTES) or b"")


def read_bytes(report: str, name: str, limit: int) -> Optional[bytes]:
    """Return the first bytes of a file in the report folder; None when it is absent."""
    try:
        with open(os.path.join(report, name), "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def read_report(report: str) -> Optional[junit.JUnitReport]:
    """Return the `JUnitReport` of the run whose report folder is `report`; None if it left none that can be read."""
    content = read_bytes(report, "junit.xml", junit.MAX_REPORT_BYTES)
    if content is None:
        return None
    try:
        return junit.parse_report(content, read_entries(report, "known") + list(read_canaries(report)))
    except junit.UnreadableReportError:
        return None


def read_canaries(report: str) -> Dict[str, str]:
    """Return file -> required status of the canaries that eval.sh added."""
    return canaries.parse_canary_list(read_bytes(report, "canaries", MAX_LIST_BYTES) or b"")


def has_forged_canary(report: str, statuses: Mapping[str, str]) -> bool:
    """Return whether the results of canaries were changed. `statuses`: test id -> status of the run."""
    required = read_canaries(report)
    has_passes = any(
        status == "passed" and test.partition("::")[0] not in required for test, status in statuses.items()
    )
    return canaries.find_tampering(canaries.judge_canaries(statuses, required), has_passes=has_passes) is not None


# ------------------------------------------------------------------------------------------------------- grading


def apply_patch(patch: str, tree: str, record: Optional[str] = None) -> bool:
    """Apply the submission's patch and return whether it applied; an empty patch always does.

    `record`: a new folder for the repairs that it needed and the paths that it touches.
    """
    # Parsing takes several times the size in memory, which the container may not have.
    if os.path.getsize(patch) > MAX_PATCH:
        return False
    command = [sys.executable, "-I", "-S", "-B", os.path.join(HERE, "apply_patch.py")]
    command += ["--record", str(record)] if record else []
    env = dict(os.environ, GIT_DIR=os.path.join(tree, ".git"), GIT_WORK_TREE=tree, **CLEAN_GIT)
    return subprocess.call([*command, patch], cwd=tree, env=env) == 0


def print_restored_files(report: str, record: str) -> None:
    """Print which files of the submission eval.sh put back or removed; without a record of its patch, all of them."""
    names = set(read_entries(report, "restored"))
    if os.path.isdir(record):
        names.intersection_update(read_entries(record, "touched"))
    if names:
        print(name_restored_files(names))


def draw_evaluations() -> List[blind.Evaluation]:
    """Return the evaluations of a grading; evaluations without sabotaged tests where the task has no controls."""
    path = os.path.join(HERE, "controls.json")
    if not os.path.isfile(path):
        return [blind.Evaluation({}, {})]
    with open(path, encoding="utf-8") as file:
        return blind.draw_evaluations(json.load(file), random.SystemRandom())


def grade_submission(task: Mapping[str, Any], work: str) -> Tuple[Dict[str, bool], List[str]]:
    """Return (listed test id -> whether its outcomes were as expected, kinds of tampering found).

    `work` holds the record of the submission's patch, if it was applied here.
    """
    listed = task["FAIL_TO_PASS"] + task["PASS_TO_PASS"]
    evaluations = draw_evaluations()
    state = WritableState(task["workdir"], os.path.join(work, "backup")) if len(evaluations) > 1 else None
    judgement = blind.Judgement(listed)
    for number, evaluation in enumerate(evaluations):
        if state is not None and number > 0:
            state.restore()
        report = os.path.join(work, f"run-{number}")
        output = run_script(report, task["seconds"], files=evaluation.only or (), test_files=evaluation.files)
        if number == 0:
            print(output.to_text() + output.tree_error)
            print_restored_files(report, os.path.join(work, PATCH_RECORD))
        parsed = read_report(report)
        outcomes = (
            {test: (outcome.status, outcome.message) for test, outcome in parsed.outcomes.items()} if parsed else {}
        )
        judgement.add(evaluation, outcomes)
        if has_forged_canary(report, {test: status for test, (status, _) in outcomes.items()}):
            return {test: test not in judgement.wrong for test in listed}, ["canaries"]
        # The value is decided; further evaluations would only show a forger more of the controls.
        if not judgement.is_right and (evaluation.is_decisive or not outcomes):
            break
    passed = {test: test not in judgement.wrong for test in listed}
    if judgement.strange and all(passed.values()):
        return passed, ["copies"]
    return passed, ["controls"] if judgement.forged else []


def compute_rate(passed: Mapping[str, bool], tests: Sequence[str]) -> float:
    """Return the share of `tests` that passed; 1 for no tests."""
    return sum(passed[test] for test in tests) / float(len(tests)) if tests else 1.0


def write_reward(
    path: str, task: Mapping[str, Any], passed: Mapping[str, bool], tampering: Sequence[str], applied: bool
) -> bool:
    """Write Harbor's reward.json and return whether the task is resolved."""
    resolved = applied and not tampering and all(passed.values())
    rewards = {
        "reward": int(resolved),
        "f2p_rate": compute_rate(passed, task["FAIL_TO_PASS"]),
        "p2p_rate": compute_rate(passed, task["PASS_TO_PASS"]),
        "tampering": len(tampering),
        "patch_applied": int(applied),
    }
    write_file(path, json.dumps(rewards) + "\n")
    return resolved


def write_lines(path: str, task: Mapping[str, Any], passed: Mapping[str, bool], tampering: Sequence[str]) -> bool:
    """Write the lines for SWE-bench's log parser and return whether the task is resolved.

    After tampering every test counts as failed.
    """
    passed_lines: Dict[str, bool] = {}
    for test in passed:  # ids with equal lines pass together or not at all
        line = task["escaped_ids"].get(test, test)
        passed_lines[line] = passed_lines.get(line, True) and passed[test] and not tampering
    write_file(
        path, "".join(f"{'PASSED' if has_passed else 'FAILED'} {line}\n" for line, has_passed in passed_lines.items())
    )
    return all(passed_lines.values())


def write_file(path: str, text: str) -> None:
    """Write a file in a single step, replacing a link or file of that name."""
    with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.replace(path + ".new", path)


def prepare(task: Mapping[str, Any]) -> str:
    """Check the state that is needed before the submission is applied, and return a new folder of root's.

    Raises:
        InfrastructureFailure: a submission cannot be graded here.
    """
    # Controls and hidden tests lie here, and the tests' user must not read them.
    os.chmod(HERE, 0o700)
    script = os.path.join(HERE, "eval.sh")
    if os.path.exists(script) and subprocess.call(["/bin/bash", "-n", script]) != 0:
        raise InfrastructureFailure("the evaluation script is damaged")
    if not os.path.isdir(task["workdir"]):
        raise InfrastructureFailure("there is no " + task["workdir"])
    work = tempfile.mkdtemp(prefix="grade-", dir="/")
    os.chmod(work, 0o711)  # noqa: S103 - the tests' user writes its report somewhere below
    return work


def list_reasons_to_refuse() -> List[str]:
    """Return how this container differs from its image; a file that was merely added is deleted."""
    # the module lies beside this file, and only with a state
    from image_state import list_problems  # type: ignore[import-not-found]  # noqa: PLC0415

    with open(os.path.join(HERE, STATE_FILE), encoding="ascii") as file:
        state = json.load(file)
    try:
        kill_tests()
        problems: List[str] = list_problems(state)
    except (OSError, subprocess.SubprocessError) as error:
        return [f"it cannot be read: {error}"]
    return problems


def set_deadline(seconds: float) -> None:
    """Raise TimeoutError in the main thread after so many seconds; 0 for never."""

    def give_up(*_: object) -> None:
        raise TimeoutError("the time for all runs is over")

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def write_tree(folder: str, files: Mapping[str, bytes]) -> None:
    """Write files (path -> content) below a new folder that only root can read."""
    os.mkdir(folder, 0o700)
    for path, content in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)


def main(words: Sequence[str]) -> int:
    """Grade the submission and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--patch")
    parser.add_argument("--reward")
    parser.add_argument("--lines")
    options = parser.parse_args(words)
    with open(os.path.join(HERE, "task.json"), encoding="utf-8") as file:
        task = json.load(file)

    def write_result(passed: Mapping[str, bool], tampering: Sequence[str] = (), applied: bool = True) -> bool:
        if options.lines:
            return write_lines(options.lines, task, passed, tampering)
        return write_reward(options.reward, task, passed, tampering, applied)

    failed = dict.fromkeys(task["FAIL_TO_PASS"] + task["PASS_TO_PASS"], False)
    work = ""
    if os.path.isfile(os.path.join(HERE, STATE_FILE)):
        write_result(failed)
        reasons = list_reasons_to_refuse()
        if reasons:
            print("the submission earns 0, as this container is not as its image made it")
            for reason in reasons[:MAX_REASONS]:
                print(f"refused: {ascii(reason)[1:-1]}")
            return 1
    try:
        work = prepare(task)
        write_result(failed)  # until there is a better one
    except (InfrastructureFailure, OSError) as error:
        print(f"MERGEMILL_INFRASTRUCTURE_ERROR: {error}")
        return INFRASTRUCTURE_EXIT
    try:
        set_deadline(task.get("deadline", 0))
        applied = options.patch is None or apply_patch(options.patch, task["workdir"], os.path.join(work, PATCH_RECORD))
        passed, tampering = grade_submission(task, work) if applied else (failed, [])
        resolved = write_result(passed, tampering, applied)
    except InfrastructureFailure as error:
        # No score, which is not a score of 0.
        os.remove(options.lines or options.reward)
        print(f"MERGEMILL_INFRASTRUCTURE_ERROR: {error}")
        return INFRASTRUCTURE_EXIT
    except (OSError, subprocess.SubprocessError, MemoryError) as error:
        print(f"the submission earns 0, as its evaluation ended early: {error}")
        return 1
    finally:
        set_deadline(0)
        kill_tests()
        shutil.rmtree(work, ignore_errors=True)
    for kind in tampering:
        print(f"tampering: {kind}")
    return 0 if resolved else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
