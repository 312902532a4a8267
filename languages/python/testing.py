"""How the tests are run: pytest unless nothing in the repository knows it, and what of its options belongs here."""

from __future__ import annotations

import configparser
import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise

from languages.facts import Fact, Kind, Wanted, line_of, requirement
from languages.paths import is_test_file
from languages.python.project import load_toml
from languages.tree import Tree
from taskdb.records import TestCommand

DROPPED = re.compile(
    r"--(no-)?cov\b|--cov-|-n$|-n\d|-nauto|--numprocesses|--dist\b|--maxprocesses|-x$|--exitfirst|--maxfail|--doctest|--flake8|--pep8"
    r"|--isort|--black|--mypy|--ruff|--pylint|--flakes|--durations|--junit|--html|--self-contained|--color|--tb\b|--verbose|--quiet|-[vqs]+$"
    r"|-r[a-zA-Z]*$|--strict-config|--randomly|--random-order|--ff\b|--lf\b|--failed-first|--last-failed|--nf\b|--sw\b|--stepwise"
    r"|--showlocals|-l$|--reruns|--benchmark-(?!skip|disable)|--codspeed|--pdb|--no-summary|--no-header|--showfixtures|--forked|--boxed"
    r"|--instafail|-p (pytest_)?(cov|xdist|instafail|sugar|randomly|random_order|rerunfailures|clarity|no:junitxml)$"
)
"""Options that report, hurry or check style: nothing of what a test says depends on them."""

_TAKES_VALUE = re.compile(
    r"^(-n|--numprocesses|--dist|--maxprocesses|--maxfail|--durations|--tb|--color|-r|--doctest-glob|--reruns|--cov-config)$"
)
_MAY_TAKE_VALUE = ("--cov", "--cov-report")

OPTION_PLUGINS = {
    "--mpl": "pytest-mpl", "--timeout": "pytest-timeout", "--benchmark": "pytest-benchmark",
    "--asyncio": "pytest-asyncio", "--cov": "pytest-cov",
    "--ds": "pytest-django", "--nomigrations": "pytest-django",
    "--reuse-db": "pytest-django", "--remote-data": "pytest-remotedata",
    "--disable-socket": "pytest-socket", "--allow-hosts": "pytest-socket", "--import-mode": "pytest",
}  # fmt: skip
INI_PLUGINS = {
    "asyncio_mode": "pytest-asyncio", "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "timeout": "pytest-timeout",
    "timeout_method": "pytest-timeout", "env": "pytest-env", "django_settings_module": "pytest-django",
    "django_find_project": "pytest-django", "qt_api": "pytest-qt", "trio_mode": "pytest-trio", "anyio_mode": "anyio",
    "python_paths": "pytest-pythonpath", "remote_data_strict": "pytest-remotedata",
}  # fmt: skip
"""Options and settings -> plugin that knows them."""

PLUGINS_BY_NAME = frozenset({"asyncio", "benchmark", "django", "mock", "socket", "subtests", "timeout", "trio"})
"""What `-p` calls plugins of the distributions `pytest-NAME`."""

_DEFINES_TESTS = re.compile(r"^\s*(async\s+)?def test|^class \w*Test|TestCase\)", re.MULTILINE)


PATTERNS = ("test*.py", "*_test.py", "*_tests.py")
"""Names that unittest's discovery is told, of equally many matches the first."""


class PytestConfig:
    """The settings pytest would read, from the first file that has them (pytest's own order)."""

    def __init__(self, tree: Tree) -> None:
        self.path, self.values = "", dict[str, str | list[str]]()
        for path, section in (
            ("pytest.ini", "pytest"),
            (".pytest.ini", "pytest"),
            ("pyproject.toml", ""),
            ("tox.ini", "pytest"),
            ("setup.cfg", "tool:pytest"),
            ("setup.cfg", "pytest"),
        ):
            values = _toml_section(tree, path) if not section else _ini_section(tree.read(path), section)
            if values is not None:
                self.path, self.values = path, values
                return

    def words(self, name: str) -> list[str]:
        """A setting as shell words."""
        value = self.values.get(name, "")
        if isinstance(value, list):
            return [str(item) for item in value]
        try:
            return shlex.split(value, comments=True)
        except ValueError:
            return value.split()


def _toml_section(tree: Tree, path: str) -> dict[str, str | list[str]] | None:
    table = load_toml(tree, path).get("tool", {}).get("pytest", {})
    table = table.get("ini_options", table)
    return {k.lower(): v if isinstance(v, list) else str(v) for k, v in table.items()} if table else None


