"""Selection of the test command: pytest unless the repository clearly uses unittest, and the options that are kept."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import PurePosixPath

from core.toml import get_table
from languages.facts import Fact, FactKind, SourcedValue, find_line, parse_requirement
from languages.python.patterns import is_test_file
from languages.python.project import load_toml
from languages.source_tree import SourceTree
from taskdb.records import TestCommand

DROPPED_OPTIONS = re.compile(
    r"--(no-)?cov\b|--cov-|-n$|-n\d|-nauto|--numprocesses|--dist\b|--maxprocesses|-x$|--exitfirst|--maxfail|--doctest|--flake8|--pep8"
    r"|--isort|--black|--mypy|--ruff|--pylint|--flakes|--durations|--junit|--html|--self-contained|--color|--tb\b|--verbose|--quiet|-[vqs]+$"
    r"|-r[a-zA-Z]*$|--strict-config|--randomly|--random-order|--ff\b|--lf\b|--failed-first|--last-failed|--nf\b|--sw\b|--stepwise"
    r"|--showlocals|-l$|--reruns|--benchmark-(?!skip|disable)|--codspeed|--pdb|--no-summary|--no-header|--showfixtures|--forked|--boxed"
    r"|--instafail|-p (pytest_)?(cov|xdist|instafail|sugar|randomly|random_order|rerunfailures|clarity|no:junitxml)$"
)
"""Matches options for reporting, concurrency and style checks, which do not change test results."""

_TAKES_VALUE = re.compile(
    r"^(-n|--numprocesses|--dist|--maxprocesses|--maxfail|--durations|--tb|--color|-r|--doctest-glob|--reruns|--cov-config)$"
)
_MAY_TAKE_VALUE = ("--cov", "--cov-report")

_STYLE_PLUGIN = re.compile(
    r"pytest-(black|checkdocs|codestyle|flake8|flakes|isort|mypy|pep8|pycodestyle|pydocstyle|pylint|ruff)"
)
"""Matches plug-ins of pytest that add a test of its style to each source file; a solution may have another style."""
OPTION_PLUGINS = {
    "--mpl": "pytest-mpl",
    "--timeout": "pytest-timeout",
    "--benchmark": "pytest-benchmark",
    "--asyncio": "pytest-asyncio",
    "--cov": "pytest-cov",
    "--ds": "pytest-django",
    "--nomigrations": "pytest-django",
    "--reuse-db": "pytest-django",
    "--remote-data": "pytest-remotedata",
    "--disable-socket": "pytest-socket",
    "--allow-hosts": "pytest-socket",
    "--import-mode": "pytest",
}
INI_PLUGINS = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "timeout": "pytest-timeout",
    "timeout_method": "pytest-timeout",
    "env": "pytest-env",
    "django_settings_module": "pytest-django",
    "django_find_project": "pytest-django",
    "qt_api": "pytest-qt",
    "trio_mode": "pytest-trio",
    "anyio_mode": "anyio",
    "python_paths": "pytest-pythonpath",
    "remote_data_strict": "pytest-remotedata",
}
"""Option or setting -> plugin that provides it."""

PLUGINS_BY_NAME = frozenset({"asyncio", "benchmark", "django", "mock", "socket", "subtests", "timeout", "trio"})
"""Names `-p NAME` of plugins whose distribution is `pytest-NAME`."""

_DEFINES_TESTS = re.compile(r"^\s*(async\s+)?def test|^class \w*Test|TestCase\)", re.MULTILINE)


PATTERNS = ("test*.py", "*_test.py", "*_tests.py")
"""Name patterns for unittest's discovery; the first wins ties."""


OWN_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
"""Files that hold nothing but settings of pytest."""


