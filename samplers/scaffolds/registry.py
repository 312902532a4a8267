"""Scaffolds by name. A new one is one module and one row; a user's own is named MODULE:CLASS."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from core.errors import UsageError
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


def load_scaffold(word: str) -> Scaffold:
    """Return the scaffold of that name, or of MODULE:CLASS, which is looked for in the working directory as well.

    Raises:
        UsageError: there is none, or the class is no scaffold.
    """
    if ":" not in word and word not in SCAFFOLDS:
        raise UsageError(f"--scaffold: {word} is unknown", advice=f"one of {', '.join(SCAFFOLDS)}, or MODULE:CLASS")
    module, _, name = SCAFFOLDS.get(word, word).partition(":")
    if word not in SCAFFOLDS and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--scaffold {word}: {error}", advice="MODULE:CLASS names a class that can be imported") from (
            error
        )
    if not (isinstance(found, type) and issubclass(found, Scaffold)):
        raise UsageError(f"--scaffold {word} is no subclass of samplers.scaffolds.base.Scaffold")
    return found()
