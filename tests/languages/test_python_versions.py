"""Which Python versions are tried, and in which order."""

from __future__ import annotations

from datetime import date

import pytest

from languages.facts import Fact, FactKind
from languages.python.versions import rank_versions

AVAILABLE = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
DAY = date(2024, 6, 1)


def make_fact(kind: FactKind, value: str, path: str = "pyproject.toml") -> Fact:
    return Fact(kind=kind, value=value, path=path, line=1)


def test_a_version_that_had_just_been_released_is_the_last_to_be_tried() -> None:
    versions = [version.value for version in rank_versions([], AVAILABLE, date(2024, 3, 1))]
    assert versions == ["3.11", "3.10", "3.9", "3.8", "3.12"]
    listed = [make_fact(FactKind.PYTHON, "3.10")]
    assert [version.value for version in rank_versions(listed, AVAILABLE, date(2024, 3, 1))] == ["3.10", "3.11"]


@pytest.mark.parametrize(
    ("facts", "versions"),
    [
        ([], ["3.12", "3.11", "3.10", "3.9", "3.8"]),
        ([make_fact(FactKind.REQUIRES_PYTHON, ">=3.10")], ["3.12", "3.11", "3.10"]),
        ([make_fact(FactKind.REQUIRES_PYTHON, ">=3.9,<3.11")], ["3.10", "3.9"]),
        # what the repository lists is what it supports; the default follows, older ones do not
        ([make_fact(FactKind.PYTHON, "3.10"), make_fact(FactKind.PYTHON, "3.11")], ["3.11", "3.10", "3.12"]),
        (
            [make_fact(FactKind.PYTHON, "3.9", "tox.ini"), make_fact(FactKind.PYTHON, "3.11")],
            ["3.9", "3.11", "3.12"],
        ),
    ],
    ids=["nothing", "a minimum", "a range", "a list", "two files"],
)
def test_older_versions_follow_only_where_the_repository_lists_none(facts: list[Fact], versions: list[str]) -> None:
    assert [version.value for version in rank_versions(facts, AVAILABLE, DAY)] == versions