class PytestConfig:
    """Settings of pytest, from the first file that has them (in pytest's own order, since pytest 9 with its own TOML).

    A file of pytest alone has them even where it is empty.
    """

    def __init__(self, tree: SourceTree) -> None:
        self.path, self.values = "", dict[str, str | list[str]]()
        for path, section in (
            ("pytest.toml", "pytest"),
            (".pytest.toml", "pytest"),
            ("pytest.ini", "pytest"),
            (".pytest.ini", "pytest"),
            ("pyproject.toml", "tool"),
            ("tox.ini", "pytest"),
            ("setup.cfg", "tool:pytest"),
            ("setup.cfg", "pytest"),
        ):
            if not tree.is_file(path):
                continue
            read = _read_toml_section if path.endswith(".toml") else _read_ini_section
            values = read(tree, path, section)
            if values is not None or path in OWN_FILES:
                self.path, self.values = path, values or {}
                return

    def get_words(self, name: str) -> list[str]:
        """Return a setting as shell words."""
        value = self.values.get(name, "")
        if isinstance(value, list):
            return [str(item) for item in value]
        try:
            return shlex.split(value, comments=True)
        except ValueError:
            return value.split()


def _read_toml_section(tree: SourceTree, path: str, section: str) -> dict[str, str | list[str]] | None:
    content = load_toml(tree, path)
    table = get_table(content, section) if path in OWN_FILES else get_table(content, section, "pytest")
    table = get_table(table, "ini_options") if "ini_options" in table else table
    return {k.lower(): v if isinstance(v, list) else str(v) for k, v in table.items()} if table else None


def _read_ini_section(tree: SourceTree, path: str, section: str) -> dict[str, str | list[str]] | None:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(tree.read(path))
    except configparser.Error:
        return None
    return {k.lower(): v or "" for k, v in parser.items(section)} if parser.has_section(section) else None


def filter_options(words: Sequence[str]) -> list[str]:
    """Return `addopts` without DROPPED_OPTIONS and their values."""
    remaining: list[str] = []
    dropped = ""
    for word in _join_plugin_options(words):
        if _TAKES_VALUE.match(dropped) or (dropped in _MAY_TAKE_VALUE and not word.startswith("-")):
            dropped = ""
        elif DROPPED_OPTIONS.match(word):
            dropped = word
        else:
            dropped = ""
            remaining += word.split(" ") if word.startswith("-p ") else [word]
    return remaining


def _join_plugin_options(words: Sequence[str]) -> Iterator[str]:
    """Yield the words, `-p` joined with its plugin."""
    expects_plugin = False
    for word in words:
        if expects_plugin or word != "-p":
            yield f"-p {word}" if expects_plugin else word
        expects_plugin = word == "-p" and not expects_plugin


def find_plugins(config: PytestConfig, options: Sequence[str], text: str) -> Iterator[SourcedValue]:
    """Yield the plugins required by the kept options, `-p` and the settings."""
    for option in options:
        for prefix, plugin in OPTION_PLUGINS.items():
            if option.startswith(prefix):
                yield SourcedValue(text=plugin, path=config.path, line=find_line(text, option))
    for option, module in pairwise(options):
        if option == "-p" and (distribution := _plugin_distribution(module)):
            yield SourcedValue(text=distribution, path=config.path, line=find_line(text, module))
    for name in config.get_words("required_plugins"):
        if requirement := parse_requirement(name):
            yield SourcedValue(text=requirement, path=config.path, line=find_line(text, name))
    for name in config.values:
        if plugin_name := INI_PLUGINS.get(name):
            yield SourcedValue(text=plugin_name, path=config.path, line=find_line(text.lower(), name))


def _plugin_distribution(module: str) -> str:
    """Return the distribution of a plugin given by `-p`; empty for built-in, own and disabled plugins."""
    if module in PLUGINS_BY_NAME:
        return f"pytest-{module}"
    name = module.partition(".")[0]
    return name.replace("_", "-") if name.startswith("pytest_") else ""


def find_configured_modules(config: PytestConfig, text: str) -> Iterator[SourcedValue]:
    """Yield the top-level modules that pytest imports for its settings: classes in warning filters.

    `text`: the file with the settings.
    """
    filters = config.values.get("filterwarnings", "")
    for line in filters.splitlines() if isinstance(filters, str) else filters:
        category = f"{line}:::".split(":")[2].strip()
        module, dot, _ = category.partition(".")
        if dot and module.isidentifier():
            yield SourcedValue(text=module, path=config.path, line=find_line(text, category))


def defines_tests(text: str) -> bool:
    """Return whether a Python file appears to define a test."""
    return _DEFINES_TESTS.search(text) is not None


