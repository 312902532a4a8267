"""Three repositories with real code, tests and all kinds of pull requests, for runs over a list of repositories."""

from __future__ import annotations

from pathlib import Path

from tests import sample
from tests.github.handmade import RepositoryBuilder, make_sample_world
from tests.github.world import World

LIST = """\
# three repositories, one under the name it had before

github:ada/greet
github:bob/temps    # two commits, rebased
github:eve/numerals
"""

WARM = "def to_celsius(fahrenheit):\n    return (fahrenheit - 32) / 9 * 5 // 1\n"
WARM_EXACT = "def to_celsius(fahrenheit):\n    return (fahrenheit - 32) / 9 * 5\n"
TEST_WARM = "from temps import to_celsius\n\n\ndef test_freezing():\n    assert to_celsius(32) == 0\n"
TEST_EXACT = f"{TEST_WARM}\n\ndef test_between_degrees():\n    assert 18.3 < to_celsius(65) < 18.4\n"
ROMAN = 'VALUES = {"I": 1, "V": 5, "X": 10}\n\n\ndef parse(text):\n    return sum(VALUES[letter] for letter in text)\n'
ROMAN_RIGHT = f"""{ROMAN.partition("def")[0]}def parse(text):
    total = 0
    for letter, after in zip(text, [*text[1:], "I"]):
        total += -VALUES[letter] if VALUES[letter] < VALUES[after] else VALUES[letter]
    return total
"""
TEST_ROMAN = 'from numerals import parse\n\n\ndef test_adding():\n    assert parse("XVI") == 16\n'
TEST_TAKING = (
    f'{TEST_ROMAN}\n\ndef test_a_smaller_letter_before_a_larger_one_is_taken_away():\n    assert parse("XIV") == 14\n'
)


def make_three_repositories(folder: Path) -> World:
    """Return ada/greet, bob/temps and eve/roman, which was eve/numerals when the list was written."""
    world = make_sample_world(folder)
    _make_temps(world, folder)
    _make_numerals(world, folder)
    world.rename("eve/numerals", "eve/roman")
    return world


def _commit_first_version(shop: RepositoryBuilder, package: str, module: str, tests: str) -> None:
    shop.commit(
        "Begin",
        {
            "pyproject.toml": sample.describe_project(package),
            "LICENSE": sample.LICENSE,
            f"{package}/__init__.py": module,
            f"tests/test_{package}.py": tests,
        },
    )


def _make_temps(world: World, folder: Path) -> None:
    """Add a fix in two commits, rebased, whose title alone names the issue; a bot's change; a closed one."""
    with RepositoryBuilder(world, folder, "bob/temps") as shop:
        _commit_first_version(shop, "temps", WARM, TEST_WARM)
        issue = shop.issue(
            "Degrees are cut off", "to_celsius(65) gives 18.0, it should be about 18.33.", comments=["Still in 1.0."]
        )
        shop.pull(
            f"Keep what is behind the point, fixes #{issue.number}",
            "",
            [{"temps/__init__.py": WARM_EXACT}, {"tests/test_temps.py": TEST_EXACT}],
            how="rebase",
        )
        bumped = sample.describe_project("temps").replace("setuptools>=61", "setuptools>=62")
        shop.pull("Bump setuptools from 61 to 62", "Bumps it.", {"pyproject.toml": bumped}, author="dependabot[bot]")
        shop.pull("Try another way", "Not wanted.", {"temps/__init__.py": WARM}, how="closed")
        shop.publish()


def _make_numerals(world: World, folder: Path) -> None:
    """Add a fix by a deleted account, described only in the pull request."""
    with RepositoryBuilder(world, folder, "eve/numerals") as shop:
        _commit_first_version(shop, "numerals", ROMAN, TEST_ROMAN)
        shop.pull(
            "A smaller letter before a larger one is taken away",
            "parse('XIV') gives 16, it should be 14.",
            {"numerals/__init__.py": ROMAN_RIGHT, "tests/test_numerals.py": TEST_TAKING},
            author=None,
            how="squash",
        )
        shop.publish()
