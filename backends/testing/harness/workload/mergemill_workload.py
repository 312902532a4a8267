"""A pytest plug-in that runs named tests many times, so that their time shows beside what starting pytest takes.

Beside it lies `workload.txt`: the number of rounds, the clock, the tree's folder, then one test a line with its runs in
one round. Every round is a process of its own, forked before the first: what one round has kept in memory is no help to
the next. Then each test is run once more, which is the run that is reported. Its time in the report is that of all its
runs, without what was set up for it, by the clock.
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


SINCE = {}


def _now():
    """Seconds by the clock: of the processor for this process and those it waited for, or of the day."""
    if CLOCK == "wall":
        return time.time()
    usages = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _fork():
    """A fork of this process, though it may have threads: Python warns of it, and a project may make that an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _named(item):
    path = os.path.relpath(str(item.fspath), TREE)
    return path, path + "::" + item.nodeid.partition("::")[2]


def pytest_collection_modifyitems(config, items):
    """Leave out the other tests of the same files."""
    kept, left = [], []
    for item in items:
        path, test = _named(item)
        (left if path in FILES and test not in RUNS else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """All rounds of a test, before its last run."""
    runs = RUNS.get(_named(item)[1])
    if runs is None:
        return
    SINCE[item.nodeid] = _now()
    for _ in range(int(ROUNDS)):
        child = _fork()
        if child == 0:
            code = 1
            try:
                for _ in range(runs):
                    item.runtest()
                code = 1 if getattr(item, "_excinfo", None) else 0  # unittest's failures are kept, not raised
            finally:
                os._exit(code)
        if os.waitpid(child, 0)[1] != 0:
            pytest.fail("it does not pass when it is run again")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """The time by the clock in the report."""
    told = yield
    if item.nodeid in SINCE:
        told.get_result().duration = _now() - SINCE[item.nodeid] if call.when == "call" else 0.0
