"""What the test files import, for what nobody declares. Files are read, never imported."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from packaging.utils import canonicalize_name

from languages.facts import Wanted
from languages.paths import is_test_path
from languages.tree import Tree

DISTRIBUTIONS = {
    "pytest": "pytest", "mock": "mock", "hypothesis": "hypothesis", "pytz": "pytz", "simplejson": "simplejson",
    "nose": "nose", "six": "six", "yaml": "pyyaml", "dateutil": "python-dateutil", "attr": "attrs",
    "requests": "requests",
    "numpy": "numpy", "pandas": "pandas", "scipy": "scipy", "freezegun": "freezegun", "pretend": "pretend",
    "responses": "responses", "parameterized": "parameterized", "pytest_asyncio": "pytest-asyncio", "trio": "trio",
    "html5lib": "html5lib", "testfixtures": "testfixtures", "flaky": "flaky", "pkg_resources": "setuptools",
    "setuptools": "setuptools", "marshmallow": "marshmallow", "bs4": "beautifulsoup4", "lxml": "lxml", "PIL": "pillow",
    "jsonschema": "jsonschema", "tomli": "tomli", "docutils": "docutils", "jinja2": "jinja2", "flask": "flask",
    "django": "django", "sqlalchemy": "sqlalchemy", "faker": "faker", "factory": "factory-boy", "ddt": "ddt",
    "mpmath": "mpmath", "pyfakefs": "pyfakefs", "syrupy": "syrupy", "time_machine": "time-machine",
    "typing_extensions": "typing-extensions", "importlib_metadata": "importlib-metadata", "psutil": "psutil",
    "pytest_mock": "pytest-mock", "pytest_benchmark": "pytest-benchmark", "testtools": "testtools", "sybil": "sybil",
    "defusedxml": "defusedxml", "babel": "babel", "toml": "toml", "ujson": "ujson", "aiohttp": "aiohttp",
    "coverage": "coverage", "pytest_cov": "pytest-cov",
}  # fmt: skip
"""Import name -> distribution, for what tests commonly use. Others count only when some file names them."""

FIXTURES = {
    "mocker": "pytest-mock", "benchmark": "pytest-benchmark", "httpbin": "pytest-httpbin",
    "requests_mock": "requests-mock",
    "freezer": "pytest-freezer", "snapshot": "syrupy", "fs": "pyfakefs", "datadir": "pytest-datadir",
    "httpserver": "pytest-httpserver", "subtests": "pytest-subtests", "aiohttp_client": "pytest-aiohttp",
}  # fmt: skip
"""Fixture name -> plugin that brings it."""

MARKERS = {
    "xdist_group": "pytest-xdist", "asyncio": "pytest-asyncio", "django_db": "pytest-django",
    "timeout": "pytest-timeout", "trio": "pytest-trio", "benchmark": "pytest-benchmark", "vcr": "pytest-recording",
    "freeze_time": "pytest-freezer", "order": "pytest-order", "dependency": "pytest-dependency",
    "gen_test": "pytest-tornado", "qt_log_ignore": "pytest-qt", "mpl_image_compare": "pytest-mpl",
    "enable_socket": "pytest-socket", "disable_socket": "pytest-socket", "remote_data": "pytest-remotedata",
}  # fmt: skip
"""Marker -> plugin that knows it; with `--strict-markers` no file that uses it is collected without."""


_ANYWHERE = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:from[ \t]+(?P<source>\w+)[\w.]*[ \t]+import\b|import[ \t]+(?P<names>.+))", re.MULTILINE)
_QUOTED = re.compile(r"""["']([A-Za-z][\w-]+)["']""")
_MARKER = re.compile(r"^[ \t]*(?:@|pytestmark = \[?)pytest\.mark\.(\w+)", re.MULTILINE)
_DEFINED = re.compile(r"\bdef (\w+)\(")
_ARGUMENTS = re.compile(r"^[ \t]*(?:async )?def test\w*\(([^)]+)\)", re.MULTILINE)


def imported_by_tests(tree: Tree, configured: Sequence[Wanted] = ()) -> dict[str, Wanted]:
    """Top-level module -> first place where a test file imports it; not the project's own, not the standard library's.

    Indented imports (inside `try`, `if` or functions) count as optional and are left out. `configured`: modules that
    the runner's configuration imports, added to the others.
    """
    own = {path.rpartition("/")[2].removesuffix(".py") for path in tree.entries if path.endswith(".py")}
    own |= {part for folder in tree.folders for part in folder.split("/")}
    paths = [path for path in tree.entries if path.endswith(".py") and is_test_path(path)]
    places = [
        Wanted(text=name, path=path, line=line)
        for path, text in tree.read_many(sorted(paths)).items()
        for name, line in _top_level(text)
    ]
    found: dict[str, Wanted] = {}
    for place in (*places, *configured):
        name = place.text
        if name not in sys.stdlib_module_names and (name not in own or name in DISTRIBUTIONS):
            found.setdefault(name, place)
    return found


def needed(tree: Tree, configured: Sequence[Wanted]) -> frozenset[str]:
    """Distributions (canonical names) that test files import anywhere, indented too, or that `configured` names.

    What they name in quotes counts, too: they may ask for its version or start it as a program.
    """
    paths = [path for path in tree.entries if path.endswith(".py") and is_test_path(path)]
    texts = tree.read_many(sorted({*paths, *tree.glob("*conftest.py")})).values()
    modules = {name for text in texts for name in (*_ANYWHERE.findall(text), *_QUOTED.findall(text))}
    modules |= {wanted.text for wanted in configured}
    return frozenset(canonicalize_name(DISTRIBUTIONS.get(module, module)) for module in modules)


def fixtures_used(tree: Tree) -> dict[str, Wanted]:
    """Plugin -> first place where a test asks for a fixture or marker of it that the project does not define."""
    paths = [path for path in tree.entries if path.endswith(".py") and is_test_path(path)]
    texts = tree.read_many(sorted(paths))
    defined = {name for text in texts.values() for name in _DEFINED.findall(text)}
    found: dict[str, Wanted] = {}
    for path, text in texts.items():
        for match in _ARGUMENTS.finditer(text):
            for name in sorted(FIXTURES.keys() & set(re.findall(r"\w+", match[1])) - defined):
                line = text.count("\n", 0, match.start()) + 1
                found.setdefault(FIXTURES[name], Wanted(text=FIXTURES[name], path=path, line=line))
        for match in _MARKER.finditer(text):
            if (plugin := MARKERS.get(match[1])) and match[1] not in defined:
                line = text.count("\n", 0, match.start()) + 1
                found.setdefault(plugin, Wanted(text=plugin, path=path, line=line))
    return found


def missing(
    tree: Tree, project_name: str, have: Sequence[str], known: Sequence[Wanted], configured: Sequence[Wanted] = ()
) -> Iterator[tuple[Wanted, str]]:
    """(place, requirement) of what tests import and `have` (canonical names) lacks.

    `known`: all requirements that any file of the project names; their version constraints are kept.
    `configured`: as in `imported_by_tests`.
    """
    by_name = {wanted.name: wanted.text for wanted in reversed(known)}
    for module, place in imported_by_tests(tree, configured).items():
        name = DISTRIBUTIONS.get(module, module.lower().replace("_", "-"))
        if name in have or name == project_name:
            continue
        if name in by_name or module in DISTRIBUTIONS:
            yield place, by_name.get(name, name)
    for plugin, place in fixtures_used(tree).items():
        if plugin not in have:
            yield place, by_name.get(plugin, plugin)


def _top_level(text: str) -> Iterator[tuple[str, int]]:
    """(module, line) of imports in the first column; the syntax trees of a large suite would take half a minute."""
    for match in _IMPORT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["source"]:
            yield match["source"], line
        else:
            for part in match["names"].split("#")[0].split(","):
                yield part.split(" as ")[0].strip().partition(".")[0], line
