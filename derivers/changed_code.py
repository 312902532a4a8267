"""Code that a task's gold patch changes: its functions and size, and how far it is from the failing tests.

Tasks are compared by it: which of them change the same function, and how much of the tree a solver has to follow.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from backends.git import GitRepository, list_patch_paths, list_patch_renames
from backends.index import ScratchIndex
from backends.overlay import open_task_tree
from backends.services import Services
from core.patch_headers import parse_patch_set
from evaluation.edits.fixed_files import MAX_FILE_BYTES, FixedFile
from languages.paths import is_source
from mutation.definitions import CodeDefinition, find_innermost, iterate_definitions
from mutation.grammars import find_grammar
from taskdb.records import ChangedCode, Task

MAX_FUNCTIONS = 50
"""Functions of a patch that are recorded."""
MAX_CALL_DEPTH = 5
"""Calls that are followed."""
MAX_TREE_BYTES = 10_000_000
"""Bytes of source files of a tree in which calls are followed."""

_WORD = re.compile(r"[^\W\d]\w*")
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__call__", "constructor", "initialize", "new"})
"""Names of functions that are called by the name of their class."""


class DefinitionWords(NamedTuple):
    """Names by which a definition is called, and the words of its text."""

    names: frozenset[str]
    words: frozenset[str]


class TestWords(NamedTuple):
    """Words of a test's text, and definitions of its file that it may call; of several tests the first has them."""

    words: frozenset[str]
    helpers: list[DefinitionWords]


def measure_changed_code(task: Task, services: Services) -> ChangedCode:
    """Return the code that a task's gold patch changes in the agent's tree.

    Raises:
        GitError: a patch does not apply to the tree.
        InputError: the base tree is neither in the store nor in a clone of the task's source.
    """
    gold, tests = (services.artifacts.get(key) for key in (task.gold_patch, task.test_patch))
    paths, old_names = list_patch_paths(gold), list_patch_renames(gold)
    sources = [path for path in paths if is_source(path)] or paths
    with open_task_tree(task, services) as (history, commit), ScratchIndex(history, commit) as index:
        before = {path: index.read_file(old_names.get(path, path)) for path in sources}
        index.apply(gold)
        changed = {path: list_changed_functions(path, before[path], index.read_file(path)) for path in sources}
        index.apply(tests)
        failing = list(_read_failing_tests(task, index))
    functions = sorted(_format_place(path, name) for path, names in changed.items() for name in names)
    called = {word for names in changed.values() for name in names if name for word in _list_called_names(name)}
    tree = services.clones.open_tree(task.source, task.repo, task.base_commit)
    patched_files = parse_patch_set(gold.decode(errors="replace"))
    return ChangedCode(
        functions=tuple(functions[:MAX_FUNCTIONS]),
        files=len(paths),
        lines=sum(file.added + file.removed for file in patched_files),
        hunks=sum(map(len, patched_files)),
        call_depth=_find_call_depth(called, failing, tree, task.base_commit),
    )


def list_changed_functions(path: str, before: bytes | None, after: bytes | None) -> list[str]:
    """Return the names of the innermost definitions around the changed lines of a file, sorted.

    Lines outside of any definition count only where all are: the result is an empty name then.

    Args:
        path: path of the file, whose suffix is that of its language.
        before: content without the change; None where there is no such file.
        after: content with it.
    """
    texts = (before or b"", after or b"")
    if any(len(text) > MAX_FILE_BYTES or b"\0" in text for text in texts):
        return [""]
    old, new = (list(iterate_definitions(path, text)) for text in texts)
    names = set[str]()
    for i1, i2, j1, j2 in FixedFile(path=path, before=before, after=texts[1]).blocks:
        around_old = (find_innermost(old, line) for line in range(i1 + 1, i2 + 1))
        around_new = (find_innermost(new, line) for line in range(j1 + 1, j2 + 1))
        names.update(definition.name for definition in chain(around_old, around_new) if definition)
    return sorted(names) or [""]