def _ini_section(text: str, section: str) -> dict[str, str | list[str]] | None:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return {k.lower(): v or "" for k, v in parser.items(section)} if parser.has_section(section) else None


def kept_options(words: Sequence[str]) -> list[str]:
    """`addopts` without the DROPPED options and their values."""
    kept: list[str] = []
    dropped = ""
    for word in _plugins_joined(words):
        if _TAKES_VALUE.match(dropped) or (dropped in _MAY_TAKE_VALUE and not word.startswith("-")):
            dropped = ""
        elif DROPPED.match(word):
            dropped = word
        else:
            dropped = ""
            kept += word.split(" ") if word.startswith("-p ") else [word]
    return kept


def _plugins_joined(words: Sequence[str]) -> Iterator[str]:
    """The words, `-p` and the plugin it names as one."""
    waiting = False
    for word in words:
        if waiting or word != "-p":
            yield f"-p {word}" if waiting else word
        waiting = word == "-p" and not waiting


def plugins(config: PytestConfig, options: Sequence[str], text: str) -> Iterator[Wanted]:
    """Plugins that the kept options, `-p` and the settings need."""
    for option in options:
        for prefix, plugin in OPTION_PLUGINS.items():
            if option.startswith(prefix):
                yield Wanted(text=plugin, path=config.path, line=line_of(text, option))
    for option, module in pairwise(options):
        if option == "-p" and (named := _distribution(module)):
            yield Wanted(text=named, path=config.path, line=line_of(text, module))
    for name in config.words("required_plugins"):
        if text_of := requirement(name):
            yield Wanted(text=text_of, path=config.path, line=line_of(text, name))
    for name in config.values:
        if plugin_name := INI_PLUGINS.get(name):
            yield Wanted(text=plugin_name, path=config.path, line=line_of(text.lower(), name))


def _distribution(module: str) -> str:
    """The distribution of a plugin that `-p` names; empty for pytest's own, the project's and what is switched off."""
    if module in PLUGINS_BY_NAME:
        return f"pytest-{module}"
    name = module.partition(".")[0]
    return name.replace("_", "-") if name.startswith("pytest_") else ""


def configured_modules(config: PytestConfig, text: str) -> Iterator[Wanted]:
    """Top-level modules that pytest imports for its settings: the classes of warnings that filters name.

    `text`: the file that holds the settings.
    """
    given = config.values.get("filterwarnings", "")
    for line in given.splitlines() if isinstance(given, str) else given:
        category = f"{line}:::".split(":")[2].strip()
        module, dot, _ = category.partition(".")
        if dot and module.isidentifier():
            yield Wanted(text=module, path=config.path, line=line_of(text, category))


def holds_tests(text: str) -> bool:
    """Whether a Python file seems to define a test."""
    return _DEFINES_TESTS.search(text) is not None


def defining_files(tree: Tree, paths: Sequence[str] = ()) -> list[str]:
    """Test files that define tests, below `paths` (all when empty), sorted."""
    within = tuple(path.rstrip("/") for path in paths if path not in (".", "./"))
    spec = relaxed(tree)
    found = [
        p
        for p in tree.entries
        if (is_test_file(p) or (spec and spec.fullmatch(p)))
        and (not within or any(p == w or p.startswith(f"{w}/") for w in within))
    ]
    return [
        path for path, text in tree.read_many(sorted(found)).items()
        if holds_tests(text) or (spec and spec.fullmatch(path) and _SPECIFIES.search(text))
    ]  # fmt: skip


_SPECIFIES = re.compile(r"^class \w+", re.MULTILINE)


def relaxed(tree: Tree) -> re.Pattern[str] | None:
    """What paths of tests look like where every file of the test folders is one: `python_files = *` (pytest-relaxed).

    There, a name that begins with an underscore says that a file or folder is none.
    """
    config = PytestConfig(tree)
    if not {"*", "*.py"} & set(config.words("python_files")):
        return None
    folders = "|".join(re.escape(path.strip("/")) for path in config.words("testpaths") if path.strip("./"))
    return re.compile(rf"({folders})/([^_/][^/]*/)*(?!conftest\.py)[^_/][^/]*\.py") if folders else None


