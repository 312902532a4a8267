"""Plug-in of pytest: the report is written by the process that began the session, not by a child that a test forked.

A child that returns from its test runs to the end of the session as its parent does. Needs pytest 2.8 and nothing else;
nothing of it is left for the tests to see but its module.
"""

import os
import sys

import pytest

PROCESS = os.getpid()


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
        for plugin in session.config.pluginmanager.get_plugins():
            if type(plugin).__name__ == "LogXML":
                plugin.logfile = os.devnull


leave_path()
