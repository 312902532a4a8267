"""Test files of a Julia package: those that test/runtests.jl includes."""

from __future__ import annotations

import posixpath
import re

from languages.source_tree import SourceTree

MAIN = "test/runtests.jl"
TEST_FILE = r"(^|/)test/.*\.jl$"
_COMMENT = re.compile(r"#=.*?=#|^\s*#.*?$", re.DOTALL | re.MULTILINE)
_TEST = re.compile(r"@test(_\w+)?\b")
_DEFINITION = re.compile(
    r"^([ \t]*)(?:function|macro)\b.*?^\1end\b|^[ \t]*[\w!]+\([^\n]*\)[ \t]*=[^=\n][^\n]*", re.DOTALL | re.MULTILINE
)
"""A function or macro, whose tests are those of the file that calls it."""
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SYMBOL = re.compile(r"(?<![\w:]):(\w+)")
_INTERPOLATION = re.compile(r"\$(\w+|\([^()]*\))")
_LISTING = re.compile(r"\b(readdir|walkdir|glob)\(")


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return the files with tests that runtests.jl of the package in `folder` includes, itself among them; sorted.

    Names may stand in a list (`for name in ["a", "b"] include("test_$name.jl")`). Code that lists a folder includes all
    of its files.
    """
    main = posixpath.join(folder, MAIN)
    start = posixpath.dirname(main) + "/"
    paths = sorted(path for path in tree.entries if path.startswith(start) and path.endswith(".jl"))
    texts = {path: _COMMENT.sub("", text) for path, text in tree.read_many(paths[:3000]).items()}
    test_files, todo = {main}, [main]
    while todo:
        path = todo.pop()
        text = texts.get(path, "")
        names, lists, walks = _read_names(text), _LISTING.search(text) is not None, "walkdir(" in text
        for other in texts if names or lists else ():
            inside = posixpath.relpath(other, posixpath.dirname(path))
            is_below = not inside.startswith("../") and ("/" not in inside or walks)
            if other not in test_files and (_is_named(inside, names) or (lists and is_below)):
                test_files.add(other)
                todo.append(other)
    with_tests = [path for path in sorted(test_files) if _TEST.search(texts.get(path, ""))]
    return [path for path in with_tests if _TEST.search(_DEFINITION.sub("", texts[path]))] or with_tests


def _read_names(text: str) -> set[str]:
    """Return the texts in quotes; where a text has a variable, with each of the others in its place."""
    literals = _LITERAL.findall(text)
    words = [word for word in (*literals, *_SYMBOL.findall(text)) if "$" not in word]
    patterns = [_INTERPOLATION.sub("$", literal) for literal in literals]
    filled = [pattern.replace("$", word) for pattern in patterns if pattern.count("$") == 1 for word in words]
    return {posixpath.normpath(word) for word in (*words, *filled)}


def _is_named(path: str, names: set[str]) -> bool:
    return any(
        name in names
        for spelling in (path, posixpath.basename(path))
        for name in (spelling, spelling.removesuffix(".jl"))
    )
