"""Grades what lies in the task's tree: runs eval.sh, reads its report, checks that nobody tampered.

    python3 -I -S grade.py [--patch FILE] --reward FILE     Harbor: the patch applied here, flat numbers written as JSON
    python3 -I -S grade.py --lines FILE                     SWE-bench: `PASSED id` and `FAILED id`, one line a test

Runs as root in a container of the task's image, on Python 3.6 or later, with the standard library alone. Beside this
file lie task.json, eval.sh and, where the task has one, twin.patch. Exit code 0: resolved. 1: not resolved. 97: our
fault, nothing was written.

The run's verdict is not what the test process printed: only a JUnit report counts, every listed test must be in it,
two canaries of unknown names must have come to what they must come to, and in a second run, whose tests were made to
fail, the tests must fail (a submission that rewrites the outcomes of tests passes them there, too).
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from xml.etree import ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = "/home/mergemill"
UID = 1000
OUR_FAULT = 97
UNAPPLIED = 96
HEAD_BYTES, TAIL_BYTES = 64 * 1024, 192 * 1024
MAX_REPORT = 128 * 1024 * 1024
ORDER = ("passed", "xfailed", "skipped", "failed", "error")
OLD_XPASS = "xfail-marked test passes unexpectedly"  # what pytest < 4 says of a non-strict xpass
# As `mergemill grade`: the second attempt forgives what hand-made patches get wrong.
APPLY = (
    ("git", "apply", "--whitespace=nowarn"),
    ("git", "apply", "--whitespace=nowarn", "--recount", "--ignore-whitespace", "-C1"),
)


class OurFault(Exception):  # noqa: N818 - whose fault it is, not an error of the submission's
    """The evaluation itself failed: unscored is not zero."""


# ------------------------------------------------------------------------------------------------ running eval.sh


class Output:
    """Head and tail of what a command said; the rest is read and dropped."""

    def __init__(self):
        # type: () -> None
        self.head = b""
        self.tail = b""

    def read(self, stream):
        # type: (object) -> None
        """Read until the end of `stream`."""
        while True:
            block = os.read(stream.fileno(), 65536)
            if not block:
                return
            room = HEAD_BYTES - len(self.head)
            self.head += block[:room] if room > 0 else b""
            rest = block[room:] if room > 0 else block
            self.tail = (self.tail + rest)[-TAIL_BYTES:]

    def text(self):
        # type: () -> str
        """What is left of it; the lines harnesses look for are spelled so that they do not find them."""
        whole = (self.head + self.tail).decode("utf-8", "replace")
        return "".join("| %s\n" % line.replace(">>>>> ", "---- ") for line in whole.splitlines())


def kill_tests():
    # type: () -> None
    """End everything that runs as the tests' user."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat("/proc/" + name).st_uid == UID:
                    os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass  # it is gone


