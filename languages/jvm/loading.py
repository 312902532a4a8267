"""Code in classes of Java and Kotlin that runs a shell command when they are used."""

from __future__ import annotations

import json

from languages.loading import Changes, LoadHook, insert_after, quote_interpolated


def write_java(path: str, source: bytes, shell: str) -> Changes:
    """Return a class of Java with code that runs when the class is initialised."""
    code = (
        f' static {{ try {{ new ProcessBuilder("sh", "-c", {json.dumps(shell)}).inheritIO().start().waitFor(); }}'
        " catch (Exception error) { throw new IllegalStateException(error); } }"
    ).encode()
    return insert_after(path, source, rb"\bclass\s+\w+[^{;]*\{", code)


def write_kotlin(path: str, source: bytes, shell: str) -> Changes:
    """Return a file of Kotlin with code that runs when it is used.

    Properties of a file are initialised before its functions run, those of a class when it has an instance.
    """
    start = f'ProcessBuilder("sh", "-c", {quote_interpolated("$")(shell)}).inheritIO().start().waitFor()'
    body = rb"(?<!enum )\b(?:class|object)\s+\w+[^{}\n]*\{"
    text = insert_after(path, source, body, f" init {{ {start} }}".encode()).get(path) or source
    return {path: text + f"\nprivate val runAtLoad = {start}\n".encode()}


JAVA_HOOK = LoadHook(suffixes=(".java",), write=write_java)
KOTLIN_HOOK = LoadHook(suffixes=(".kt",), write=write_kotlin)
