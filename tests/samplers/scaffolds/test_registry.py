"""A scaffold or function of the user's own that cannot be used is a mistake of one line, never a traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.errors import UsageError
from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from samplers.trajectories.credit import load_credit

MODULES = {
    "falls_over": "raise RuntimeError('no licence')\n",
    "misspelt": "def run(:\n",
    "nameless": (
        "from samplers.scaffolds.base import AgentEnd, Scaffold\n"
        "class Nameless(Scaffold):\n"
        "    def agent_run(self, session):\n"
        "        return AgentEnd()\n"
    ),
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize("name", SCAFFOLDS)
def test_every_scaffold_of_the_list_is_there_under_its_name(name: str) -> None:
    assert load_scaffold(name).name == name


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("telepathy", "one of react, "),
        (":Agent", "Empty module name"),
        ("no_such_module:Agent", "MODULE:CLASS"),
        ("json:JSONDecoder", "is no subclass"),
        ("json:loads", "is no subclass"),
        ("samplers.scaffolds.base:Scaffold", "has no agent_run and no name and no version"),
        ("samplers.scaffolds.base:CommandScaffold", "has no build_command"),
        ("nameless:Nameless", "has no name and no version"),
        ("falls_over:Agent", "falls_over fails: RuntimeError: no licence"),
        ("misspelt:Agent", "misspelt fails: SyntaxError"),
    ],
)
def test_a_scaffold_that_cannot_be_used_is_an_error_of_usage(word: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_scaffold(word)
    assert "--scaffold" in caught.value.format_line()
    assert message in caught.value.format_line()


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    ("word", "message"),
    [("falls_over:divide", "falls_over fails: RuntimeError: no licence"), (":divide", "Empty module name")],
)
def test_a_credit_function_whose_module_fails_is_an_error_of_usage(word: str, message: str) -> None:
    with pytest.raises(UsageError, match="--credit") as caught:
        load_credit(word)
    assert message in caught.value.format_line()
