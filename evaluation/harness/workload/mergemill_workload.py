"""Pytest plug-in that runs given tests many times, so that their time is large compared with the start of pytest.

`workload.txt` beside this file holds the number of rounds, the clock, the tree's folder, then one test per line with
its runs in one round. Every round is a new fork of this process, so that no round profits from memory that an earlier
one filled. Then each test runs once more, which is the run that pytest reports. The reported time is that of all runs
of the test by the chosen clock, without its setup.
"""

import os
import resource
import time
import warnings

import pytest

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.txt")) as lines:
    ROUNDS, CLOCK, TREE, *ROWS = lines.read().splitlines()
RUNS = {test: int(runs) for runs, _, test in (row.partition(" ") for row in ROWS)}
FILES = {test.partition("::")[0] for test in RUNS}


START_TIMES = {}


def _read_clock():
    """Return seconds by the clock: processor time of this process and its finished children, or time of day."""
    if CLOCK == "wall":
        return time.time()
    usages = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


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
    """Put the time by the clock into the report."""
    outcome = yield
    if item.nodeid in START_TIMES:
        outcome.get_result().duration = _read_clock() - START_TIMES[item.nodeid] if call.when == "call" else 0.0
