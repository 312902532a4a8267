"""Known constraints: shipped and own files, and faults that are named with file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import InputError
from derivers.instructions.constraints import fill_facts, load_constraints

OWN = """
name = "no-git-push"
family = "own"
sources = ["system"]
texts = ["Keep away from remotes."]
check = "never-command"
arguments = {commands = ["git push"]}
activates = "a command"
breach = "git push"
"""


def write(folder: Path, text: str) -> Path:
    (folder / "no-git-push.toml").write_text(text)
    return folder


def test_own_constraints_replace_shipped_ones_of_the_same_name(tmp_path: Path) -> None:
    constraints = load_constraints(write(tmp_path, OWN))
    assert constraints["no-git-push"].texts == ("Keep away from remotes.",)
    assert len(constraints) == len(load_constraints())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('check = "never-command"', 'check = "no-such"', "check: no-such is unknown"),
        ('["system"]', '["billboard"]', "field sources"),
        ("commands =", "programs =", "arguments.programs: never-command has no such argument"),
        ('"Keep away from remotes."', '"Never use sudo."', "wording of no-sudo are part of each other"),
        ('"Keep away from remotes."', "", "field texts"),
        ('family = "own"', "", "field family is missing"),
        ('family = "own"', 'family = "own', "no-git-push.toml"),
        ('name = "no-git-push"', 'name = "No Push"', "field name"),
    ],
)
def test_a_fault_is_named_with_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_constraints(write(tmp_path, OWN.replace(old, new)))
    line = caught.value.format_line()
    assert str(tmp_path / "no-git-push.toml") in line
    assert message in line
    assert "\n" not in line


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        load_constraints(tmp_path / "missing")


def test_facts_in_patterns_stand_for_themselves() -> None:
    facts = {"word": "a.b", "tests": "x|y"}
    filled = fill_facts({"patterns": ["{word}$"], "commands": ["{tests}"], "line": "{word}"}, facts)
    assert filled == {"patterns": ["a\\.b$"], "commands": ["x|y"], "line": "a.b"}
    assert fill_facts("{unknown}", facts) == "{unknown}"