def compute_call_depth(
    changed: Collection[str], tests: Sequence[frozenset[str]], definitions: Sequence[DefinitionWords]
) -> int | None:
    """Return the number of calls from the nearest test to a changed function; None where none was found.

    Args:
        changed: names by which the changed functions are called.
        tests: words of each test.
        definitions: all definitions among which calls are followed.
    """
    frontier, reached = set(changed), set(changed)
    for depth in range(1, MAX_CALL_DEPTH + 1):
        if any(not frontier.isdisjoint(words) for words in tests):
            return depth
        callers = (definition.names for definition in definitions if not frontier.isdisjoint(definition.words))
        frontier = {name for names in callers for name in names} - reached
        reached |= frontier
    return None


def _format_place(path: str, name: str) -> str:
    """Return `PATH::NAME`; bytes of the path that are not UTF-8 are written as escapes."""
    readable = os.fsencode(path).decode(errors="backslashreplace")
    return f"{readable}::{name}" if name else readable


def _find_call_depth(
    changed: Collection[str], failing: Sequence[TestWords], tree: GitRepository, commit: str
) -> int | None:
    """Return the call depth; a test that names a changed function needs no look at the tree."""
    tests = [test.words for test in failing]
    if not changed or not tests:
        return None
    if any(not words.isdisjoint(changed) for words in tests):
        return 1
    helpers = [definition for test in failing for definition in test.helpers]
    return compute_call_depth(changed, tests, [*helpers, *_index_definitions(tree.path, commit)])


def _read_failing_tests(task: Task, index: ScratchIndex) -> Iterator[TestWords]:
    """Yield the FAIL_TO_PASS tests whose files are in the tree.

    A test is the definition of its name; where the file has none, the whole file.
    """
    by_file: dict[str, set[str]] = {}
    for test, _ in task.FAIL_TO_PASS:
        file, _, name = test.partition("::")
        by_file.setdefault(file, set()).add(re.split(r"[\[( /]", name.rpartition("::")[2])[0])
    for file, names in sorted(by_file.items()):
        content = index.read_file(file)
        if content is None or len(content) > MAX_FILE_BYTES:
            continue
        definitions = list(iterate_definitions(file, content))
        own = [definition for definition in definitions if definition.last_name in names]
        texts = [definition.text for definition in own] or [content.decode(errors="replace")]
        helpers = [_read_words(definition) for definition in definitions if definition not in own]
        for text in texts:
            yield TestWords(_split_words(text), helpers)
            helpers = []


def _list_called_names(qualified: str) -> set[str]:
    """Return the names by which a function is called: for a constructor, also that of its class."""
    names = qualified.split(".")
    return {names[-1], names[-2]} if len(names) > 1 and names[-1] in _CONSTRUCTORS else {names[-1]}


def _read_words(definition: CodeDefinition) -> DefinitionWords:
    return DefinitionWords(frozenset(_list_called_names(definition.name)), _split_words(definition.text))


def _split_words(text: str) -> frozenset[str]:
    return frozenset(map(sys.intern, _WORD.findall(text)))


# The tasks of a change have the same base tree, and reading one takes seconds. Workers have changes of their own.
@lru_cache(maxsize=4)
def _index_definitions(path: Path, commit: str) -> tuple[DefinitionWords, ...]:
    """Return the definitions of a tree's source files; none where these are too large."""
    repository = GitRepository(path)
    entries = [
        entry
        for entry in repository.ls_tree(commit)
        if entry.mode.startswith("100") and is_source(entry.path) and find_grammar(entry.path)
    ]
    if sum(entry.size for entry in entries) > MAX_TREE_BYTES:
        return ()
    contents = repository.read_blobs([entry.oid for entry in entries])
    return tuple(
        _read_words(definition)
        for entry, content in zip(entries, contents, strict=True)
        for definition in _iterate_functions(entry.path, content)
    )


def _iterate_functions(path: str, content: bytes) -> Iterable[CodeDefinition]:
    """Yield the definitions of a file without those that contain others: a class names all that its methods name."""
    definitions = list(iterate_definitions(path, content))
    containing = {definition.name.rpartition(".")[0] for definition in definitions}
    return (definition for definition in definitions if definition.name not in containing)