def find_test_files(tree: SourceTree, paths: Sequence[str] = ()) -> list[str]:
    """Return the test files that define tests, below `paths` (all if empty), sorted."""
    prefixes = tuple(path.rstrip("/") for path in paths if path not in (".", "./"))
    relaxed_pattern = detect_relaxed_patterns(tree)
    candidates = [
        p
        for p in tree.entries
        if (is_test_file(p) or (relaxed_pattern and relaxed_pattern.fullmatch(p)))
        and (not prefixes or any(p == w or p.startswith(f"{w}/") for w in prefixes))
    ]
    return [
        path
        for path, text in tree.read_many(sorted(candidates)).items()
        if defines_tests(text) or (relaxed_pattern and relaxed_pattern.fullmatch(path) and _DEFINES_SPECS.search(text))
    ]


_DEFINES_SPECS = re.compile(r"^class \w+", re.MULTILINE)


def detect_relaxed_patterns(tree: SourceTree) -> re.Pattern[str] | None:
    """Return the regex of test paths for `python_files = *` (pytest-relaxed): every file in a test folder.

    Files and folders that start with an underscore are excluded.
    """
    config = PytestConfig(tree)
    if not {"*", "*.py"} & set(config.get_words("python_files")):
        return None
    folders = "|".join(re.escape(path.strip("/")) for path in config.get_words("testpaths") if path.strip("./"))
    return re.compile(rf"({folders})/([^_/][^/]*/)*(?!conftest\.py)[^_/][^/]*\.py") if folders else None


def find_pytest_use(
    tree: SourceTree, facts: Sequence[Fact], requirements: Sequence[SourcedValue], config: PytestConfig
) -> SourcedValue | None:
    """Return the first place that refers to pytest; None if there is none."""
    for requirement in requirements:
        if requirement.distribution_name == "pytest":
            return requirement
    for fact in facts:
        if fact.kind is FactKind.TEST_LINE and re.search(r"pytest|py\.test", fact.value):
            return SourcedValue(text=fact.value, path=fact.path, line=fact.line)
    if config.path:
        return SourcedValue(text="pytest", path=config.path, line=0)
    for path in find_test_files(tree):
        if match := re.search(r"^\s*(import|from) (pytest|nose)\b", tree.read(path), re.MULTILINE):
            return SourcedValue(text="pytest", path=path, line=tree.read(path).count("\n", 0, match.start()) + 1)
    if not any("unittest" in tree.read(path) for path in find_test_files(tree)):
        return SourcedValue(text="pytest", path="(default)", line=0)
    return None


def block_style_plugins(
    argv: Sequence[str], config: PytestConfig, requirements: Iterable[SourcedValue], own_name: str
) -> tuple[str, ...]:
    """Return the command of pytest without the plug-ins for style that requirements name.

    The project itself, and the plug-ins that its settings require to be loaded, stay.
    """
    names = {
        requirement.distribution_name
        for requirement in requirements
        if _STYLE_PLUGIN.fullmatch(requirement.distribution_name)
    }
    required = (SourcedValue(text=word, path=config.path) for word in config.get_words("required_plugins"))
    needed = {plugin.distribution_name for plugin in required}
    blocked = sorted(names - needed - {own_name})
    return (*argv, *(word for name in blocked for word in ("-p", f"no:{name.removeprefix('pytest-')}")))


def build_test_command(
    tree: SourceTree, facts: Sequence[Fact], config: PytestConfig, *, pytest: bool
) -> tuple[TestCommand, SourcedValue]:
    """Return the test command and the source of its paths."""
    paths, source = _find_test_paths(tree, facts, config)
    if not pytest:
        return TestCommand(
            framework="unittest", argv=("python", "-m", "unittest", *_unittest_arguments(tree, paths))
        ), source
    addopts = config.get_words("addopts")
    remaining = filter_options(addopts)
    argv = ["pytest"]
    if remaining != addopts:
        argv += ["-o", f"addopts={shlex.join(remaining)}"]
    return TestCommand(framework="pytest", argv=tuple(argv), paths=paths), source


