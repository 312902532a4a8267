"""Undeclared requirements, inferred from the imports of test files. Files are parsed, never imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from packaging.utils import canonicalize_name

from languages.facts import SourcedValue
from languages.python.collection import PytestExclusions
from languages.python.patterns import is_test_path
from languages.source_tree import SourceTree

DISTRIBUTIONS = {
    "pytest": "pytest",
    "mock": "mock",
    "hypothesis": "hypothesis",
    "pytz": "pytz",
    "simplejson": "simplejson",
    "nose": "nose",
    "six": "six",
    "yaml": "pyyaml",
    "dateutil": "python-dateutil",
    "attr": "attrs",
    "requests": "requests",
    "numpy": "numpy",
    "pandas": "pandas",
    "scipy": "scipy",
    "freezegun": "freezegun",
    "pretend": "pretend",
    "responses": "responses",
    "parameterized": "parameterized",
    "pytest_asyncio": "pytest-asyncio",
    "trio": "trio",
    "html5lib": "html5lib",
    "testfixtures": "testfixtures",
    "flaky": "flaky",
    "pkg_resources": "setuptools",
    "setuptools": "setuptools",
    "marshmallow": "marshmallow",
    "bs4": "beautifulsoup4",
    "lxml": "lxml",
    "PIL": "pillow",
    "jsonschema": "jsonschema",
    "tomli": "tomli",
    "docutils": "docutils",
    "jinja2": "jinja2",
    "flask": "flask",
    "django": "django",
    "sqlalchemy": "sqlalchemy",
    "faker": "faker",
    "factory": "factory-boy",
    "ddt": "ddt",
    "mpmath": "mpmath",
    "pyfakefs": "pyfakefs",
    "syrupy": "syrupy",
    "time_machine": "time-machine",
    "typing_extensions": "typing-extensions",
    "importlib_metadata": "importlib-metadata",
    "psutil": "psutil",
    "pytest_mock": "pytest-mock",
    "pytest_benchmark": "pytest-benchmark",
    "testtools": "testtools",
    "sybil": "sybil",
    "defusedxml": "defusedxml",
    "babel": "babel",
    "toml": "toml",
    "ujson": "ujson",
    "aiohttp": "aiohttp",
    "coverage": "coverage",
    "pytest_cov": "pytest-cov",
}
"""Import name -> distribution of packages common in tests. Other packages are required only if a file lists them."""

FIXTURES = {
    "mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "httpbin": "pytest-httpbin",
    "requests_mock": "requests-mock",
    "freezer": "pytest-freezer",
    "snapshot": "syrupy",
    "fs": "pyfakefs",
    "datadir": "pytest-datadir",
    "httpserver": "pytest-httpserver",
    "subtests": "pytest-subtests",
    "aiohttp_client": "pytest-aiohttp",
}
"""Fixture name -> plugin that provides it."""

MARKERS = {
    "xdist_group": "pytest-xdist",
    "asyncio": "pytest-asyncio",
    "django_db": "pytest-django",
    "timeout": "pytest-timeout",
    "trio": "pytest-trio",
    "benchmark": "pytest-benchmark",
    "vcr": "pytest-recording",
    "freeze_time": "pytest-freezer",
    "order": "pytest-order",
    "dependency": "pytest-dependency",
    "gen_test": "pytest-tornado",
    "qt_log_ignore": "pytest-qt",
    "mpl_image_compare": "pytest-mpl",
    "enable_socket": "pytest-socket",
    "disable_socket": "pytest-socket",
    "remote_data": "pytest-remotedata",
}
"""Marker -> plugin that registers it; with `--strict-markers` files that use an unknown marker cannot be collected."""


_ANY_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:from[ \t]+(?P<source>\w+)[\w.]*[ \t]+import\b|import[ \t]+(?P<names>.+))", re.MULTILINE)
_QUOTED = re.compile(r"""["']([A-Za-z][\w-]+)["']""")
_MARKER = re.compile(r"^[ \t]*(?:@|pytestmark = \[?)pytest\.mark\.(\w+)", re.MULTILINE)
_DEFINITION = re.compile(r"\bdef (\w+)\(")
_FIXTURE = re.compile(r"^@(?:pytest\.)?fixture\b[^\n]*\n(?:@[^\n]*\n)*(?:async )?def (\w+)\(", re.MULTILINE)
_ARGUMENTS = re.compile(r"^[ \t]*(?:async )?def test\w*\(([^)]+)\)", re.MULTILINE)


def find_test_imports(tree: SourceTree, configured: Sequence[SourcedValue] = ()) -> dict[str, SourcedValue]:
    """Return top-level module -> first import in a test file; without own and standard library modules.

    Indented imports (within `try`, `if` or functions) are optional and are skipped. `configured`: modules that the
    runner's configuration imports, added to the others.
    """
    own = {path.rpartition("/")[2].removesuffix(".py") for path in tree.entries if path.endswith(".py")}
    own |= {part for folder in tree.folders for part in folder.split("/")}
    imported = [
        SourcedValue(text=name, path=path, line=line)
        for path, text in tree.read_many(_list_test_paths(tree)).items()
        for name, line in _parse_top_level_imports(text)
    ]
    first_imports: dict[str, SourcedValue] = {}
    for import_source in (*imported, *configured):
        name = import_source.text
        if name not in sys.stdlib_module_names and (name not in own or name in DISTRIBUTIONS):
            first_imports.setdefault(name, import_source)
    return first_imports


def find_needed_distributions(tree: SourceTree, configured: Sequence[SourcedValue]) -> frozenset[str]:
    """Return the canonical names of distributions that test files or `configured` import anywhere.

    Quoted names count, too: tests may query a distribution's version or start it as a program.
    """
    texts = tree.read_many(sorted({*_list_test_paths(tree), *tree.glob("*conftest.py")})).values()
    modules = {name for text in texts for name in (*_ANY_IMPORT.findall(text), *_QUOTED.findall(text))}
    modules |= {module_source.text for module_source in configured}
    return frozenset(canonicalize_name(DISTRIBUTIONS.get(module, module)) for module in modules)


def find_plugin_fixtures(tree: SourceTree) -> dict[str, SourcedValue]:
    """Return plugin -> first use of a fixture or marker of it that the project does not define."""
    texts = tree.read_many(_list_test_paths(tree))
    definitions = {name for text in texts.values() for name in _DEFINITION.findall(text)}
    fixtures: dict[str, SourcedValue] = {}
    first_uses: dict[str, SourcedValue] = {}
    for path, text in texts.items():
        for match in _ARGUMENTS.finditer(text):
            for name in sorted(FIXTURES.keys() & set(re.findall(r"\w+", match[1])) - definitions):
                line = text.count("\n", 0, match.start()) + 1
                fixtures.setdefault(name, SourcedValue(text=FIXTURES[name], path=path, line=line))
        for match in _MARKER.finditer(text):
            if (plugin := MARKERS.get(match[1])) and match[1] not in definitions:
                line = text.count("\n", 0, match.start()) + 1
                first_uses.setdefault(plugin, SourcedValue(text=plugin, path=path, line=line))
    # A project may be the plug-in, or the runner that took its fixture over.
    sources = sorted(path for path in tree.entries if path.endswith(".py")) if fixtures else []
    own = {name for text in tree.read_many(sources).values() for name in _FIXTURE.findall(text)}
    for name, use in fixtures.items():
        if name not in own:
            first_uses.setdefault(use.text, use)
    return first_uses


def _list_test_paths(tree: SourceTree) -> list[str]:
    """Return the files of tests, sorted, without those that pytest does not collect: data, suites of other set-ups."""
    exclusions = PytestExclusions(tree)
    return sorted(path for path in tree.entries if is_test_path(path) and not exclusions.cover(path))


def find_missing_requirements(
    tree: SourceTree,
    project_name: str,
    provided: Sequence[str],
    known: Sequence[SourcedValue],
    configured: Sequence[SourcedValue] = (),
) -> Iterator[tuple[SourcedValue, str]]:
    """Yield (place, requirement) for imports of tests that `provided` (canonical names) does not provide.

    `known`: all requirements in files of the project; their version constraints are kept. `configured`: as in
    `find_test_imports`.
    """
    by_name = {requirement.distribution_name: requirement.text for requirement in reversed(known)}
    for module, source in find_test_imports(tree, configured).items():
        name = DISTRIBUTIONS.get(module, module.lower().replace("_", "-"))
        if name in provided or name == project_name:
            continue
        if name in by_name or module in DISTRIBUTIONS:
            yield source, by_name.get(name, name)
    for plugin, source in find_plugin_fixtures(tree).items():
        if plugin not in provided:
            yield source, by_name.get(plugin, plugin)


def _parse_top_level_imports(text: str) -> Iterator[tuple[str, int]]:
    """Yield (module, line) of unindented imports. Regexes, because parsing a large suite takes half a minute."""
    for match in _IMPORT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["source"]:
            yield match["source"], line
        else:
            for part in match["names"].split("#")[0].split(","):
                yield part.split(" as ")[0].strip().partition(".")[0], line
