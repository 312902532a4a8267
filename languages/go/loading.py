"""A file of Go whose package runs a shell command when it is initialised."""

from __future__ import annotations

import json
import posixpath
import re

from languages.loading import Changes, LoadHook


def _write(path: str, source: bytes, shell: str) -> Changes:
    package = re.search(rb"^package\s+(\w+)", source, re.MULTILINE)
    if not package:
        return {}
    code = (
        f'package {package[1].decode()}\n\nimport (\n\t"os"\n\t"os/exec"\n)\n\nfunc init() {{\n'
        f'\tcommand := exec.Command("sh", "-c", {json.dumps(shell)})\n'
        "\tcommand.Stdout, command.Stderr = os.Stdout, os.Stderr\n\t_ = command.Run()\n}\n"
    )
    return {posixpath.join(posixpath.dirname(path), "run_at_load.go"): code.encode()}


HOOK = LoadHook(suffixes=(".go",), write=_write)
