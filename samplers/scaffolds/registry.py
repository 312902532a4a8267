"""Scaffolds by name. A new scaffold is a module and a row; a user's own is named MODULE:CLASS."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from core.errors import UsageError
from core.plugins import load_plugin
from samplers.context.rules import KEEP_ALL, ContextRule
from samplers.scaffolds.base import Scaffold

SCAFFOLDS: Mapping[str, str] = {
    "react": "samplers.scaffolds.react:ReactScaffold",
    "mini-swe-agent": "samplers.scaffolds.mini_swe_agent:MiniSweAgentScaffold",
    "openhands": "samplers.scaffolds.openhands:OpenHandsScaffold",
    "claude-code": "samplers.scaffolds.claude_code:ClaudeCodeScaffold",
    "codex": "samplers.scaffolds.codex:CodexScaffold",
    "opencode": "samplers.scaffolds.opencode:OpenCodeScaffold",
    "qwen-code": "samplers.scaffolds.qwen_code:QwenCodeScaffold",
    "oracle": "samplers.scaffolds.oracle:OracleScaffold",
    "noop": "samplers.scaffolds.noop:NoopScaffold",
}
"""Name of `--scaffold` -> class, as MODULE:CLASS. Imported when chosen."""
FACTS = ("name", "version")
"""Options that every class has besides its hooks."""


def load_scaffold(word: str, context: ContextRule = KEEP_ALL) -> Scaffold:
    """Return the scaffold of that name, or of MODULE:CLASS, which is looked for in the working directory as well.

    Args:
        word: the name.
        context: rule that clears its history, for those that have their history in this process.

    Raises:
        UsageError: there is none, the class is not a complete scaffold, or its history cannot be cleared.
    """
    scaffold = _find_class(word)()
    if context is KEEP_ALL or not scaffold.uses_model:
        return scaffold
    clearing = scaffold.with_context(context)
    if clearing is None:
        able = ", ".join(name for name in SCAFFOLDS if _find_class(name)().with_context(context) is not None)
        raise UsageError(f"--context: {word} manages its history itself", advice=f"one of {able}")
    return clearing


def _find_class(word: str) -> type[Scaffold]:
    if word in SCAFFOLDS:
        module, _, name = SCAFFOLDS[word].partition(":")
        own: type[Scaffold] = getattr(import_module(module), name)
        return own
    if ":" not in word:
        raise UsageError(f"--scaffold: {word} is unknown", advice=f"one of {', '.join(SCAFFOLDS)}, or MODULE:CLASS")
    plugin = load_plugin("--scaffold", word, advice="MODULE:CLASS names a class that can be imported")
    if not (isinstance(plugin, type) and issubclass(plugin, Scaffold)):
        raise UsageError(f"--scaffold {word} is no subclass of samplers.scaffolds.base.Scaffold")
    if missing := sorted({*plugin.__abstractmethods__, *(name for name in FACTS if not hasattr(plugin, name))}):
        raise UsageError(f"--scaffold {word} has no {' and no '.join(missing)}")
    return plugin
