"""Code in a module of Lua that runs a shell command when the module is loaded."""

from __future__ import annotations

import json

from languages.loading import Changes, LoadHook


def _write(path: str, source: bytes, shell: str) -> Changes:
    """A module ends with `return`, after which nothing may follow."""
    return {path: f"os.execute({json.dumps(shell)})\n".encode() + source}


HOOK = LoadHook(suffixes=(".lua",), write=_write)
