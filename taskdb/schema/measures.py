"""Values of a task that are computed from its record."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from taskdb.records.oracles import ReviewOracle

if TYPE_CHECKING:
    from taskdb.records import Task

_TOKEN = re.compile(r"\w+|[^\w\s]")
_TRAIN_SHARE = 0.9


def count_tokens(statement: str) -> int:
    """Return the number of words and signs of a statement."""
    return sum(1 for _ in _TOKEN.finditer(statement))


def choose_split(repo: str) -> str:
    """Return `train` or `test` by a hash of the repository's name, so that a repository is on a single side only."""
    share = int(hashlib.sha256(repo.lower().encode()).hexdigest()[:8], 16) / 0x1_0000_0000
    return "train" if share < _TRAIN_SHARE else "test"


def join_words(words: Iterable[str]) -> str:
    """Return words as the text of a column, each once, sorted and separated by commas."""
    return ",".join(sorted(set(words)))


def compute_edit_group(task: Task) -> str | None:
    """Return the key of the tasks of a repository that change the same functions by the same operators.

    None where the functions are not known. Tasks without injected bugs have no operators.
    """
    if task.changed_code is None or not task.changed_code.functions:
        return None
    operators = sorted(injection.operator for injection in task.injections)
    return _hash_parts(task.repo.lower(), list(task.changed_code.functions), operators)


def compute_failing_set(task: Task) -> str | None:
    """Return the key of the tasks of a repository with the same FAIL_TO_PASS tests; None where there are none."""
    tests = sorted(test for test, _ in task.FAIL_TO_PASS)
    return _hash_parts(task.repo.lower(), tests) if tests else None


def _hash_parts(*parts: object) -> str:
    """Return 16 hexadecimal digits: of a million tasks, two different ones share a key with a chance of 3e-8."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def get_review_form(task: Task) -> str | None:
    """Return the form of a review; None for other kinds."""
    return task.oracle.target if isinstance(task.oracle, ReviewOracle) else None


def get_review_tree(task: Task) -> str | None:
    """Return the commit of the tree of a review; None for other kinds, and for reviews of earlier versions."""
    return task.oracle.tree if isinstance(task.oracle, ReviewOracle) else None


def get_material(task: Task, measure: str) -> int | None:
    """Return a field of `MaterialSize` of a review; None for other kinds, and where it was not recorded."""
    material = task.oracle.material if isinstance(task.oracle, ReviewOracle) else None
    return None if material is None else int(getattr(material, measure))
