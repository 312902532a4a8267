"""Pytest plug-in that runs given tests many times, so that their time is large compared with the start of pytest.

`workload.txt` beside this file holds the number of rounds, the clock, the tree's folder, then one test per line with
its runs in one round and the work that it must do. Every round is a new fork of this process, so that no round profits
from memory that an earlier one filled. Then each test runs once more, which is the run that pytest reports. The
reported time is that of all runs of the test by the chosen clock, without its setup.

The work of a test is the number of lines of the test files that it executes, and the sizes of what they hand to the
program. A test that does noticeably less than it must has become faster by doing less, and fails. The clock `work`
reports the work in place of seconds.
"""

import os
import resource
import sys
import time
import warnings

import pytest

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.txt")) as lines:
    ROUNDS, CLOCK, TREE, *ROWS = lines.read().splitlines()
RUNS = {test: int(runs) for runs, _, test in (row.split(" ", 2) for row in ROWS)}
REQUIRED_WORK = {test: float(work) for _, work, test in (row.split(" ", 2) for row in ROWS)}
KEPT_SHARE = 0.9  # of the required work, because some of it may depend on chance
FILES = {test.partition("::")[0] for test in RUNS}


START_TIMES = {}
WORK = {}


def _read_clock():
    """Return seconds by the clock: processor time of this process and its finished children, or time of day."""
    if CLOCK == "wall":
        return time.time()
    usages = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _count_work(item):
    """Run a test once in a fork and return its work; -1 where it does not pass."""
    ends = os.pipe()
    child = _fork()
    if child == 0:
        try:
            work = [0]
            paths = {os.path.join(TREE, path) for path in FILES}

            def trace(frame, event, _):
                if frame.f_code.co_filename in paths:
                    work[0] += event in ("call", "line")
                    return trace
                if event == "call" and frame.f_back is not None and frame.f_back.f_code.co_filename in paths:
                    work[0] += _measure_arguments(frame)
                return None

            sys.settrace(trace)
            item.runtest()
            sys.settrace(None)
            if not getattr(item, "_excinfo", None):  # unittest stores failures instead of raising them
                os.write(ends[1], str(work[0]).encode())
        finally:
            os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0]) as file:
        answer = file.read()
    os.waitpid(child, 0)
    return int(answer) if answer.isdigit() else -1


def _measure_arguments(frame):
    """Return the total size of the arguments of a call."""
    code = frame.f_code
    values = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
    return sum(len(value) for value in values if type(value) in (str, bytes, list, tuple, dict, set, frozenset))


def _fork():
    """Fork without Python's warning about threads, which a project may turn into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _find_test_id(item):
    path = os.path.relpath(str(item.fspath), TREE)
    return path, path + "::" + item.nodeid.partition("::")[2]


def pytest_collection_modifyitems(config, items):
    """Deselect the other tests of the same files."""
    selected, deselected = [], []
    for item in items:
        path, test = _find_test_id(item)
        (deselected if path in FILES and test not in RUNS else selected).append(item)
    items[:] = selected
    config.hook.pytest_deselected(items=deselected)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Run all rounds of a test, before its last run."""
    runs = RUNS.get(_find_test_id(item)[1])
    if runs is None:
        return
    required = REQUIRED_WORK[_find_test_id(item)[1]]
    if CLOCK == "work" or required:
        work = _count_work(item)
        if work < KEPT_SHARE * required:
            pytest.fail("the test does less work than before: %d of %d" % (work, required))
        WORK[item.nodeid] = work
    START_TIMES[item.nodeid] = _read_clock()
    for _ in range(int(ROUNDS)):
        child = _fork()
        if child == 0:
            code = 1
            try:
                for _ in range(runs):
                    item.runtest()
                code = 1 if getattr(item, "_excinfo", None) else 0  # unittest stores failures instead of raising them
            finally:
                os._exit(code)
        if os.waitpid(child, 0)[1] != 0:
            pytest.fail("the test does not pass when it runs again")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Put the time by the clock into the report of the call, and none into those of set-up and clean-up."""
    outcome = yield
    if _find_test_id(item)[1] in RUNS:
        measured = 0.0
        if call.when == "call" and item.nodeid in START_TIMES:
            measured = WORK[item.nodeid] if CLOCK == "work" else _read_clock() - START_TIMES[item.nodeid]
        outcome.get_result().duration = float(measured)
