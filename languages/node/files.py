"""Detection of test files, and of those that a runner collects according to its configuration."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from languages import yaml_nodes
from languages.node import jest, vitest
from languages.node.js_words import parse_quoted_words
from languages.node.package import convert_glob, read_package
from languages.source_tree import SourceTree
from taskdb.records import BuildPlan, TestCommand

_END = r"\.[cm]?[jt]sx?$"
TEST_FILE = (
    r"^(?!.*(^|/)(fixtures?|__fixtures__|__mocks__|mocks?|helpers?|support|node_modules|e2e|cypress|dist)/)(?!.*\.d\.[cm]?ts$)"
    r"(?!.*\.test-d\.[cm]?tsx?$)"
    rf"(.*/)?((__tests__|tests?|specs?)/(.*/)?[^/]+|[^/]*[._-](test|tests|spec|specs)|tests?([-_.][^/]*)?){_END}"
)

_NO_TESTS = re.compile(r"(^|/)(node_modules|fixtures?|__fixtures__)/|\.d\.[cm]?ts$")
_DEFINES = re.compile(
    r"(?:^|(?<!function)[^.\w$])(?:test|it|describe|suite|specify|tap|t|tape|QUnit)\s*(?:\.\w+\s*)*(?:<[^>\n]*>)?[(`]"
    r"|[rR]uleTester\.run\("
)

AVA = (
    r"test\.[cm]?js",
    r"(src|source)/test\.[cm]?js",
    r"(.*/)?test-[^/]*\.[cm]?js",
    r"(.*/)?[^/]*\.(test|spec)\.[cm]?js",
    r"(.*/)?(tests?|__tests__)/(?!(.*/)?(_|helpers?/|fixtures?/)).*\.[cm]?js",
)
NODE = (
    rf"(.*/)?[^/]*[._-]test{_END}",
    rf"(.*/)?test-[^/]*{_END}",
    rf"(.*/)?test{_END}",
    rf"(.*/)?test/.*{_END}",
)
_DEFAULTS: Mapping[str, Sequence[str]] = {
    "ava": AVA,
    "node:test": NODE,
    "mocha": (r"test/[^/]*\.[cm]?js",),
    "borp": (rf"(.*/)?[^/]*\.test{_END}",),
    "bun": (rf"(.*/)?[^/]*[._](test|spec){_END}",),
    "tap": (r"(tests?/.*|test)\.[cm]?[jt]s",),
}
"""Default patterns of each runner, relative to the folder in which it runs."""
_MOCHA_SETTINGS = (".mocharc.json", ".mocharc.yml", ".mocharc.yaml", ".mocharc.js", ".mocharc.cjs")


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that define tests, sorted; with a plan those that its runner collects."""
    if plan is None:
        pattern = re.compile(TEST_FILE)
        return _filter_test_files(tree, [path for path in tree.entries if pattern.search(path)])
    folder, test = plan.test.folder, plan.test
    candidates = [p for p in tree.entries if (not folder or p.startswith(f"{folder}/")) and re.search(_END, p)]
    candidates = [p for p in candidates if not _NO_TESTS.search(p)]
    relative = {p: p[len(folder) :].lstrip("/") for p in candidates}
    if test.framework == "jest":
        configs = jest.read_configs(tree, folder, test.argv)
        if any(config.is_computed for config in configs):
            return []
        collected = [p for p in candidates if any(config.includes_path(p) for config in configs)]
    elif test.framework == "vitest":
        projects = vitest.read_projects(tree, folder, test.argv)
        collected = [p for p in candidates if any(project.includes_path(p) for project in projects)]
    elif test.framework == "bun":
        collected = [p for p, name in relative.items() if _matches_any(_DEFAULTS["bun"], name)]
    else:
        return _filter_test_files(tree, _find_glob_matches(tree, test, relative))
    # Paths on the command line are substrings for jest, vitest and bun, and files, folders or globs for other runners.
    is_unfiltered = not test.paths
    return _filter_test_files(
        tree, [p for p in collected if is_unfiltered or any(_contains_word(word, relative[p]) for word in test.paths)]
    )


