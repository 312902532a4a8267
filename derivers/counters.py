"""Counters in test files, to find out whether a test does as much work as before."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from languages.parsing import create_parser
from languages.registry import find_parsed_language
from languages.work import Insertion


def add_counters(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the test files with counters, and the files that define these.

    Files of languages without counters are left out.
    """
    counted: dict[str, bytes] = {}
    for path, source in files.items():
        language, syntax = find_parsed_language(path)
        if language is None or syntax is None or language.counters is None:
            continue
        root = create_parser(syntax).parse(source).root_node
        name, text = language.counters.build_helper(root)
        changed = _insert(source, sorted(language.counters.find_insertions(root)))
        counted[path] = changed + text if name is None else changed
        if name is not None:
            counted[posixpath.join(posixpath.dirname(path), name)] = text
    return counted


def _insert(source: bytes, insertions: Iterable[Insertion]) -> bytes:
    parts, last = [], 0
    for insertion in insertions:
        parts += [source[last : insertion.position], insertion.text.encode()]
        last = insertion.position
    return b"".join([*parts, source[last:]])
