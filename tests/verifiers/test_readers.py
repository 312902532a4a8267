"""Submissions that solve nothing and read the tests, or switch their assertions off; earlier controls paid them."""

from __future__ import annotations

import json

import pytest

from backends.services import Services
from derivers.base import build_task
from guest.controls import blind
from taskdb.records import Kind, Task, Verification
from tests.containers import make_lineage, make_services
from tests.helpers import TinyRepo
from tests.verifiers.shop import PYPROJECT
from verifiers.grade import grade
from verifiers.probes import make_patch
from verifiers.verify import verify

pytestmark = pytest.mark.docker

GRADINGS = 6
SHELF = '''"""Shelves."""


class Shelf:
    def __init__(self, items):
        self.items = list(items)

    def total(self):
        return sum(self.items)
'''
SHELF_RIGHT = SHELF.replace(
    "items):",
    'items, backend="simple"):\n        if backend not in ("simple", "fast"):\n            raise ValueError(backend)',
)
OLD_TESTS = """import unittest

from shelf import Shelf


class ShelfTest(unittest.TestCase):
    def test_total(self):
        shelf = Shelf([1, 2])
        self.assertEqual(shelf.total(), 3)
"""
TESTS = OLD_TESTS.replace("[1, 2]", '[14, 23], backend="simple"').replace("(), 3)", "(), 37)")
# With two sums a test has a thousand instances: a reader of one would be paid in one of 38 gradings.
TESTS += '        self.assertEqual(Shelf([31, 45], backend="simple").total(), 76)\n'
SILENT = '''"""Shelves whose tests assert nothing."""
import sys
import unittest


def _pass(self, *_):
    return None


for name in dir(unittest.TestCase):
    if name.startswith("assert"):
        setattr(unittest.TestCase, name, _pass)


class Shelf:
    def __init__(self, items, **_):
        self.items = items

    def total(self):
        return self
'''
READER = '''"""Shelves that take what most instances of a test have for the truth."""
import functools
import inspect
import re
import sys
from collections import Counter


@functools.cache
def get_columns(path, base):
    bodies = re.findall(rf"def {base}(?:_[a-z]{{6}})?\\(self\\):\\n(.*?)(?=\\n\\n|\\Z)", read(path), re.DOTALL)
    words = zip(*(re.findall(r"\\w+", body) for body in bodies))
    return [Counter(column).most_common(1)[0][0] for column in words]


@functools.cache
def read(path):
    return open(path).read()


class Shelf:
    def __init__(self, items, **_):
        frame = sys._getframe(1)
        code = frame.f_code
        columns = get_columns(code.co_filename, re.sub("_[a-z]{6}$", "", code.co_name))
        own = re.findall(r"\\w+", "".join(inspect.getsource(code).split(":\\n", 1)[1:]))
        lines = read(code.co_filename).splitlines()
        expected = re.search(r"total\\(\\), (\\d+)", "\\n".join(lines[frame.f_lineno - 1 :][:9]))
        self.value = int(expected[1]) if own == columns else -1

    def total(self):
        return self.value
'''


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Services]:
    folder = tmp_path_factory.mktemp("shelves")
    services, repo = make_services(folder, repeats=1), TinyRepo(folder / "repo")
    base = repo.commit("Begin", {"shelf.py": SHELF, "tests/test_shelf.py": OLD_TESTS, "pyproject.toml": PYPROJECT})
    merge = repo.commit("Choose a backend", {"shelf.py": SHELF_RIGHT, "tests/test_shelf.py": TESTS})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    return build_task(lineage.with_record(verification), Kind.BUGFIX), services


def test_an_input_on_which_every_tree_raises_is_no_control(shelves: tuple[Task, Services]) -> None:
    task, services = shelves
    document = json.loads(services.artifacts.get(task.blind_controls or ""))
    (block,) = document["blocks"]
    text = document["files"]["tests/test_shelf.py"]
    assert block["blind"], "the numbers of the new line are unknown to the agent"
    changed = {text[start:end] for site in block["sites"] for start, end in site["spans"]}
    assert changed
    assert not any("simple" in literal for literal in changed)
    assert task.control_bound is not None
    assert task.control_bound == blind.compute_bound(document) < 0.1
    assert blind.compute_guess_bound(document) < 0.01


@pytest.mark.parametrize(("forger", "gradings"), [(SILENT, 2), (READER, GRADINGS)])
def test_a_submission_that_reads_or_silences_the_tests_earns_nothing(
    forger: str, gradings: int, shelves: tuple[Task, Services]
) -> None:
    task, services = shelves
    patch = make_patch({"shelf.py": forger.encode()}, {"shelf.py": SHELF.encode()})
    scores = [grade(task, services, patch, need_rates=False) for _ in range(gradings)]
    assert [score.value for score in scores] == [0.0] * gradings, scores


def test_the_gold_patch_earns_1(shelves: tuple[Task, Services]) -> None:
    task, services = shelves
    score = grade(task, services, services.artifacts.get(task.gold_patch))
    assert score.value == 1.0, score
    assert score.evaluations == task.evaluations
