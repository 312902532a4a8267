"""What the messages of a failed resolution blame, as `uv pip install` writes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from languages.draft import Dependency, PlanDraft, Role
from languages.facts import SourcedValue
from languages.python.conflicts import find_conflicts
from languages.python.fallbacks import use_exact_date
from taskdb.records import TestCommand

TWICE = """\
error: No solution found when resolving dependencies
  cause: Because you require attrs==20.1.0 and attrs>=22, we can conclude that your requirements are unsatisfiable.
"""
DEEP = """\
error: No solution found when resolving dependencies
  cause: Because pytest>=8.0.0 depends on pluggy>=1.3.0 and you require pytest>=8, we can conclude that
         you require pluggy>=1.3.0.
         And because you require pluggy==0.5, we can conclude that your requirements are unsatisfiable.
"""
FRAMED = """\
  \u00d7 No solution found when resolving dependencies:
  ╰─▶ Because requests[socks]==2.20.0 depends on urllib3>=1.21.1,<1.25
      and you require requests[socks]==2.20.0 and
      urllib3>=2, we can conclude that your requirements are unsatisfiable.
"""
UNBUILDABLE = """\
   Building stars==1.1.8
error: Failed to build `stars==1.1.8`
  configure: error: Unable to locate the library
"""
MISSING = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of numpy==1.26.4 and you require numpy==1.26.4, we can conclude that
         your requirements are unsatisfiable.
"""


def make_draft(*dependencies: tuple[str, str, Role]) -> PlanDraft:
    return PlanDraft(
        language="python",
        name="p",
        versions=(),
        day=date(2024, 3, 17),
        exclude_newer=date(2024, 3, 1),
        test=TestCommand(framework="pytest", argv=("pytest",)),
        dependencies=tuple(
            Dependency(role=role, source=SourcedValue(text=text, path=path)) for text, path, role in dependencies
        ),
    )


@pytest.mark.parametrize(
    ("log", "dependencies", "blamed"),
    [
        (
            TWICE,
            [("attrs>=22", "pyproject.toml", Role.RUNTIME), ("attrs==20.1.0", "ci.txt", Role.TEST)],
            ["attrs==20.1.0"],
        ),
        (
            DEEP,
            [
                ("pytest>=8", "tox.ini", Role.TEST),
                ("pluggy==0.5", "ci.txt", Role.TEST),
                ("six==1.9", "ci.txt", Role.TEST),
            ],
            ["pluggy==0.5", "pytest>=8"],
        ),
        (
            FRAMED,
            [("urllib3>=2", "setup.py", Role.RUNTIME), ("requests[socks]==2.20.0", "ci.txt", Role.TEST)],
            ["requests[socks]==2.20.0"],
        ),
        (TWICE, [("attrs>=22", "setup.cfg", Role.RUNTIME), ("attrs==20.1.0", "setup.cfg", Role.TEST)], []),
        (
            UNBUILDABLE,
            [("stars", "tox.ini", Role.TEST), ("stars==1.1.8", "ci.txt", Role.TEST), ("six", "ci.txt", Role.TEST)],
            ["stars", "stars==1.1.8"],
        ),
        (UNBUILDABLE, [("stars", "tox.ini", Role.TEST), ("stars>=1", "setup.cfg", Role.OPTIONAL)], []),
        ("ERROR: pluggy==0.5 cannot be built", [("pluggy==0.5", "ci.txt", Role.TEST)], []),
    ],
    ids=[
        "named twice",
        "of a dependency",
        "older form",
        "the project's own",
        "cannot be built",
        "the project's own cannot be built",
        "no resolution",
    ],
)
def test_secondary_versions_of_the_message_are_given_up_and_no_others(
    log: str, dependencies: list[tuple[str, str, Role]], blamed: list[str]
) -> None:
    draft = make_draft(*dependencies)
    assert [conflict.source.text for conflict in find_conflicts(f"downloading\n{log}", draft)] == blamed


def test_a_release_of_the_same_month_is_looked_for_first() -> None:
    draft = make_draft(("numpy==1.26.4", "ci.txt", Role.TEST))
    assert not find_conflicts(MISSING, draft)
    assert [conflict.source.text for conflict in find_conflicts(MISSING, use_exact_date(draft))] == ["numpy==1.26.4"]


def test_only_the_last_message_counts() -> None:
    draft = make_draft(("attrs==20.1.0", "ci.txt", Role.TEST), ("pluggy==0.5", "ci.txt", Role.TEST))
    draft = replace(draft, name="q")
    assert [conflict.source.text for conflict in find_conflicts(TWICE + DEEP, draft)] == ["pluggy==0.5"]
