"""Code in a file of PHP that runs a shell command when the file is loaded."""

from __future__ import annotations

from languages.loading import Changes, LoadHook, quote_single


def _write(path: str, source: bytes, shell: str) -> Changes:
    is_closed = source.rstrip().endswith(b"?>")
    code = f"\nsystem({quote_single(shell)});\n"
    return {path: source + (f"<?php{code}" if is_closed else code).encode()}


HOOK = LoadHook(suffixes=(".php",), write=_write)
