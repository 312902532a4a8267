"""Context rules by the words of the command line: a preset with settings, or a class of the user's own."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from core.errors import UsageError
from core.plugins import load_plugin
from samplers.context.rules import PRESETS, ClearingRule, ContextRule, Kept

OPTION = "--context"
_ADVICE = f"one of {', '.join(PRESETS)} such as note:trigger=0.5,last=3, or MODULE:CLASS"


def load_context_rule(word: str) -> ContextRule:
    """Return the rule of a preset, `NAME` or `NAME:SETTING=VALUE,...`, or of MODULE:CLASS.

    Raises:
        UsageError: there is none, or a setting is unknown or has a value that it cannot have.
    """
    name, colon, rest = word.partition(":")
    if rule := PRESETS.get(name):
        if not rest and not colon:
            return rule
        if isinstance(rule, ClearingRule):
            return replace(rule, **_read_settings(rest))
        raise UsageError(f"{OPTION}: {name} has no settings", advice=_ADVICE)
    if not colon:
        raise UsageError(f"{OPTION}: {word} is unknown", advice=_ADVICE)
    plugin = load_plugin(OPTION, word, advice="MODULE:CLASS names a class that can be imported")
    if not (isinstance(plugin, type) and issubclass(plugin, ContextRule)):
        raise UsageError(f"{OPTION} {word} is no subclass of samplers.context.rules.ContextRule")
    if missing := sorted(plugin.__abstractmethods__):
        raise UsageError(f"{OPTION} {word} has no {' and no '.join(missing)}")
    return plugin()


def _read_settings(text: str) -> dict[str, Any]:
    """Return the settings of `SETTING=VALUE,...`."""
    settings: dict[str, Any] = {}
    kinds = {field.name: field.type for field in fields(ClearingRule)[1:]}
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if name not in kinds or not equals:
            raise UsageError(
                f"{OPTION}: {pair or 'an empty setting'} is no setting", advice=f"one of {', '.join(kinds)}"
            )
        settings[name] = _read_value(name, str(kinds[name]), value)
    return settings


def _read_value(name: str, kind: str, text: str) -> Any:
    """Return the value of a setting; `kind`: its type as the rule declares it."""
    try:
        value: int | float | Kept = {"int": int, "float": float, "Kept": Kept}[kind](text)
    except ValueError as error:
        words = ", ".join(Kept) if kind == "Kept" else "a number"
        raise UsageError(f"{OPTION}: {name}={text} is not {words}") from error
    if name == "trigger" and not 0 <= float(value) <= 1:
        raise UsageError(f"{OPTION}: {name}={text} is no share from 0 to 1")
    if kind == "int" and int(value) < (name == "window"):
        raise UsageError(f"{OPTION}: {name}={text} is too small")
    return value
