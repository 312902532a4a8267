"""Which files define tests, and which of them a run takes in: by the runner's configuration where it can be read."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from languages import marked
from languages.node import jest
from languages.node.package import glob_regex, read_package
from languages.node.quoted import quoted
from languages.tree import Tree
from taskdb.records import BuildPlan

_END = r"\.[cm]?[jt]sx?$"
TEST_FILE = (
    r"^(?!.*(^|/)(fixtures?|__fixtures__|__mocks__|mocks?|helpers?|support|node_modules|e2e|cypress|dist)/)(?!.*\.d\.[cm]?ts$)"
    r"(?!.*\.test-d\.[cm]?tsx?$)"
    rf"(.*/)?((__tests__|tests?|specs?)/(.*/)?[^/]+|[^/]*[._-](test|tests|spec|specs)|tests?([-_.][^/]*)?){_END}"
)

_DEFINES = re.compile(
    r"(?:^|[^.\w$])(?:test|it|describe|suite|specify|tap|t|tape|QUnit)\s*(?:\.\w+\s*)*(?:<[^>\n]*>)?[(`]"
)

VITEST = (f"(.*/)?[^/]*\\.(test|spec){_END}",)
AVA = (
    r"test\.[cm]?js", r"(src|source)/test\.[cm]?js", r"(.*/)?test-[^/]*\.[cm]?js", r"(.*/)?[^/]*\.(test|spec)\.[cm]?js",
    r"(.*/)?(tests?|__tests__)/(?!(.*/)?(_|helpers?/|fixtures?/)).*\.[cm]?js",
)  # fmt: skip
NODE = (
    rf"(.*/)?[^/]*[._-]test{_END}", rf"(.*/)?test-[^/]*{_END}", rf"(.*/)?test{_END}", rf"(.*/)?test/.*{_END}",
)  # fmt: skip
_DEFAULTS: Mapping[str, Sequence[str]] = {
    "vitest": VITEST, "ava": AVA, "node:test": NODE, "mocha": (r"test/[^/]*\.[cm]?js",),
    "borp": (rf"(.*/)?[^/]*\.test{_END}",), "tap": (r"(tests?/.*|test)\.[cm]?[jt]s",),
}  # fmt: skip
"""What runners take in unless they are told, below the folder in which they run."""


def defining_files(tree: Tree, plan: BuildPlan | None = None) -> list[str]:
    """Files that define tests, sorted; with a plan those that its runner takes in, as far as that can be read."""
    wanted = re.compile(TEST_FILE)
    if plan is None:
        return _with_tests(tree, [path for path in tree.entries if wanted.search(path)])
    folder, test = plan.test.folder, plan.test
    below = [p for p in tree.entries if (not folder or p.startswith(f"{folder}/")) and re.search(_END, p)]
    below = [p for p in below if not re.search(r"(^|/)(node_modules|fixtures?|__fixtures__)/|\.d\.[cm]?ts$", p)]
    inside = {p: p[len(folder) :].lstrip("/") for p in below}
    # A runner's word in paths is a part of names for jest and vitest, a file, folder or pattern for all others.
    if test.framework == "jest":
        known = jest.configs(tree, folder, test.argv)
        if any(one.is_computed for one in known):
            return []
        found = [path for path in below if any(one.takes(path) for one in known)]
        found = [p for p in found if not test.paths or any(_in_name(word, inside[p]) for word in test.paths)]
    elif test.framework == "vitest":
        kept, ignored = _vitest(tree, folder, test.argv)
        found = [p for p, name in inside.items() if _any(kept, name) and not _any(ignored, name)]
        found = [p for p in found if not test.paths or any(_in_name(word, inside[p]) for word in test.paths)]
    else:
        patterns = [
            one
            for path in test.paths or _own_patterns(tree, folder, test.framework)
            for one in _spread(tree, folder, path)
        ]
        left_out = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
        taken = [glob_regex(pattern) for pattern in patterns if not pattern.startswith("!")]
        found = [p for p, name in inside.items() if _any(taken or _DEFAULTS[test.framework], name)]
        found = [p for p in found if not _any([glob_regex(one) for one in left_out], inside[p])]
        if test.framework == "ava":
            found = [p for p in found if not re.search(r"(^|/)(_|helpers?/)", inside[p])]
    return _with_tests(tree, found)


def _with_tests(tree: Tree, paths: Sequence[str]) -> list[str]:
    return [path for path, text in tree.read_many(sorted(paths)).items() if _DEFINES.search(text)]


def _any(patterns: Sequence[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _in_name(word: str, name: str) -> bool:
    try:
        return re.search(word, name) is not None or word.removeprefix("./").strip("/") in name
    except re.error:
        return word in name


def _spread(tree: Tree, folder: str, path: str) -> Iterator[str]:
    """A folder stands for the files below."""
    path = path.removeprefix("./").rstrip("/")
    yield f"{path}/**/*.?([cm])[jt]s?(x)" if posixpath.join(folder, path) in tree.folders else path


def _own_patterns(tree: Tree, folder: str, framework: str) -> list[str]:
    """Patterns in the configuration of ava, mocha and borp."""
    package = read_package(tree, folder)
    data: Any = package.data.get(framework)
    if framework == "borp":
        rows = marked.load(tree.read(posixpath.join(folder, ".borp.yaml")))["files"].values()
        return [row.text for row in rows]
    key = "spec" if framework == "mocha" else "files"
    if framework == "mocha":
        for name in (".mocharc.json", ".mocharc.yml", ".mocharc.yaml", ".mocharc.js", ".mocharc.cjs"):
            if text := tree.read(posixpath.join(folder, name)):
                data = _mapping(text) if name.endswith(".json") else {key: quoted(text, key)}
                if name.endswith(("ml",)):
                    row = marked.load(text)[key]
                    data = {key: [one.text for one in row.values()] or row.text}
        if not isinstance(data, dict) or not data.get(key):
            recursive = "--recursive" in tree.read(posixpath.join(folder, "test/mocha.opts"))
            return ["test"] if recursive else []
    elif framework == "ava":
        for name in ("ava.config.js", "ava.config.cjs", "ava.config.mjs"):
            if text := tree.read(posixpath.join(folder, name)):
                data = {key: quoted(text, key)}
    value = data.get(key) if isinstance(data, dict) else None
    return [value] if isinstance(value, str) else [v for v in value or () if isinstance(v, str)]


def _mapping(text: str) -> dict[str, Any]:
    try:
        data = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


_VITEST = [f"{name}.config.{end}" for name in ("vitest", "vite") for end in ("ts", "mts", "js", "mjs", "cjs")]


def _vitest(tree: Tree, folder: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """(regexes of names that are taken in, regexes of what is not), from vitest's configuration."""
    named = [word for flag, word in pairwise(argv) if flag in ("-c", "--config")]
    named += [word.partition("=")[2] for word in argv if word.startswith("--config=")]
    paths = [posixpath.normpath(posixpath.join(folder, name)) for name in (*named, *_VITEST)]
    inside = next((text for path in paths if (text := tree.read(path))), "").partition("test:")[2]
    kept = [f"(.*/)?{glob_regex(_bare(one))}" for one in quoted(inside, "include")]
    return kept or list(VITEST), [f"(.*/)?{glob_regex(_bare(one))}" for one in quoted(inside, "exclude")]


def _bare(pattern: str) -> str:
    return pattern.removeprefix("./").removeprefix("**/")
