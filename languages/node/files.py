"""Which files define tests, and which of them a run takes in: by the runner's configuration where it can be read."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from languages import marked
from languages.node.package import glob_regex, read_package
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

JEST = (f"(^|.*/)__tests__/.*{_END}", f"(.*/)?([^/]*\\.)?(spec|test){_END}")
VITEST = (f"(.*/)?[^/]*\\.(test|spec){_END}",)
AVA = (
    r"test\.[cm]?js", r"(src|source)/test\.[cm]?js", r"(.*/)?test-[^/]*\.[cm]?js", r"(.*/)?[^/]*\.(test|spec)\.[cm]?js",
    r"(.*/)?(tests?|__tests__)/(?!(.*/)?(_|helpers?/|fixtures?/)).*\.[cm]?js",
)  # fmt: skip
NODE = (
    rf"(.*/)?[^/]*[._-]test{_END}", rf"(.*/)?test-[^/]*{_END}", rf"(.*/)?test{_END}", rf"(.*/)?test/.*{_END}",
)  # fmt: skip
_DEFAULTS: Mapping[str, Sequence[str]] = {
    "jest": JEST, "vitest": VITEST, "ava": AVA, "node:test": NODE, "mocha": (r"test/[^/]*\.[cm]?js",),
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
    if test.framework in ("jest", "vitest"):
        kept, ignored = _configured(tree, folder, test.framework, test.argv)
        found = [p for p, name in inside.items() if _any(kept, name) and not _any_part(ignored, name)]
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


def _any_part(patterns: Sequence[str], name: str) -> bool:
    return any(re.search(pattern, f"/{name}") for pattern in patterns)


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
                data = _mapping(text) if name.endswith(".json") else {key: _quoted(text, key)}
                if name.endswith(("ml",)):
                    row = marked.load(text)[key]
                    data = {key: [one.text for one in row.values()] or row.text}
        if not isinstance(data, dict) or not data.get(key):
            recursive = "--recursive" in tree.read(posixpath.join(folder, "test/mocha.opts"))
            return ["test"] if recursive else []
    elif framework == "ava":
        for name in ("ava.config.js", "ava.config.cjs", "ava.config.mjs"):
            if text := tree.read(posixpath.join(folder, name)):
                data = {key: _quoted(text, key)}
    value = data.get(key) if isinstance(data, dict) else None
    return [value] if isinstance(value, str) else [v for v in value or () if isinstance(v, str)]


def _mapping(text: str) -> dict[str, Any]:
    try:
        data = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


_CONFIGS = {
    "jest": ("jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "jest.config.json"),
    "vitest": ("vitest.config.ts", "vitest.config.mts", "vitest.config.js", "vitest.config.mjs", "vite.config.ts",
               "vite.config.js", "vite.config.mts", "vite.config.mjs"),
}  # fmt: skip


def _configured(tree: Tree, folder: str, framework: str, argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """(regexes of whole names that are taken in, regexes of what is not), from the runner's configuration."""
    named = [word for flag, word in pairwise(argv) if flag in ("-c", "--config", "--projects")]
    paths = [posixpath.normpath(posixpath.join(folder, name)) for name in (*named, *_CONFIGS[framework])]
    text = next((text for path in paths if (text := tree.read(path))), "")
    if framework == "jest" and not text:
        data = read_package(tree, folder).data.get("jest")
        text = json.dumps(data) if isinstance(data, dict) else ""
    if framework == "vitest":
        inside = text.partition("test:")[2]
        kept = [glob_regex(p.removeprefix("./").removeprefix("**/")) for p in _quoted(inside, "include")]
        kept = [f"(.*/)?{one}" for one in kept] or list(VITEST)
        return kept, [glob_regex(p.removeprefix("**")) for p in _quoted(inside, "exclude")]
    kept = [
        f"(.*/)?{glob_regex(re.sub(r'^<rootDir>/?|^[*][*]/', '', p))}"
        for p in _quoted(text, "testMatch")
        if p[0] != "!"
    ]
    kept += [f".*(?:{p}).*" for p in _quoted(text, "testRegex") if _valid(p)]
    ignored = [p.replace("<rootDir>", "^") for p in _quoted(text, "testPathIgnorePatterns") if _valid(p)]
    roots = [re.sub(r"^<rootDir>/?|^\./", "", p).rstrip("/") for p in _quoted(text, "roots")]
    within = "|".join(re.escape(root) for root in roots if root and root != ".")
    kept = kept or list(JEST)
    return [f"(?=(?:{within})/)(?:{one})" for one in kept] if within and "" not in roots else kept, ignored


def _valid(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _quoted(text: str, key: str) -> list[str]:
    """The quoted words of `key: "..."` or `key: [...]` in JavaScript or JSON, unescaped."""
    match = re.search(rf"['\"]?\b{key}['\"]?\s*:\s*(\[.*?\](?=\s*[,}}\n;])|'[^'\n]*'|\"[^\"\n]*\")", text, re.DOTALL)
    if not match:
        return []
    body = re.sub(r"^\s*//.*$", "", match[1], flags=re.MULTILINE)
    return [
        (one[1] or one[2]).replace("\\\\", "\\")
        for one in re.finditer(r"'([^'\n]*)'|\"([^\"\n]*)\"", body)
        if one[1] or one[2]
    ]
