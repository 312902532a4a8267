"""Where a Ruby project's tests are and which framework runs them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence

from languages.draft import NoPlanError
from languages.ruby.gems import Gem
from languages.tree import Tree
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


def test_files(tree: Tree, folder: str) -> tuple[list[str], list[str]]:
    """(specs, tests) below a folder that define something, sorted."""
    at = f"{folder}/" if folder else ""
    own = [path for path in tree.entries if path.startswith(at) and path.endswith(".rb") and tree.is_file(path)]
    own = [path for path in own if not _NO_TESTS.search(path)]
    specs = [path for path in own if re.search(SPEC_FILE, path)]
    tests = [path for path in own if re.search(TEST_FILE, path) and not path.startswith(f"{at}lib/")]
    texts = tree.read_many([*specs, *tests])
    return tuple(sorted(path for path in some if _DEFINES.search(texts[path])) for some in (specs, tests))  # type: ignore[return-value]


def framework(tree: Tree, folder: str, gems: Sequence[Gem], touched: Sequence[str]) -> tuple[str, list[str], Evidence]:
    """(framework, its files, why).

    Raises:
        NoPlanError: there are no files that look like tests.
    """
    specs, tests = test_files(tree, folder)
    named = {gem.wanted.text: gem.wanted for gem in gems}
    touched_specs = sum(path in set(specs) for path in touched)
    touched_tests = sum(path in set(tests) for path in touched)
    if not specs and not tests:
        raise NoPlanError("no file *_spec.rb, *_test.rb or test_*.rb defines tests")
    if (touched_specs, len(specs)) > (touched_tests, len(tests)):
        texts = _helpers(tree, folder, "spec", specs)
        is_rspec = any(name.startswith("rspec") for name in named) or not _MINITEST.search("".join(texts.values()))
        name, files, gem = ("rspec", specs, "rspec") if is_rspec else ("minitest", specs, "minitest")
    else:
        texts = _helpers(tree, folder, "test", tests)
        everything = "".join(texts.values())
        unit = bool(_UNIT.search(everything)) and not _MINITEST.search(everything)
        name, files, gem = ("test-unit", tests, "test-unit") if unit else ("minitest", tests, "minitest")
    place = next((wanted for known, wanted in named.items() if known.startswith(gem)), None)
    where, line = (place.path, place.line) if place else (files[0], 0)
    return name, files, Evidence(choice="test.framework", value=name, path=where, line=line)


def _helpers(tree: Tree, folder: str, kind: str, files: Sequence[str]) -> dict[str, str]:
    """Texts of helpers and of the first test files."""
    at = f"{folder}/" if folder else ""
    helpers = [f"{at}{kind}/{name}.rb" for name in (f"{kind}_helper", "helper", "helpers", f"{kind}_case")]
    return tree.read_many([path for path in helpers if tree.is_file(path)] + list(files[:20]))


def paths_of(files: Sequence[str], folder: str) -> tuple[str, ...]:
    """The top folders (from the tree's root) that hold the files."""
    at = f"{folder}/" if folder else ""
    tops = Counter(at + path.removeprefix(at).partition("/")[0] for path in files)
    return tuple(sorted(top for top in tops))


def load_paths(tree: Tree, folder: str, files: Sequence[str]) -> tuple[str, ...]:
    """Folders from the tree's root that tests may require from: `lib` of each project, and those of the tests."""
    at = f"{folder}/" if folder else ""
    projects = {posixpath.dirname(path) for path in tree.glob("*.gemspec")} | {folder}
    libs = [posixpath.join(project, "lib") for project in sorted(projects, key=lambda one: (one != folder, one))]
    tops = [top for top in paths_of(files, folder) if top in tree.folders]
    return tuple(dict.fromkeys([one for one in (*libs, *tops) if one in tree.folders] + [at.rstrip("/") or "."]))
