"""Code in a file of JavaScript or TypeScript that runs a shell command when the file is loaded."""

from __future__ import annotations

import json
import re

from languages.loading import Changes, LoadHook


def _write(path: str, source: bytes, shell: str) -> Changes:
    if re.search(rb"^\s*(import|export)\b", source, re.MULTILINE):
        load = 'import { execSync as runAtLoad } from "node:child_process";'
    else:
        load = 'const runAtLoad = require("child_process").execSync;'
    code = f'\n{load}\ntry {{ runAtLoad({json.dumps(shell)}, {{ stdio: "inherit" }}); }} catch (error) {{}}\n'
    return {path: source + code.encode()}


HOOK = LoadHook(suffixes=(".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), write=_write)
