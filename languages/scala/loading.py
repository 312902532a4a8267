"""Code in a file of Scala that runs a shell command when its classes are used."""

from __future__ import annotations

import json

from languages.loading import Changes, LoadHook, insert_after


def _write(path: str, source: bytes, shell: str) -> Changes:
    """The body of an object runs at its first use, that of a class when it has an instance."""
    code = f' scala.sys.process.Process(Seq("sh", "-c", {json.dumps(shell)})).!;'.encode()
    return insert_after(path, source, rb"\b(?:class|object)\s+\w+[^{}\n]*\{", code)


HOOK = LoadHook(suffixes=(".scala",), write=_write)
