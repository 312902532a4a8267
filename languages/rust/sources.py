"""Selection of the Rust files whose tests a run collects."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from languages.rust.crates import Crate, find_crate, list_members, read_crates
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan

_TEST = re.compile(r"^\s*#\[(?:test|(?:\w+::)*test(?:\([^\]]*\))?|rstest|test_case\b.*|quickcheck)\]", re.MULTILINE)
_MODULE = re.compile(r"(?P<attributes>(?:#\[[^\]]*\]\s*)+)(?:pub(?:\([^)]*\))?\s+)?mod\s+(?P<name>\w+)\s*;")
_GUARD = re.compile(r"#\[cfg\(([^\]]*)\)\]")
_MODULE_PATH = re.compile(r'#\[path\s*=\s*"([^"]+)"\s*\]')
_GUARDED_FILE = re.compile(r"^\s*#!\[cfg\(((?:[^\]]|\](?!\s*$))*)\)\]", re.MULTILINE)
_EXCLUDED_PATHS = re.compile(
    r"(^|/)(target|vendor|benches|examples|fuzz)/"
    # for other operating systems: such modules are guarded by `cfg`, sometimes within macros
    r"|(^|/)(windows|win32|macos|darwin|ios|android|kqueue|iocp|wasm(32)?|wasi|redox|[a-z]*bsd|solaris)(/|\.rs$)"
)


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that contain tests, sorted; with a plan those of its packages and features."""
    paths = [path for path in tree.entries if path.endswith(".rs") and not _EXCLUDED_PATHS.search(path)]
    texts = tree.read_many(paths)
    test_files = sorted(path for path in paths if _TEST.search(texts[path]))
    if plan is None:
        return test_files
    crates = read_crates(tree)
    root = next((candidate for candidate in crates if candidate.folder == plan.test.folder), None)
    if root is None:
        return []
    tested = list_tested_crates(crates, root, plan.test.argv)
    enabled = expand_features(tested, plan.test.argv)
    disabled = _find_disabled_files(paths, texts, enabled)
    roots = {path for candidate in tested for path in candidate.list_test_roots(enabled)}
    collected = []
    for path in test_files:
        crate = find_crate(crates, path)
        if crate in tested and path not in disabled and _is_reached(path, crate, roots):
            collected.append(path)
    return collected


def list_tested_crates(crates: Sequence[Crate], root: Crate, argv: Sequence[str]) -> list[Crate]:
    """Return the packages that a command tests when run in the workspace root."""
    member_crates = list_members(crates, root)
    excluded = {word for flag, word in pairwise(argv) if flag == "--exclude"}
    selected = {word for flag, word in pairwise(argv) if flag == "-p"}
    if selected:
        return [crate for crate in member_crates if crate.name in selected]
    if "--workspace" in argv or not root.name:
        return [crate for crate in member_crates if crate.name not in excluded]
    return [root]


def expand_features(tested: Iterable[Crate], argv: Sequence[str]) -> frozenset[str] | None:
    """Return the features that a command enables, including implied features; None for all."""
    if "--all-features" in argv:
        return None
    values = [word for flag, word in pairwise(argv) if flag == "--features"]
    names = [name.rpartition("/")[2] for text in values for name in re.split(r"[\s,]+", text) if name]
    enabled = set(names) | (set() if "--no-default-features" in argv else {"default"})
    feature_tables = [feature.features for feature in tested]
    queue = list(enabled)
    while queue:
        name = queue.pop()
        for table in feature_tables:
            more = [feature for feature in table.get(name, ()) if isinstance(feature, str) and feature not in enabled]
            enabled.update(more)
            queue += more
    return frozenset(enabled)


def _find_disabled_files(paths: Collection[str], texts: Mapping[str, str], enabled: frozenset[str] | None) -> set[str]:
    """Return files that are compiled only for other systems or features, by `cfg` of their `mod` or in them."""
    disabled: set[str] = set()
    unmet: set[str] = set()
    compiled: set[str] = set()
    for path, text in texts.items():
        if any(not _is_cfg_met(match[1], enabled) for match in _GUARDED_FILE.finditer(text)):
            disabled.add(path)
        for match in _MODULE.finditer(text):
            guards = _GUARD.findall(match["attributes"])
            (compiled if all(_is_cfg_met(guard, enabled) for guard in guards) else unmet).add(_find_module(path, match))
    for module in unmet - compiled:
        below = module.removesuffix(".rs") + "/"
        disabled.update(path for path in paths if path == module or path.startswith(below))
    return disabled


def _find_module(path: str, module: re.Match[str]) -> str:
    """Return the file of a module that the file `path` declares, where it has no folder of its own."""
    folder, _, name = path.rpartition("/")
    if place := _MODULE_PATH.search(module["attributes"]):
        return posixpath.normpath(posixpath.join(folder, place[1]))
    within = folder if name in ("lib.rs", "main.rs", "mod.rs") else posixpath.join(folder, name[:-3])
    return posixpath.join(within, f"{module['name']}.rs")


def _is_cfg_met(guard: str, enabled: frozenset[str] | None) -> bool:
    """Return whether a `cfg` is satisfied; False if unknown."""
    guard = re.sub(r"\s+", "", guard)
    if guard in ("test", "unix", "debug_assertions", 'target_os="linux"', "all(test,unix)"):
        return True
    names = re.findall(r'feature="([^"]*)"', guard)
    rest = re.sub(r'feature="[^"]*"|\btest\b|\ball\b|\bany\b|\bunix\b|[(),]', "", guard)
    if not names or rest:
        return False
    satisfied = [enabled is None or name in enabled for name in names]
    return any(satisfied) if guard.startswith("any(") else all(satisfied)


def _is_reached(path: str, crate: Crate | None, roots: Collection[str]) -> bool:
    """Return whether a file belongs to the package's sources or is the root of an integration test."""
    source = f"{crate.folder}/src/" if crate and crate.folder else "src/"
    return path in roots or path.startswith(source)
