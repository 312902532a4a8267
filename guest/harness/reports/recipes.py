"""Records of `recipe_shell.py`: lines of makefile recipes, mapped to the sources of the programs that they run."""

from __future__ import annotations

import json

from . import xunit
from .core import is_exit_of_assertion, parse_number
from .cxx import CxxSources

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_OBJECTS = (".o", ".lo")


def convert_make(outputs, tree, results):
    """Convert the JSON lines in `recipes.jsonl`: an exit status for each test, and the programs that were made.

    A line that failed to compile or link test sources is a file that could not be collected.
    """
    rows = [row for name, content in outputs if name.endswith("recipes.jsonl") for row in _read_rows(content)]
    programs = RecipePrograms(tree, rows)
    for row in rows:
        if isinstance(row.get("test"), str) and isinstance(row.get("code"), int):
            file = programs.find_test_file(_list_texts(row, "programs"), str(row.get("folder", "")))
            status = "failed" if row["code"] else "passed"
            message = "exit status %d" % row["code"] if row["code"] else ""
            seconds, by_assertion = parse_number(row.get("seconds")), is_exit_of_assertion(row["code"])
            results.add(file, row["test"], status, message, seconds, by_assertion=by_assertion)
    for row in rows:
        for file in programs.find_test_sources(_list_texts(row, "failed")):
            results.add_uncollected(file, "cannot be compiled or linked: exit status %s" % row.get("code"))


def _read_rows(content):
    for line in content.split(b"\n"):
        try:
            row = json.loads(line) if len(line) < 1_000_000 else None
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _list_texts(row, key):
    values = row.get(key)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _rank_source(path):
    """Return the key that sorts sources named for tests to the front."""
    return "test" not in path.rpartition("/")[2].lower(), "test" not in path.lower(), path


class RecipePrograms:
    """Map from programs to the sources that they were made from."""

    def __init__(self, tree, rows):
        self.tree = tree
        self.sources = CxxSources(tree)
        self.made = {}  # program or object -> words it is made from
        for row in rows:
            if isinstance(row.get("made"), str):
                self.made.setdefault(row["made"], []).extend(_list_texts(row, "sources"))

    def find_test_file(self, programs, folder):
        """Return the file of a test: a source or script of its programs, else the makefile of the folder."""
        for program in programs:
            found = self._list_sources(program)
            stem = xunit.file_stem(program)
            ranked = sorted(found, key=lambda path, stem=stem: (xunit.file_stem(path) != stem, *_rank_source(path)))
            if ranked or self.tree.has_file(program):
                return ranked[0] if ranked else program
        prefix = "" if folder in ("", ".") else folder + "/"
        makefiles = [prefix + name for name in _MAKEFILES]
        return next((path for path in makefiles if self.tree.has_file(path)), makefiles[-1])

    def find_test_sources(self, words):
        """Return the sources named as tests among words and what these were made from."""
        found = [path for word in words for path in self._list_sources(word)]
        return [path for path in dict.fromkeys(found) if "test" in path.lower()]

    def _list_sources(self, word, depth=0):
        if not word.endswith(_OBJECTS) and word in self.sources.paths:
            return [word]
        words = self.made.get(word, ()) if depth < 4 else ()
        found = [path for one in words for path in self._list_sources(one, depth + 1)]
        is_object = word.endswith(_OBJECTS)
        return found or [path for path in self._guess_source(word) if is_object or depth == 0]

    def _guess_source(self, word):
        same = self.sources.stems.get(xunit.file_stem(word), [])
        folder = word.rpartition("/")[0]
        return sorted(same, key=lambda path: (path.rpartition("/")[0] != folder, *_rank_source(path)))[:1]
