"""Detection of tests and test framework in Ruby projects."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence

from languages.draft import NoPlanError
from languages.ruby.gems import Gem
from languages.source_tree import SourceTree
from taskdb.records import Evidence

SPEC_FILE = r"(^|/)[^/]*_spec\.rb$"
TEST_FILE = r"(^|/)([^/]*_test|test_[^/]*|tc_[^/]*)\.rb$"
_NO_TESTS = re.compile(
    r"(^|/)(test_?(helper|case|helpers|utils?)|helper)\.rb$|(^|/)(fixtures?|vendor|templates?|source)/"
)
_DEFINES = re.compile(
    r"^\s*(class\s+\S+\s*<|(RSpec\.)?(describe|context|feature|shared_examples)\b|Class\.new|\w*\.?test\s+['\"]|setup\s+do"
    r"|def\s+test_)",
    re.MULTILINE,
)
_UNIT = re.compile(r"Test::Unit::TestCase|require\s*\(?['\"]test[/-]unit['\"]")
_MINITEST = re.compile(r"[Mm]ini[Tt]est")


def list_test_files(tree: SourceTree, folder: str) -> tuple[list[str], list[str]]:
    """Return (specs, tests) below a folder that define something, sorted."""
    prefix = f"{folder}/" if folder else ""
    sources = [path for path in tree.entries if path.startswith(prefix) and path.endswith(".rb") and tree.is_file(path)]
    sources = [path for path in sources if not _NO_TESTS.search(path)]
    specs = [path for path in sources if re.search(SPEC_FILE, path)]
    tests = [path for path in sources if re.search(TEST_FILE, path) and not path.startswith(f"{prefix}lib/")]
    texts = tree.read_many([*specs, *tests])
    return tuple(sorted(path for path in files if _DEFINES.search(texts[path])) for files in (specs, tests))  # type: ignore[return-value]


def detect_framework(
    tree: SourceTree, folder: str, gems: Sequence[Gem], changed_paths: Sequence[str]
) -> tuple[str, list[str], Evidence]:
    """Return (framework, its files, evidence).

    Raises:
        NoPlanError: there are no test files.
    """
    specs, tests = list_test_files(tree, folder)
    by_name = {gem.source.text: gem.source for gem in gems}
    changed_specs = sum(path in set(specs) for path in changed_paths)
    changed_tests = sum(path in set(tests) for path in changed_paths)
    if not specs and not tests:
        raise NoPlanError("no file *_spec.rb, *_test.rb or test_*.rb defines tests")
    if (changed_specs, len(specs)) > (changed_tests, len(tests)):
        texts = _read_helpers(tree, folder, "spec", specs)
        is_rspec = any(name.startswith("rspec") for name in by_name) or not _MINITEST.search("".join(texts.values()))
        name, files, gem = ("rspec", specs, "rspec") if is_rspec else ("minitest", specs, "minitest")
    else:
        texts = _read_helpers(tree, folder, "test", tests)
        helper_text = "".join(texts.values())
        is_test_unit = bool(_UNIT.search(helper_text)) and not _MINITEST.search(helper_text)
        name, files, gem = ("test-unit", tests, "test-unit") if is_test_unit else ("minitest", tests, "minitest")
    gem_source = next((source for gem_name, source in by_name.items() if gem_name.startswith(gem)), None)
    source_path, line = (gem_source.path, gem_source.line) if gem_source else (files[0], 0)
    return name, files, Evidence(choice="test.framework", value=name, path=source_path, line=line)


def _read_helpers(tree: SourceTree, folder: str, kind: str, files: Sequence[str]) -> dict[str, str]:
    """Return the texts of helpers and of the first test files."""
    prefix = f"{folder}/" if folder else ""
    helpers = [f"{prefix}{kind}/{name}.rb" for name in (f"{kind}_helper", "helper", "helpers", f"{kind}_case")]
    return tree.read_many([path for path in helpers if tree.is_file(path)] + list(files[:20]))


def list_test_folders(files: Sequence[str], folder: str) -> tuple[str, ...]:
    """Return the top folders that contain the files, relative to the root of the tree."""
    prefix = f"{folder}/" if folder else ""
    tops = Counter(prefix + path.removeprefix(prefix).partition("/")[0] for path in files)
    return tuple(sorted(top for top in tops))


def list_load_paths(tree: SourceTree, folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the folders that tests may require files from: `lib` of each project, and the test folders."""
    prefix = f"{folder}/" if folder else ""
    projects = {posixpath.dirname(path) for path in tree.glob("*.gemspec")} | {folder}
    libs = [
        posixpath.join(project, "lib")
        for project in sorted(projects, key=lambda candidate: (candidate != folder, candidate))
    ]
    tops = [top for top in list_test_folders(files, folder) if top in tree.folders]
    return tuple(
        dict.fromkeys(
            [candidate for candidate in (*libs, *tops) if candidate in tree.folders] + [prefix.rstrip("/") or "."]
        )
    )