def uses_pytest(tree: Tree, facts: Sequence[Fact], known: Sequence[Wanted], config: PytestConfig) -> Wanted | None:
    """Where pytest is first spoken of, or None."""
    for wanted in known:
        if wanted.name == "pytest":
            return wanted
    for fact in facts:
        if fact.kind is Kind.TEST_LINE and re.search(r"pytest|py\.test", fact.value):
            return Wanted(text=fact.value, path=fact.path, line=fact.line)
    if config.path:
        return Wanted(text="pytest", path=config.path, line=0)
    for path in defining_files(tree):
        if match := re.search(r"^\s*(import|from) (pytest|nose)\b", tree.read(path), re.MULTILINE):
            return Wanted(text="pytest", path=path, line=tree.read(path).count("\n", 0, match.start()) + 1)
    if not any("unittest" in tree.read(path) for path in defining_files(tree)):
        return Wanted(text="pytest", path="(default)", line=0)
    return None


def command(tree: Tree, facts: Sequence[Fact], config: PytestConfig, *, pytest: bool) -> tuple[TestCommand, Wanted]:
    """The test command and where its paths come from."""
    paths, place = _paths(tree, facts, config)
    if not pytest:
        return TestCommand(framework="unittest", argv=("python", "-m", "unittest", *_discovery(tree, paths))), place
    words = config.words("addopts")
    kept = kept_options(words)
    argv = ["pytest"]
    if kept != words:
        argv += ["-o", f"addopts={shlex.join(kept)}"]
    return TestCommand(framework="pytest", argv=tuple(argv), paths=paths), place


def _discovery(tree: Tree, paths: Sequence[str]) -> list[str]:
    """Arguments of unittest's discovery, which knows one folder to start from and one pattern of names."""
    start = paths[0] if len(paths) == 1 and paths[0] in tree.folders else "."
    names = [path.rpartition("/")[2] for path in defining_files(tree, [start])]
    # testing.py and the like are no sign of a pattern: the one that most files have decides.
    matches = {pattern: sum(fnmatch(name, pattern) for name in names) for pattern in PATTERNS}
    pattern = max(PATTERNS, key=lambda one: matches[one]) if any(matches.values()) else "*test*.py"
    # The top is only importable by its own name when the folder is a package.
    top = ["-t", "."] if start != "." and tree.is_file(f"{start}/__init__.py") else []
    return ["discover", "-s", start, "-p", pattern, *top]


def _paths(tree: Tree, facts: Sequence[Fact], config: PytestConfig) -> tuple[tuple[str, ...], Wanted]:
    configured = [path for word in config.words("testpaths") for path in _expand(tree, word)]
    configured = [path for path in configured if defining_files(tree, [path])]
    if configured:
        text = tree.read(config.path)
        return tuple(configured), Wanted(text="testpaths", path=config.path, line=line_of(text, "testpaths"))
    for fact in facts:
        if fact.kind is Kind.TEST_LINE and "$" not in fact.value:
            words = [w for w in fact.value.split() if not w.startswith("-") and tree.exists(w.strip("'\"./"))]
            named = tuple(dict.fromkeys(w.strip("'\"").removeprefix("./").rstrip("/") for w in words))
            # One file named by some job is not the suite; half of all test files are.
            if named and 2 * len(defining_files(tree, named)) > len(defining_files(tree)):
                return named, Wanted(text=fact.value, path=fact.path, line=fact.line)
    found = [
        p
        for p in defining_files(tree)
        if not re.search(r"(^|/)(examples?|docs?|benchmarks?|performance|asv_bench|tools|utils)/", p)
    ]
    tops = {_top(path) for path in found}
    paths = tuple(sorted(top for top in tops if not any(top != o and top.startswith(f"{o}/") for o in tops)))
    return paths, Wanted(text="test files", path=found[0] if found else "(default)", line=0)


def _top(path: str) -> str:
    """The outermost folder of tests that holds `path`, else the top folder, else the file itself."""
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        if re.fullmatch(r"tests?|testing|unit_?tests?", part):
            # Packages with tests in each subpackage are named once, by the package.
            return "/".join(parts[: at + 1]) if at <= 1 else parts[0]
    return parts[0]


def _expand(tree: Tree, word: str) -> list[str]:
    word = word.removeprefix("./").rstrip("/")
    if "*" in word:
        return [path for path in sorted(tree.folders) if re.fullmatch(re.escape(word).replace(r"\*", "[^/]*"), path)]
    return [word] if word not in ("", ".") and tree.exists(word) else []