def _find_glob_matches(tree: SourceTree, test: TestCommand, relative: Mapping[str, str]) -> list[str]:
    patterns = [
        pattern
        for path in test.paths or _read_own_patterns(tree, test)
        for pattern in _expand_folder(tree, test.folder, path)
    ]
    excluded = [convert_glob(pattern[1:]) for pattern in patterns if pattern.startswith("!")]
    included = [convert_glob(pattern) for pattern in patterns if not pattern.startswith("!")]
    if test.framework == "ava":
        excluded.append(r"(.*/)?(_|helpers?/).*")
    included_or_default = included or _DEFAULTS[test.framework]
    return [p for p, name in relative.items() if _is_selected(name, included_or_default, excluded)]


def _is_selected(name: str, included: Sequence[str], excluded: Sequence[str]) -> bool:
    return _matches_any(included, name) and not _matches_any(excluded, name)


def _filter_test_files(tree: SourceTree, paths: Sequence[str]) -> list[str]:
    return [path for path, text in tree.read_many(sorted(paths)).items() if _DEFINES.search(text)]


def _matches_any(patterns: Sequence[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _contains_word(word: str, name: str) -> bool:
    try:
        return re.search(word, name) is not None or word.removeprefix("./").strip("/") in name
    except re.error:
        return word in name


def _expand_folder(tree: SourceTree, folder: str, path: str) -> Iterator[str]:
    """Yield the glob for the files below a folder, or the path itself."""
    path = path.removeprefix("./").rstrip("/")
    yield f"{path}/**/*.?([cm])[jt]s?(x)" if posixpath.join(folder, path) in tree.folders else path


def _read_own_patterns(tree: SourceTree, test: TestCommand) -> list[str]:
    """Return the patterns in the configuration of ava, mocha or borp."""
    folder, framework = test.folder, test.framework
    package = read_package(tree, folder)
    data: Any = package.data.get(framework)
    if framework == "borp":
        rows = yaml_nodes.load_yaml(tree.read(posixpath.join(folder, ".borp.yaml")))["files"].values()
        return [row.text for row in rows]
    key = "spec" if framework == "mocha" else "files"
    if framework == "mocha":
        for name in _MOCHA_SETTINGS:
            if text := tree.read(posixpath.join(folder, name)):
                data = _parse_mapping(text) if name.endswith(".json") else {key: parse_quoted_words(text, key)}
                if name.endswith(("ml",)):
                    row = yaml_nodes.load_yaml(text)[key]
                    data = {key: [entry.text for entry in row.values()] or row.text}
        if not isinstance(data, dict) or not data.get(key):
            return ["test"] if _enters_subfolders(tree, test, data) else []
    elif framework == "ava":
        for name in ("ava.config.js", "ava.config.cjs", "ava.config.mjs"):
            if text := tree.read(posixpath.join(folder, name)):
                data = {key: parse_quoted_words(text, key)}
    value = data.get(key) if isinstance(data, dict) else None
    return [value] if isinstance(value, str) else [v for v in value or () if isinstance(v, str)]


def _enters_subfolders(tree: SourceTree, test: TestCommand, data: object) -> bool:
    """Return whether mocha reads the folders below `test`, by its arguments, its files, or the settings `data`."""
    if "--recursive" in test.argv or "--recursive" in tree.read(posixpath.join(test.folder, "test/mocha.opts")):
        return True
    texts = (tree.read(posixpath.join(test.folder, name)) for name in _MOCHA_SETTINGS)
    in_files = any(re.search(r"\brecursive\W+true\b", text) for text in texts)
    return in_files or (isinstance(data, dict) and data.get("recursive") is True)


def _parse_mapping(text: str) -> dict[str, Any]:
    try:
        data = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
