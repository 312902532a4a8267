"""Runs the programs of ctest's tests that are made with Catch2 or doctest, so that they report each test case.

    case_runner.py TESTS_JSON OUT_DIR      TESTS_JSON is the output of `ctest --show-only=json-v1`

Prints a regular expression of the tests that ran, for `ctest -E`. The exit status is 1 if one of them failed. Programs
write XML; `programs.jsonl` holds the exit status of each. Tests with arguments or properties are left to ctest.
"""

import json
import os
import re
import signal
import subprocess
import sys

TIMEOUT = 300
PROPERTIES = frozenset(("WORKING_DIRECTORY", "ENVIRONMENT", "TIMEOUT", "LABELS", "COST", "PROCESSORS"))
FRAMEWORKS = ((b"doctest version is", ("-r=xml", "-o=%s")), (b"Catch", ("-r", "xml", "-d", "yes", "-o", "%s")))


def find_reporter(program, folder, environment):
    """Return the arguments for a report in XML of the program's framework; empty if it has another one."""
    try:
        run = subprocess.run(
            [program, "--help"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return next((words for mark, words in FRAMEWORKS if mark in run.stdout[:2000]), ())


def contains_framework(program):
    """Return whether a program contains the text of one of the frameworks, so that `--help` does not start others."""
    try:
        with open(program, "rb") as file:
            content = file.read(200_000_000)
    except OSError:
        return False
    return b"doctest version is" in content or b"Catch v" in content or b"Catch2 v" in content


def run_program(command, folder, environment):
    """Return the exit status of a program; 124 if it ran too long."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
    )
    try:
        return process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return 124


def run_test(test, out, number):
    """Run a test of ctest whose program reports cases, and return its row; None if it is left to ctest."""
    command, name = test.get("command") or [], str(test.get("name"))
    properties = {one["name"]: one.get("value") for one in test.get("properties", ())}
    if len(command) != 1 or not set(properties) <= PROPERTIES or not re.match(r"^[\w.:+ -]+$", name):
        return None
    environment = dict(os.environ)
    environment.update(one.split("=", 1) for one in properties.get("ENVIRONMENT") or ())
    folder = properties.get("WORKING_DIRECTORY") or "."
    reporter = contains_framework(command[0]) and find_reporter(command[0], folder, environment)
    if not reporter:
        return None
    report = os.path.join(out, "%d.cases.xml" % number)
    code = run_program(command + [word.replace("%s", report) for word in reporter], folder, environment)
    return {"test": name, "report": os.path.basename(report), "code": code}


def main(path, out):
    """Run the programs; return the exit status."""
    with open(path, encoding="utf-8") as file:
        tests = json.load(file).get("tests", [])
    rows = []
    for number, test in enumerate(tests):
        row = run_test(test, out, number)
        rows += [row] if row else []
    with open(os.path.join(out, "programs.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    names = [re.sub(r"([.+])", r"[\1]", row["test"]) for row in rows]
    sys.stdout.write("^(%s)$\n" % "|".join(names) if names else "")
    return 1 if any(row["code"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
