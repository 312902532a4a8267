"""The databases of tests/taskdb; and the tests that need torch are left to test_training.py."""

from importlib.util import find_spec

from tests.taskdb.conftest import postgresql, server

__all__ = ["postgresql", "server"]

collect_ignore = [] if find_spec("torch") else ["training"]
