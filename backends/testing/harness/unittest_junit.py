"""Run a unittest suite the project's own way and write a JUnit report of it. Needs Python 3.6 and nothing else.

    python unittest_junit.py --report FILE [--files LIST] -- -m unittest discover ...
    python unittest_junit.py --report FILE [--files LIST] -- setup.py test

It records by wrapping the base class of all results. With LIST (a file, one path a line) only tests of these files
run, in that order; the project still finds its tests itself.
"""

import argparse
import os
import re
import runpy
import sys
import time
import unittest
import xml.etree.ElementTree as ET

ROOT = os.path.realpath(os.getcwd())


class Recorder:
    """What every test came to: {(file, class, method): [status, message, seconds]}; the worst of several wins."""

    order = ("passed", "xfailed", "skipped", "failed", "error")

    def __init__(self):
        self.tests = {}
        self.started = {}

    def start(self, test):
        self.started[id(test)] = time.time()

    def add(self, test, status, message=""):
        seconds = time.time() - self.started.pop(id(test), time.time())
        key = identity(test)
        old = self.tests.get(key)
        if old is None or self.order.index(status) > self.order.index(old[0]):
            self.tests[key] = [status, message, seconds]

    def write(self, path):
        suite = ET.Element("testsuite", name="unittest", tests=str(len(self.tests)))
        for (file, classname, name), (status, message, seconds) in self.tests.items():
            case = ET.SubElement(suite, "testcase", classname=classname, name=name, time="%.3f" % seconds)
            if file:
                case.set("file", file)
            if status in ("failed", "error"):
                ET.SubElement(case, "failure" if status == "failed" else "error", message=clean(message))
            elif status != "passed":
                kind = "pytest.xfail" if status == "xfailed" else "unittest.skip"
                ET.SubElement(case, "skipped", type=kind, message=clean(message))
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)

    def print_lines(self):
        words = {"passed": "PASSED", "failed": "FAILED", "error": "ERROR", "skipped": "SKIPPED", "xfailed": "XFAIL"}
        for (file, classname, name), (status, _, _) in self.tests.items():
            inner = classname[len(dotted(file)) + 1 :] if file else classname
            print(words[status] + " " + "::".join([part for part in [file] + inner.split(".") + [name] if part]))
        sys.stdout.flush()


def clean(text):
    """The text without characters that XML cannot hold."""
    return "".join(c if c in "\t\n" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000) else "?" for c in text)


def dotted(file):
    return file[:-3].replace("/", ".") if file.endswith(".py") else file


def file_of(module_name):
    """Path of a module relative to the tree, or empty."""
    path = getattr(sys.modules.get(module_name), "__file__", None)
    if not path:
        return ""
    path = os.path.relpath(os.path.realpath(path), ROOT).replace(os.sep, "/")
    return "" if path.startswith("../") else path


def identity(test):
    """(file, dotted path and class, method) of a test, of a file that failed to import, or of a failed fixture."""
    test = getattr(test, "test_case", test)  # a sub test counts for its test
    kind = type(test)
    if kind.__name__ in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure"):
        return "", "", getattr(test, "_testMethodName", str(test))
    if kind.__name__ == "_ErrorHolder":
        named = re.search(r"\(([^()]+)\)", getattr(test, "description", ""))  # setUpClass (tests.test_a.TestX)
        return "", "", named.group(1) if named else str(test)
    file = file_of(kind.__module__)
    qualified = getattr(kind, "__qualname__", kind.__name__).replace(".<locals>", "")
    method = getattr(test, "_testMethodName", None) or str(test)
    return file, (dotted(file) or kind.__module__) + "." + qualified, method


def message_of(error):
    """`AssertionError: 1 != 2` of an exc_info triple, first line."""
    kind, value = error[0], error[1]
    lines = str(value).strip().splitlines() or [""]
    return "%s: %s" % (getattr(kind, "__name__", kind), lines[0])


def install(recorder):
    """Make every result tell the recorder."""

    def wrap(name, tell):
        original = getattr(unittest.TestResult, name, None)
        if original is None:
            return

        def told(self, test, *rest):
            tell(test, *rest)
            return original(self, test, *rest)

        setattr(unittest.TestResult, name, told)

    def error(test, info):
        collected = type(test).__name__ not in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure")
        recorder.add(test, "error", message_of(info) if collected else "collection failure: " + message_of(info))

    def sub_test(test, subtest, info):
        if info is not None:
            failed = issubclass(info[0], test.failureException)
            recorder.add(test, "failed" if failed else "error", message_of(info))

    wrap("startTest", recorder.start)
    wrap("addSuccess", lambda test: recorder.add(test, "passed"))
    wrap("addError", error)
    wrap("addFailure", lambda test, info: recorder.add(test, "failed", message_of(info)))
    wrap("addSkip", lambda test, reason: recorder.add(test, "skipped", str(reason)))
    wrap("addExpectedFailure", lambda test, info: recorder.add(test, "xfailed", message_of(info)))
    wrap("addUnexpectedSuccess", lambda test: recorder.add(test, "failed", "unexpected success"))
    wrap("addSubTest", sub_test)


def flat(suite):
    """All tests of a suite, in order."""
    try:
        inner = list(suite)
    except TypeError:
        return [suite]
    return [test for part in inner for test in flat(part)]


def restrict(files):
    """Let runners run the tests of these files alone, in the order of the list; failed imports stay."""
    place = {file: number for number, file in enumerate(files)}
    original = unittest.TextTestRunner.run

    def run(self, test):
        chosen = []
        for case in flat(test):
            file = identity(case)[0]
            if not file or file in place:
                chosen.append((place.get(file, -1), case))
        chosen.sort(key=lambda pair: pair[0])
        return original(self, unittest.TestSuite([case for _, case in chosen]))

    unittest.TextTestRunner.run = run


def start(words):
    """Run `-m MODULE ARGS` or `SCRIPT ARGS` as python itself would."""
    if words[0] == "-m":
        sys.argv = [words[1]] + words[2:]
        sys.path[0] = os.getcwd()
        if words[1] == "unittest":
            sys.argv[0] = "python -m unittest"
            unittest.main(module=None)
        else:
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        runpy.run_path(words[0], run_name="__main__")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", required=True)
    parser.add_argument("--files")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    recorder = Recorder()
    install(recorder)
    if options.files:
        with open(options.files) as lines:
            files = [line.rstrip("\n") for line in lines if line.strip()]
        if files:
            restrict(files)
    try:
        start(words)
    finally:
        recorder.write(options.report)
        recorder.print_lines()


if __name__ == "__main__":
    main()
