"""Run a unittest suite with the project's own command and write a JUnit report. Needs Python 3.6 and nothing else.

    python unittest_junit.py --report FILE [--files LIST] -- -m unittest discover ...
    python unittest_junit.py --report FILE [--files LIST] -- setup.py test

Results are recorded by wrapping the base class `unittest.TestResult`. With LIST (a file with one path per line) only
the tests of these files run, in that order; the project still discovers its tests itself.
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


INVALID = frozenset(range(0xD800, 0xE000)) | {0xFFFE, 0xFFFF}  # code points that XML cannot hold


class UnittestRecorder:
    """Results: {(file, class, method, unittest's id): [status, message, seconds]}; of several the worst is kept."""

    order = ("passed", "xfailed", "skipped", "failed", "error")

    def __init__(self):
        self.tests = {}
        self.started = {}

    def start_test(self, test):
        self.started[id(test)] = time.time()

    def add_result(self, test, status, message=""):
        seconds = time.time() - self.started.pop(id(test), time.time())
        key = identify_test(test) + (read_id(test),)
        old = self.tests.get(key)
        if old is None or self.order.index(status) > self.order.index(old[0]):
            self.tests[key] = [status, message, seconds]

    def iterate_tests(self):
        """Yield (file, class, method, result); several tests of one method are numbered."""
        counts = {}
        for key, result in self.tests.items():
            file, classname, name = [clean_text(part).replace("\n", " ") for part in key[:3]]
            count = counts[file, classname, name] = counts.get((file, classname, name), 0) + 1
            yield file, classname, name if count == 1 else "%s #%d" % (name, count), result

    def write_report(self, path):
        suite = ET.Element("testsuite", name="unittest", tests=str(len(self.tests)))
        for file, classname, name, (status, message, seconds) in self.iterate_tests():
            case = ET.SubElement(suite, "testcase", classname=classname, name=name, time="%.3f" % seconds)
            if file:
                case.set("file", file)
            if status == "failed":  # unittest itself keeps assertions and other exceptions apart
                ET.SubElement(case, "failure", type="assertion", message=clean_text(message))
            elif status == "error":
                ET.SubElement(case, "error", message=clean_text(message))
            elif status != "passed":
                kind = "pytest.xfail" if status == "xfailed" else "unittest.skip"
                ET.SubElement(case, "skipped", type=kind, message=clean_text(message))
        ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)

    def print_lines(self):
        words = {"passed": "PASSED", "failed": "FAILED", "error": "ERROR", "skipped": "SKIPPED", "xfailed": "XFAIL"}
        for file, classname, name, (status, _, _) in self.iterate_tests():
            inner = classname[len(to_dotted(file)) + 1 :] if file else classname
            print(words[status] + " " + "::".join([part for part in [file] + inner.split(".") + [name] if part]))
        sys.stdout.flush()


def clean_text(text):
    """Return the text with `?` for characters that XML cannot hold."""
    return "".join("?" if ord(c) in INVALID or (c < " " and c not in "\t\n") else c for c in text)


def to_dotted(file):
    return file[:-3].replace("/", ".") if file.endswith(".py") else file


def find_file(module_name):
    """Return the path of a module relative to the tree, or empty."""
    path = getattr(sys.modules.get(module_name), "__file__", None)
    if not path:
        return ""
    path = os.path.relpath(os.path.realpath(path), ROOT).replace(os.sep, "/")
    return "" if path.startswith("../") else path


def identify_test(test):
    """Return (file, dotted path and class, method) of a test, a file that failed to import, or a failed fixture."""
    test = getattr(test, "test_case", test)  # a subtest counts for its test
    kind = type(test)
    if kind.__name__ in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure"):
        return "", "", getattr(test, "_testMethodName", str(test))
    if kind.__name__ == "_ErrorHolder":
        match = re.search(r"\(([^()]+)\)", getattr(test, "description", ""))  # setUpClass (tests.test_a.TestX)
        return "", "", match.group(1) if match else str(test)
    file = find_file(kind.__module__)
    qualified = getattr(kind, "__qualname__", kind.__name__).replace(".<locals>", "")
    method = getattr(test, "_testMethodName", None) or str(test)
    return file, (to_dotted(file) or kind.__module__) + "." + qualified, method


def read_id(test):
    """Return what the test itself gives as its id; tests with other parameters may have one method."""
    try:
        return str(getattr(test, "test_case", test).id())
    except Exception:  # noqa: BLE001 - the project's own code
        return ""


def format_message(error):
    """Return the first line of an exc_info triple, such as `AssertionError: 1 != 2`."""
    kind, value = error[0], error[1]
    lines = str(value).strip().splitlines() or [""]
    return "%s: %s" % (getattr(kind, "__name__", kind), lines[0])


def install_recorder(recorder):
    """Wrap the methods of `unittest.TestResult` so that every result is recorded."""

    def wrap(name, record):
        original = getattr(unittest.TestResult, name, None)
        if original is None:
            return

        def wrapper(self, test, *rest):
            record(test, *rest)
            return original(self, test, *rest)

        setattr(unittest.TestResult, name, wrapper)

    def error(test, info):
        collected = type(test).__name__ not in ("_FailedTest", "ModuleImportFailure", "LoadTestsFailure")
        recorder.add_result(
            test, "error", format_message(info) if collected else "collection failure: " + format_message(info)
        )

    def sub_test(test, subtest, info):
        if info is not None:
            failed = issubclass(info[0], test.failureException)
            recorder.add_result(test, "failed" if failed else "error", format_message(info))

    wrap("startTest", recorder.start_test)
    wrap("addSuccess", lambda test: recorder.add_result(test, "passed"))
    wrap("addError", error)
    wrap("addFailure", lambda test, info: recorder.add_result(test, "failed", format_message(info)))
    wrap("addSkip", lambda test, reason: recorder.add_result(test, "skipped", str(reason)))
    wrap("addExpectedFailure", lambda test, info: recorder.add_result(test, "xfailed", format_message(info)))
    wrap("addUnexpectedSuccess", lambda test: recorder.add_result(test, "failed", "unexpected success"))
    wrap("addSubTest", sub_test)


def flatten_suite(suite):
    """Return all tests of a suite, in order."""
    try:
        inner = list(suite)
    except TypeError:
        return [suite]
    return [test for part in inner for test in flatten_suite(part)]


def restrict_files(files):
    """Restrict test runners to these files, in the order of the list; failed imports stay."""
    positions = {file: number for number, file in enumerate(files)}
    original = unittest.TextTestRunner.run

    def run(self, test):
        selected = []
        for case in flatten_suite(test):
            file = identify_test(case)[0]
            if not file or file in positions:
                selected.append((positions.get(file, -1), case))
        selected.sort(key=lambda pair: pair[0])
        return original(self, unittest.TestSuite([case for _, case in selected]))

    unittest.TextTestRunner.run = run


def run_program(words):
    """Run `-m MODULE ARGS` or `SCRIPT ARGS` as python does."""
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
    recorder, process = UnittestRecorder(), os.getpid()
    install_recorder(recorder)
    if options.files:
        with open(options.files) as lines:
            files = [line.rstrip("\n") for line in lines if line.strip()]
        if files:
            restrict_files(files)
    try:
        run_program(words)
    finally:
        if os.getpid() == process:  # not a child that a test forked
            recorder.write_report(options.report)
            recorder.print_lines()


if __name__ == "__main__":
    main()
