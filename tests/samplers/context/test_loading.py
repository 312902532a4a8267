"""Words of `--context`: presets with settings, classes of the user's own, and mistakes of one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.errors import UsageError
from samplers.context.loading import load_context_rule
from samplers.context.rules import KEEP_ALL, PRESETS, ClearingRule, Kept
from samplers.scaffolds.react import ReactScaffold
from samplers.scaffolds.registry import load_scaffold

MODULE = """
from samplers.context.rules import ContextRule
class Newest(ContextRule):
    version = "newest"
    def clear(self, messages, n_tokens):
        return list(messages)[-1:]
class Nothing(ContextRule):
    version = "nothing"
"""


@pytest.fixture
def own_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rules.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_presets_take_settings() -> None:
    assert load_context_rule("none") is KEEP_ALL
    assert load_context_rule("note") is PRESETS["note"]
    rule = load_context_rule("note:trigger=0.5,last=3,window=64000,outputs=last")
    assert rule == ClearingRule(
        name="note", window=64_000, trigger=0.5, first=1, last=3, texts=Kept.LAST, outputs=Kept.LAST
    )


@pytest.mark.usefixtures("own_rules")
def test_a_rule_of_the_users_own_is_part_of_the_version() -> None:
    rule = load_context_rule("own_rules:Newest")
    assert rule.clear([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], 1)[0]["content"] == "b"
    assert load_scaffold("react", rule).version == "1+newest"


def test_a_scaffold_without_a_rule_keeps_its_version() -> None:
    assert load_scaffold("react").version == load_scaffold("react", KEEP_ALL).version == "1"
    assert ReactScaffold.version == "1"
    assert load_scaffold("react", PRESETS["talk"]).version.startswith("1+talk(window=128000,trigger=0.3,")
    assert load_scaffold("oracle", PRESETS["talk"]).version == load_scaffold("oracle").version


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("forget", "one of none, note, talk such as"),
        ("none:last=3", "none has no settings"),
        ("note:", "an empty setting is no setting"),
        ("note:last", "last is no setting (one of window, trigger, first, last, texts, reasoning, outputs)"),
        ("note:name=x", "name=x is no setting"),
        ("note:last=many", "last=many is not a number"),
        ("note:outputs=some", "outputs=some is not kept, last, none"),
        ("note:trigger=1.5", "trigger=1.5 is no share from 0 to 1"),
        ("note:trigger=nan", "trigger=nan is no share from 0 to 1"),
        ("note:last=-1", "last=-1 is too small"),
        ("note:window=0", "window=0 is too small"),
        ("no_module:Rule", "cannot be loaded"),
        ("json:loads", "is no subclass of"),
        ("own_rules:Nothing", "has no clear"),
    ],
)
def test_a_mistake_is_a_line(word: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_context_rule(word)
    line = caught.value.format_line()
    assert "--context" in line
    assert message in line


def test_a_program_clears_its_history_itself() -> None:
    with pytest.raises(UsageError) as caught:
        load_scaffold("codex", PRESETS["note"])
    assert caught.value.format_line() == "--context: codex manages its history itself (one of react)"
