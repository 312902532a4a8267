"""A repository with a history of small bug fixes, made from words and families of bugs.

Each change repairs one module of the package `depot` and adds the test that its bug fails. A module's name is a verb
and a noun, so that the names of held-out changes are new while their words are not. Which edit is right depends on the
statement and on the module's text together.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import TinyRepo
from tests.sample import LICENSE

PACKAGE = "depot"
VERBS = ("pick", "list", "find", "sort", "pack", "load")
NOUNS = ("pears", "boxes", "bolts", "lamps", "tiles", "seeds")
SEED = 5


@dataclass(frozen=True, kw_only=True)
class BugFamily:
    """Modules with the same bug. `old` becomes `new`; `kept` holds before and after, `broken` only after."""

    old: str
    new: str
    body: str
    complaint: str
    kept: str
    broken: str


FAMILIES = (
    BugFamily(
        old="value < limit",
        new="value <= limit",
        body="[value for value in values if {}]",
        complaint="A value equal to the limit is left out.",
        kept="([1, 9], 5) == [1]",
        broken="([1, 5, 9], 5) == [1, 5]",
    ),
    BugFamily(
        old="value > limit",
        new="value >= limit",
        body="[value for value in values if {}]",
        complaint="A value equal to the limit is left out.",
        kept="([1, 9], 5) == [9]",
        broken="([1, 5, 9], 5) == [5, 9]",
    ),
    BugFamily(
        old="value <= limit",
        new="value < limit",
        body="[value for value in values if {}]",
        complaint="A value equal to the limit is kept.",
        kept="([1, 9], 5) == [1]",
        broken="([1, 5, 9], 5) == [1]",
    ),
    BugFamily(
        old="value >= limit",
        new="value > limit",
        body="[value for value in values if {}]",
        complaint="A value equal to the limit is kept.",
        kept="([1, 9], 5) == [9]",
        broken="([1, 5, 9], 5) == [9]",
    ),
    BugFamily(
        old="sum(values)",
        new="sum(values) - limit",
        body="max({}, 0)",
        complaint="The limit is not taken off the sum.",
        kept="([], 0) == 0",
        broken="([4, 5], 5) == 4",
    ),
    BugFamily(
        old="len(values)",
        new="len(values) - limit",
        body="max({}, 0)",
        complaint="The limit is not taken off the length.",
        kept="([], 0) == 0",
        broken="([4, 5, 6], 1) == 2",
    ),
)


@dataclass(frozen=True, kw_only=True)
class BugFix:
    """One change of the history."""

    number: int
    """Of its pull request."""
    module: str
    """Such as `pick_pears`."""
    family: BugFamily
    is_held_out: bool
    """Whether no stage of training may see it."""

    @property
    def path(self) -> str:
        """Of the module."""
        return f"{PACKAGE}/{self.module}.py"

    @property
    def test_path(self) -> str:
        """Of its tests."""
        return f"tests/test_{self.module}.py"

    def write_module(self, expression: str) -> str:
        """Return the module's text with the old or the new expression."""
        return f"def {self.module}(values, limit):\n    return {self.family.body.format(expression)}\n"

    def write_tests(self, *, repaired: bool) -> str:
        """Return the text of its tests, with the one that the bug fails where it is repaired."""
        call = f"assert {self.module}"
        tests = [f"def test_some_values():\n    {call}{self.family.kept}\n"]
        if repaired:
            tests.append(f"def test_the_limit():\n    {call}{self.family.broken}\n")
        return f"from {PACKAGE}.{self.module} import {self.module}\n\n\n" + "\n\n".join(tests)

    @property
    def message(self) -> str:
        """Title and text of its pull request, from which the problem statement comes."""
        return f"Correct {self.path}\n\n{self.family.complaint}"


def plan_fixes(n_train: int, n_held_out: int) -> list[BugFix]:
    """Return the changes of a history, in an order of chance, with held-out ones among the others.

    Among all that there can be, each word and each family is as often held out as every other, and each word occurs
    with every family.
    """
    cells = [(at, shift) for shift in range(len(FAMILIES)) for at in range(len(VERBS))]
    random.Random(SEED).shuffle(cells)  # noqa: S311 - the same history every time
    left = {False: n_train, True: n_held_out}
    fixes: list[BugFix] = []
    for at, shift in cells:
        is_held_out = (at + 2 * shift) % 3 == 1
        if left[is_held_out]:
            left[is_held_out] -= 1
            module = f"{VERBS[at]}_{NOUNS[(at + shift) % len(NOUNS)]}"
            fixes.append(BugFix(number=len(fixes) + 1, module=module, family=FAMILIES[shift], is_held_out=is_held_out))
    return fixes


def make_repository(path: Path, fixes: Sequence[BugFix]) -> None:
    """Make the repository: a first commit with all bugs, and a merged pull request for each fix."""
    repo = TinyRepo(path)
    files = {fix.path: fix.write_module(fix.family.old) for fix in fixes}
    files |= {fix.test_path: fix.write_tests(repaired=False) for fix in fixes}
    pyproject = _PYPROJECT.format(package=PACKAGE)
    repo.commit("Begin", files | {"pyproject.toml": pyproject, "LICENSE": LICENSE, f"{PACKAGE}/__init__.py": ""})
    for fix in fixes:
        branch = f"change-{fix.number}"
        repo.git("checkout", "-q", "-b", branch)
        repo.commit(
            fix.message,
            {fix.path: fix.write_module(fix.family.new), fix.test_path: fix.write_tests(repaired=True)},
        )
        repo.git("checkout", "-q", "main")
        repo.git(
            "merge", "-q", "--no-ff", "-m", f"Merge pull request #{fix.number} from ada/{branch}\n\n{fix.message}", "-"
        )


_PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{package}"
version = "1.0"
requires-python = ">=3.9"
license = {{text = "MIT"}}

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools]
packages = ["{package}"]
"""
