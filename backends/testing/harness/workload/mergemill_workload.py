"""A pytest plug-in that runs named tests many times, so that their time shows beside what starting pytest takes.

Beside it lies `workload.txt`: the number of runs, the tree's folder, then one test a line. Every run but the last is in
a process of its own, forked before the first: what one run has kept in memory is no help to the next.
"""

import os

import pytest

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "workload.txt")) as lines:
    TIMES, TREE, *TESTS = lines.read().splitlines()
FILES = {test.partition("::")[0] for test in TESTS}


def _named(item):
    path = os.path.relpath(str(item.fspath), TREE)
    return path, path + "::" + item.nodeid.partition("::")[2]


def pytest_collection_modifyitems(config, items):
    """Leave out the other tests of the same files."""
    kept, left = [], []
    for item in items:
        path, test = _named(item)
        (left if path in FILES and test not in TESTS else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """All runs but the last."""
    if _named(item)[1] not in TESTS:
        return
    for _ in range(int(TIMES) - 1):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                item.runtest()
                code = 1 if getattr(item, "_excinfo", None) else 0  # unittest's failures are kept, not raised
            finally:
                os._exit(code)
        if os.waitpid(child, 0)[1] != 0:
            pytest.fail("it does not pass when it is run again")