def _unittest_arguments(tree: SourceTree, paths: Sequence[str]) -> list[str]:
    """Return the arguments of unittest's discovery, which takes a start folder and a pattern."""
    start = paths[0] if len(paths) == 1 and paths[0] in tree.folders else "."
    files = find_test_files(tree, [start])
    names = [path.rpartition("/")[2] for path in files]
    # testing.py and similar names do not identify a pattern; the pattern of most files is used.
    matches = {pattern: sum(fnmatch(name, pattern) for name in names) for pattern in PATTERNS}
    pattern = max(PATTERNS, key=lambda candidate: matches[candidate]) if any(matches.values()) else "*test*.py"
    # The top folder is importable by name only if the start folder is a package.
    top = ["-t", "."] if start != "." and tree.is_file(f"{start}/__init__.py") else []
    if package := _find_package_in_namespace(tree, start, pattern, files):
        start, top = package, ["-t", start]
    return ["discover", "-s", start, "-p", pattern, *top]


def _find_package_in_namespace(tree: SourceTree, start: str, pattern: str, files: Sequence[str]) -> str:
    """Return the package that discovery has to start in if it loads none of `files` from `start`; empty for none."""

    def count_loaded(folder: str) -> int:
        return len(select_discovered_files(tree, files, ("-s", folder, "-p", pattern)))

    if count_loaded(start):
        return ""
    folders = {str(parent) for file in files for parent in PurePosixPath(file).parents}
    packages = sorted(folder for folder in folders if tree.is_file(f"{folder}/__init__.py"))
    return max(packages, key=count_loaded, default="")


def select_discovered_files(tree: SourceTree, files: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return the files that `python -m unittest discover` loads, which only enters packages.

    Args:
        tree: tree of the base commit.
        files: test files.
        argv: the command, with `-s` for the start folder and `-p` for the pattern.
    """
    options = dict(pairwise(argv))
    start = PurePosixPath(options.get("-s", "."))
    pattern = options.get("-p", "test*.py")

    def is_reached(path: PurePosixPath) -> bool:
        folders = list(path.parents)
        if start not in folders or not fnmatch(path.name, pattern):
            return False
        return all(tree.is_file(str(folder / "__init__.py")) for folder in folders[: folders.index(start)])

    return [path for path in files if is_reached(PurePosixPath(path))]


def _find_test_paths(
    tree: SourceTree, facts: Sequence[Fact], config: PytestConfig
) -> tuple[tuple[str, ...], SourcedValue]:
    configured = [path for word in config.get_words("testpaths") for path in _expand_glob(tree, word)]
    configured = [path for path in configured if find_test_files(tree, [path])]
    if configured:
        text = tree.read(config.path)
        return tuple(configured), SourcedValue(text="testpaths", path=config.path, line=find_line(text, "testpaths"))
    for fact in facts:
        if fact.kind is FactKind.TEST_LINE and "$" not in fact.value:
            words = [w for w in fact.value.split() if not w.startswith("-") and tree.exists(w.strip("'\"./"))]
            paths_in_command = tuple(dict.fromkeys(w.strip("'\"").removeprefix("./").rstrip("/") for w in words))
            # A single file in some job is not the suite; at least half of all test files are required.
            if paths_in_command and 2 * len(find_test_files(tree, paths_in_command)) > len(find_test_files(tree)):
                return paths_in_command, SourcedValue(text=fact.value, path=fact.path, line=fact.line)
    test_files = [
        p
        for p in find_test_files(tree)
        if not re.search(r"(^|/)(examples?|docs?|benchmarks?|performance|asv_bench|tools|utils)/", p)
    ]
    tops = {_top_test_folder(path) for path in test_files}
    paths = tuple(sorted(top for top in tops if not any(top != o and top.startswith(f"{o}/") for o in tops)))
    return paths, SourcedValue(text="test files", path=test_files[0] if test_files else "(default)", line=0)


def _top_test_folder(path: str) -> str:
    """Return the outermost test folder that contains `path`, else the top folder, else the file itself."""
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if re.fullmatch(r"tests?|testing|unit_?tests?", part):
            # Packages with tests in each subpackage are listed once, as the package.
            return "/".join(parts[: index + 1]) if index <= 1 else parts[0]
    return parts[0]


def _expand_glob(tree: SourceTree, word: str) -> list[str]:
    word = word.removeprefix("./").rstrip("/")
    if "*" in word:
        return [path for path in sorted(tree.folders) if re.fullmatch(re.escape(word).replace(r"\*", "[^/]*"), path)]
    return [word] if word not in ("", ".") and tree.exists(word) else []
