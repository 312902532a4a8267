"""The databases of tests/taskdb. Tests with torch or a trainer are run by test_training.py and test_trainers.py."""

from importlib.util import find_spec

from tests.taskdb.conftest import empty_postgresql, server

__all__ = ["empty_postgresql", "server"]

collect_ignore = ["trainers", *([] if find_spec("torch") else ["training"])]
