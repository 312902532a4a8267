"""Build test suites of cabal and run each test of hspec and tasty in a process of its own, whose status is the result.

    python3 -I -S tests.py REPORT WORKDIR PACKAGE SUITE:KIND:MAIN...

Each result is a JSON line for mergemill. A suite of another kind is one test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

PROJECT = "/opt/haskell/cabal.project"
BUILD = "/opt/haskell/build"
HEADING = re.compile(r"^( *)(.*?)(?: \[.\]| \(\d+ms\))*$")
FAILURE = re.compile(r"expected|uncaught exc|predicate failed|Exception|Falsif|Gave up|\*\*\* Failed|.*: error")
THROWN = re.compile(r"uncaught exc|Exception|Gave up|\*\*\* Failed! Exception|.*: error")
TESTS_LIMIT = 5000


class Suite:
    """A test suite: its program, and where its results go."""

    def __init__(self, report, workdir, package, words):
        self.report = report
        self.workdir = workdir
        self.package = package
        self.name, self.kind, self.main = words.split(":", 2)
        self.folder = workdir

    def write(self, file, **fields):
        """Add a row to the report."""
        with open(self.report, "a", encoding="utf-8") as out:
            out.write(json.dumps({"file": file, **fields}) + "\n")

    def build(self):
        """Build the program and return its path; empty if it does not build."""
        command = ["cabal", "--project-file=" + PROJECT, "v2-build", "--offline"]
        command += ["--builddir=" + BUILD, "%s:test:%s" % (self.package, self.name)]
        build = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = build.stdout.decode("utf-8", "replace")
        sys.stdout.write(text[-20_000:])
        if build.returncode:
            errors = [line for line in text.splitlines() if ": error" in line] or ["the suite does not build"]
            self.write(self.main, uncollected=errors[0])
            return ""
        return self.find_program()

    def find_program(self):
        """Return the newest program of that name in the build folder."""
        found = []
        for parent, _, names in os.walk(BUILD + "/build"):
            path = os.path.join(parent, self.name)
            if self.name in names and "/t/" + self.name + "/" in path and os.access(path, os.X_OK):
                found.append(path)
        return max(found, key=os.path.getmtime, default="")

    def run(self, words):
        """Run the program and return (exit status, output, seconds)."""
        start = time.monotonic()
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            check=False,
        )
        return done.returncode, done.stdout.decode("utf-8", "replace"), time.monotonic() - start

    def run_test(self, file, name, words):
        """Run one test and report it."""
        code, text, seconds = self.run(words)
        status, message = "passed" if code == 0 else "failed", ""
        if code:
            sys.stdout.write(text[-4000:])
            message = find_message(text)
        elif re.search(r"^1 example, 0 failures, 1 pending$", text, re.MULTILINE):
            status = "skipped"
        # The runtime prints an exception that nothing catches behind the name of the program.
        uncaught = [line for line in text.splitlines() if line.startswith(os.path.basename(words[0]) + ": ")]
        by_assertion = not (THROWN.match(message) or (self.kind == "program" and uncaught))
        fields = {"assertion": by_assertion} if status == "failed" else {}
        self.write(file, name=name, status=status, message=message, seconds=round(seconds, 3), **fields)

    def list_hspec(self, program):
        """Return (file, name, words) of each test, from a run without the tests' bodies."""
        code, text, _ = self.run([program, "--dry-run", "--no-color", "--format=checks", "--seed=0"])
        if code:
            self.write(self.main, uncollected=find_message(text) or "the specs cannot be listed")
            return []
        stack, found = [], []
        lines = [line for line in text.split("\n\nFinished in ")[0].splitlines() if line.strip()]
        for number, line in enumerate(lines):
            match = HEADING.match(line)
            depth, title = len(match[1]), match[2]
            stack = [(level, parent) for level, parent in stack if level < depth] + [(depth, title)]
            following = HEADING.match(lines[number + 1])[1] if number + 1 < len(lines) else ""
            if len(following) <= depth:
                path = [parent for _, parent in stack]
                words = [program, "--no-color", "--seed=0", "--match", "/" + "/".join(path) + "/"]
                found.append((self.find_file(path[0]), " > ".join(path), words))
        return found

    def find_file(self, module):
        """Return the file of a module that hspec-discover found, or else the main file."""
        folder = os.path.dirname(self.main)
        path = os.path.join(folder, module.replace(".", "/") + "Spec.hs")
        return path if os.path.isfile(os.path.join(self.workdir, path)) else self.main

    def list_tasty(self, program):
        """Return (file, name, words) of each test that the program lists."""
        code, text, _ = self.run([program, "--list-tests"])
        if code:
            self.write(self.main, uncollected=find_message(text) or "the tests cannot be listed")
            return []
        names = list(dict.fromkeys(line for line in text.splitlines() if line.strip()))
        start = [program, "--color", "never", "--num-threads", "1", "--pattern"]
        return [(self.main, name, [*start, "$0 == %s" % json.dumps(name, ensure_ascii=False)]) for name in names]

    def run_all(self):
        """Build the suite and run its tests."""
        program = self.build()
        if not program:
            return
        if self.kind == "program":
            self.run_test(self.main, self.name, [program])
            return
        tests = self.list_hspec(program) if self.kind == "hspec" else self.list_tasty(program)
        for file, name, words in tests[:TESTS_LIMIT]:
            self.run_test(file, name, words)


def find_message(text):
    """Return the line of a failure that has its reason."""
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        if FAILURE.match(line):
            return line[:400]
    return next((line for line in lines if line), "")[:400]


def main(words):
    """Run the suites that the command line names."""
    report, workdir, package, *suites = words
    for suite in suites:
        one = Suite(report, workdir, package, suite)
        one.folder = find_package_folder(workdir, one.main, package)
        one.run_all()


def find_package_folder(workdir, main, package):
    """Return the folder of the package's cabal file, in which its tests run."""
    folder = os.path.dirname(main)
    while folder and not os.path.isfile(os.path.join(workdir, folder, package + ".cabal")):
        folder = os.path.dirname(folder)
    return os.path.join(workdir, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