def run_script(report, seconds, test_patch=None, files=()):
    # type: (str, float, object, object) -> Output
    """Run eval.sh once, its report going to folder `report`; killed after `seconds`, which leaves no report.

    With `test_patch` and `files` these take the place of its own test patch and list of test files.
    """
    os.mkdir(report)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MERGEMILL_")}
    env["MERGEMILL_REPORT_DIR"] = report
    if test_patch is not None:
        env["MERGEMILL_TEST_PATCH"] = shutil.copy(str(test_patch), report + ".patch")  # the script removes it
        env["MERGEMILL_FILES"] = report + ".files"
        write(report + ".files", "".join(name + "\n" for name in files))
    output = Output()
    process = subprocess.Popen(
        ["/bin/bash", os.path.join(HERE, "eval.sh")], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    reader = threading.Thread(target=output.read, args=(process.stdout,), daemon=True)
    reader.start()
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    kill_tests()
    reader.join(timeout=10)
    if process.returncode == OUR_FAULT or os.path.exists(os.path.join(report, "error")):
        print(output.text())
        raise OurFault("the evaluation script gave up")
    return output


class Places:
    """What the tests' user can write, put aside before the first run and put back before the second."""

    def __init__(self, tree, aside):
        # type: (str, str) -> None
        os.mkdir(aside, 0o700)
        self.copies = [(place, os.path.join(aside, str(n))) for n, place in enumerate((tree, HOME))]
        for place, copy in self.copies:
            if os.path.isdir(place):
                subprocess.check_call(["cp", "-a", place, copy])

    def put_back(self):
        # type: () -> None
        """Make the places what they were, and remove what the tests' user left elsewhere."""
        for place, copy in self.copies:
            if os.path.isdir(copy):
                subprocess.check_call(["find", place, "-mindepth", "1", "-delete"])
                subprocess.check_call(["cp", "-a", copy + "/.", place])
        shared = [p for p in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lock") if os.path.isdir(p)]  # noqa: S108
        subprocess.call(["find"] + shared + ["-user", str(UID), "-delete"])


# ---------------------------------------------------------------------------------------------- reading its report


def outcomes(content, known):
    # type: (bytes, object) -> dict
    """Test id -> status of a JUnit report; {} for what is no report.

    In the canonical form (the root says mergemill="1") ids stand as they are, attributes `file` and `name`; in
    pytest's they are made as pytest prints them. `known`: paths of the files in the tree, against which its dotted
    class names are resolved.
    """
    if b"<!DOCTYPE" in content[:4096] or b"<!ENTITY" in content:
        return {}
    try:
        root = ElementTree.fromstring(content)  # noqa: S314 - entities are refused above, the size is capped
    except (ElementTree.ParseError, ValueError, LookupError):
        return {}
    found = {}  # type: dict
    for test, status in canonical(root) if root.get("mergemill") == "1" else pytests(root, known):
        found[test] = max(found.get(test, "passed"), status, key=ORDER.index)
    return found


def canonical(root):
    # type: (ElementTree.Element) -> object
    """(test id, status) of every row that speaks of a test."""
    for case in root.iter("testcase"):
        if case.get("name"):
            yield case.get("file", "") + "::" + case.get("name"), result_of(case)[0]


def pytests(root, known):
    # type: (ElementTree.Element, object) -> object
    """As `canonical`, of what pytest and the unittest harness write."""
    resolver = Resolver(known)
    for case in root.iter("testcase"):
        status, message = result_of(case)
        collection = message.startswith(("collection failure", "collection skipped"))
        if collection or (not case.get("classname") and any(child.tag == "error" for child in case)):
            continue
        file, classes = resolver.split(case.get("classname", ""), case.get("file", ""))
        yield "::".join([file] + classes + [case.get("name", "")]), status


def result_of(case):
    # type: (ElementTree.Element) -> tuple
    """Status and first line of the reason."""
    found = ("passed", "")
    for child in case:
        text = child.get("message") or child.text or ""
        message = next((line.strip() for line in text.splitlines() if line.strip()), "")
        if child.tag == "error":
            return "error", message
        if child.tag == "failure":
            found = ("failed", message)
        elif child.tag == "skipped" and found[0] == "passed" and message != OLD_XPASS:
            found = ("xfailed" if child.get("type") == "pytest.xfail" else "skipped", message)
    return found


def dots(path):
    # type: (str) -> str
    """`tests.test_a` of `tests/test_a.py`."""
    return (path[:-3] if path.endswith(".py") else path).replace("/", ".")


class Resolver:
    """Finds the file a report's `classname` stands for."""

    def __init__(self, known):
        # type: (object) -> None
        self.known = frozenset(known)
        self.by_dots = {dots(path): path for path in sorted(self.known)}
        self.by_last = {}  # type: dict
        for name in self.by_dots:
            self.by_last.setdefault(name.rpartition(".")[2], []).append(name)

    def split(self, classname, file):
        # type: (str, str) -> tuple
        """(path, classes) of `tests.test_a.TestX.Inner`."""
        parts = classname.split(".")
        prefixes = [(".".join(parts[:n]), parts[n:]) for n in range(len(parts), 0, -1)]
        for name, classes in prefixes:
            if name in self.by_dots:
                return self.by_dots[name], classes
        stem = dots(file).rpartition(".")[2]
        behind = parts[len(parts) - parts[::-1].index(stem) :] if stem in parts else []
        if file in self.known:
            return file, behind
        for name, classes in prefixes:  # a root somewhere inside the tree: the only file that ends so
            ends = [d for d in self.by_last.get(name.rpartition(".")[2], []) if d.endswith("." + name)]
            if len(ends) == 1:
                return self.by_dots[ends[0]], classes
        return (file, behind) if file else ("/".join(parts), [])


def lines_of(report, name):
    # type: (str, str) -> list
    """The entries of a file that eval.sh left, by lines or NULs; [] when it is not there."""
    try:
        with open(os.path.join(report, name), "rb") as file:
            text = os.fsdecode(file.read())
    except OSError:
        return []
    return [entry for entry in text.split("\0" if "\0" in text else "\n") if entry]


def read_report(report):
    # type: (str) -> dict
    """Outcomes of the run that left its files in folder `report`; {} when it left none that can be read."""
    try:
        with open(os.path.join(report, "junit.xml"), "rb") as file:
            content = file.read(MAX_REPORT)
    except OSError:
        return {}
    canary_files = [line.partition(" ")[2] for line in lines_of(report, "canaries")]
    return outcomes(content, lines_of(report, "known") + canary_files)


def canaries_lie(report, found):
    # type: (str, dict) -> bool
    """Whether a canary came to what it cannot have come to, or is missing though other tests are there."""
    for line in lines_of(report, "canaries"):
        wanted, _, file = line.partition(" ")
        came_to = [status for test, status in found.items() if test.startswith(file + "::")]
        if found and came_to != (["passed"] if wanted == "pass" else ["failed"]):
            return True
    return False


# ------------------------------------------------------------------------------------------------------- grading


def apply(patch, tree):
    # type: (str, str) -> bool
    """Whether the submission's patch applies; then it is applied. An empty one always does."""
    if os.path.getsize(patch) == 0:
        return True
    return any(subprocess.call(list(words) + [patch], cwd=tree) == 0 for words in APPLY)


def grade(task, work):
    # type: (dict, str) -> tuple
    """({test id: passed} of all listed tests, what was tampered with)."""
    listed = task["FAIL_TO_PASS"] + task["PASS_TO_PASS"]
    twin = os.path.join(HERE, "twin.patch")
    places = Places(task["workdir"], os.path.join(work, "aside")) if task["twins"] else None
    real = os.path.join(work, "real")
    print(run_script(real, task["seconds"]).text())
    found = read_report(real)
    passed = {test: found.get(test) == "passed" for test in listed}
    if canaries_lie(real, found):
        return passed, ["canaries"]
    if places is None or not all(passed.values()):
        return passed, []
    places.put_back()
    second = os.path.join(work, "twin")
    run_script(second, task["seconds"], twin, sorted({test.partition("::")[0] for test in task["twins"]}))
    found = read_report(second)
    forged = canaries_lie(second, found) or any(found.get(test) == "passed" for test in task["twins"])
    return passed, ["twins"] if forged else []


def rate(passed, tests):
    # type: (dict, list) -> float
    """Share of `tests` that passed; 1 of none."""
    return sum(passed[test] for test in tests) / float(len(tests)) if tests else 1.0


def write_reward(path, task, passed, tampering, applied):
    # type: (str, dict, dict, list, bool) -> bool
    """Write Harbor's reward.json; whether the task is resolved."""
    resolved = applied and not tampering and all(passed.values())
    rewards = {
        "reward": int(resolved),
        "f2p_rate": rate(passed, task["FAIL_TO_PASS"]),
        "p2p_rate": rate(passed, task["PASS_TO_PASS"]),
        "tampering": len(tampering),
        "patch_applied": int(applied),
    }
    write(path, json.dumps(rewards) + "\n")
    return resolved


def write_lines(path, task, passed, tampering):
    # type: (str, dict, dict, list) -> bool
    """Write what SWE-bench's log parser reads; whether the task is resolved. Who tampers has passed nothing."""
    good = {}  # type: dict
    for test in passed:  # two ids that a parser cannot tell apart pass together or not at all
        line = task["spelled"].get(test, test)
        good[line] = good.get(line, True) and passed[test] and not tampering
    write(path, "".join("%s %s\n" % ("PASSED" if good[line] else "FAILED", line) for line in good))
    return all(good.values())


def write(path, text):
    # type: (str, str) -> None
    """Write a file under a name nobody can have prepared."""
    if os.path.lexists(path):
        os.remove(path)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def main(words):
    # type: (list) -> int
    """Grade; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--patch")
    parser.add_argument("--reward")
    parser.add_argument("--lines")
    options = parser.parse_args(words)
    with open(os.path.join(HERE, "task.json"), encoding="utf-8") as file:
        task = json.load(file)
    os.chmod(HERE, 0o700)
    work = tempfile.mkdtemp(prefix="grade-", dir="/")
    os.chmod(work, 0o711)  # noqa: S103 - the tests' user writes its report somewhere below
    try:
        applied = options.patch is None or apply(options.patch, task["workdir"])
        listed = task["FAIL_TO_PASS"] + task["PASS_TO_PASS"]
        passed, tampering = grade(task, work) if applied else (dict.fromkeys(listed, False), [])
    except (OurFault, OSError, subprocess.CalledProcessError) as error:
        print("MERGEMILL_INFRASTRUCTURE_ERROR: %s" % error)
        return OUR_FAULT
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for what in tampering:
        print("tampering: %s" % what)
    if options.lines:
        return 0 if write_lines(options.lines, task, passed, tampering) else 1
    return 0 if write_reward(options.reward, task, passed, tampering, applied) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
