"""Classes and functions of the user's own, named MODULE:NAME on the command line."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from core.errors import UsageError


def load_plugin(option: str, word: str, *, advice: str) -> object:
    """Return the object that MODULE:NAME names; modules of the working directory are found, too.

    Args:
        option: option where the word was given, for messages.
        word: module and name.
        advice: advice of the error where there is none.

    Raises:
        UsageError: there is none, or its module fails.
    """
    module, _, name = word.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        plugin: object = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{option}: {word} cannot be loaded: {error}", advice=advice) from error
    except Exception as error:
        raise UsageError(f"{option}: {module} fails: {type(error).__name__}: {error}") from error
    return plugin
