"""Plug-in of pytest: the report is written by the process that began the session, not by a child that a test forked.

A child that returns from its test runs to the end of the session as its parent does. The report forgets the failures of
subtests once their test has ended: it would look through all of them after each further test. Needs pytest 2.8 and
nothing else; nothing of it is left for the tests to see but its module.
"""

import os
import sys

import pytest

PROCESS = os.getpid()
WRITERS = []


def leave_path():
    """Remove the folder of this module from the paths of this process and its children."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != folder]
    rest = [path for path in os.environ.pop("PYTHONPATH", "").split(os.pathsep) if path != folder]
    if any(rest):
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Let a forked child write its report nowhere."""
    if os.getpid() != PROCESS:
        for writer in find_writers(session.config):
            writer.logfile = os.devnull


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    """Find what writes the report."""
    WRITERS[:] = find_writers(session.config)


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_runtest_logfinish(nodeid):
    """Let the report forget the failures of a test that has ended."""
    for writer in WRITERS:
        reports = getattr(writer, "open_reports", [])
        reports[:] = [report for report in reports if report.nodeid != nodeid]


def find_writers(config):
    """Return the plug-ins that write a report."""
    return [plugin for plugin in config.pluginmanager.get_plugins() if type(plugin).__name__ == "LogXML"]


leave_path()
