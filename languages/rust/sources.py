"""Which files of a Rust tree define tests that a run takes in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from languages.rust.crates import Crate, holding, members, read_crates
from languages.tree import Tree
from taskdb.records import BuildPlan

_TEST = re.compile(r"^\s*#\[(?:test|(?:\w+::)*test(?:\([^\]]*\))?|rstest|test_case\b.*|quickcheck)\]", re.MULTILINE)
_GUARDED_MODULE = re.compile(
    r"#\[cfg\((?P<guard>[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(?P<name>\w+)\s*;"
)
_GUARDED_FILE = re.compile(r"^\s*#!\[cfg\(((?:[^\]]|\](?!\s*$))*)\)\]", re.MULTILINE)
_NOT_RUN = re.compile(
    r"(^|/)(target|vendor|benches|examples|fuzz)/"
    # for systems that no box is: their modules hide behind `cfg`, in macros, too
    r"|(^|/)(windows|win32|macos|darwin|ios|android|kqueue|iocp|wasm(32)?|wasi|redox|[a-z]*bsd|solaris)(/|\.rs$)"
)


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files that hold tests, sorted; with a plan those of its packages that its features take in."""
    paths = [path for path in tree.entries if path.endswith(".rs") and not _NOT_RUN.search(path)]
    texts = tree.read_many(paths)
    found = sorted(path for path in paths if _TEST.search(texts[path]))
    if plan is None:
        return found
    crates = read_crates(tree)
    root = next((one for one in crates if one.folder == plan.test.folder), None)
    if root is None:
        return []
    tested = packages(crates, root, plan.test.argv)
    enabled = features(tested, plan.test.argv)
    left_out = set(_guarded(paths, texts, enabled))
    roots = {path for one in tested for path in one.test_roots(enabled)}
    kept = []
    for path in found:
        crate = holding(crates, path)
        if crate in tested and path not in left_out and _is_reached(path, crate, roots):
            kept.append(path)
    return kept


def packages(crates: Sequence[Crate], root: Crate, argv: Sequence[str]) -> list[Crate]:
    """The packages that a command in the workspace's root tests."""
    inside = members(crates, root)
    excluded = {word for flag, word in pairwise(argv) if flag == "--exclude"}
    named = {word for flag, word in pairwise(argv) if flag == "-p"}
    if named:
        return [one for one in inside if one.name in named]
    if "--workspace" in argv or not root.name:
        return [one for one in inside if one.name not in excluded]
    return [root]


def features(tested: Iterable[Crate], argv: Sequence[str]) -> frozenset[str] | None:
    """Features that a command enables, those that others enable among them; None for all."""
    if "--all-features" in argv:
        return None
    given = [word for flag, word in pairwise(argv) if flag == "--features"]
    names = [name.rpartition("/")[2] for text in given for name in re.split(r"[\s,]+", text) if name]
    found = set(names) | (set() if "--no-default-features" in argv else {"default"})
    known = [one.features for one in tested]
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        for table in known:
            more = [one for one in table.get(name, ()) if isinstance(one, str) and one not in found]
            found.update(more)
            waiting += more
    return frozenset(found)


def _guarded(paths: Collection[str], texts: Mapping[str, str], enabled: frozenset[str] | None) -> Iterable[str]:
    """Files that are compiled only elsewhere or with other features, by what stands before their `mod` or in them."""
    known = set(paths)
    for path, text in texts.items():
        if any(not _holds(match[1], enabled) for match in _GUARDED_FILE.finditer(text)):
            yield path
        if "cfg(" not in text:
            continue
        folder, _, name = path.rpartition("/")
        place = folder if name in ("lib.rs", "main.rs", "mod.rs") else posixpath.join(folder, name[:-3])
        for match in _GUARDED_MODULE.finditer(text):
            if not _holds(match["guard"], enabled):
                module = posixpath.join(place, match["name"])
                yield from (one for one in known if one == f"{module}.rs" or one.startswith(f"{module}/"))


def _holds(guard: str, enabled: frozenset[str] | None) -> bool:
    """Whether a `cfg` is met; what is not known for sure is not."""
    guard = re.sub(r"\s+", "", guard)
    if guard in ("test", "unix", "debug_assertions", 'target_os="linux"', "all(test,unix)"):
        return True
    names = re.findall(r'feature="([^"]*)"', guard)
    plain = re.sub(r'feature="[^"]*"|\btest\b|\ball\b|\bany\b|\bunix\b|[(),]', "", guard)
    if not names or plain:
        return False
    met = [enabled is None or name in enabled for name in names]
    return any(met) if guard.startswith("any(") else all(met)


def _is_reached(path: str, crate: Crate | None, roots: Collection[str]) -> bool:
    """Whether a file belongs to the package's sources or is the root of an integration test."""
    source = f"{crate.folder}/src/" if crate and crate.folder else "src/"
    return path in roots or path.startswith(source)
