"""Test runners: parsing of their command lines, and the options that are kept in a plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from languages.node.scripts import SimpleCommand


@dataclass(frozen=True, kw_only=True)
class NodeTestRunner:
    """A test runner. Options are regexes that match the option name without `=value`."""

    framework: str
    """Name in `languages.node.frameworks`."""
    package: str
    """Name in package.json; empty for Node itself."""
    value_options: str = ""
    """Options that take the next word as value."""
    path_options: str = ""
    """Options whose value is a file or pattern."""
    dropped_options: str = ""
    """Options for reporting, watching, coverage and concurrency, which do not change test results."""
    subcommands: tuple[str, ...] = ()
    """Subcommands, such as `run`, that the framework's shell template adds itself."""


RUNNERS: dict[str, NodeTestRunner] = {
    "jest": NodeTestRunner(
        framework="jest",
        package="jest",
        value_options=r"-c|--config|--projects|--selectProjects|--rootDir|--roots|-t|--testNamePattern|--testPathPatterns?"
        r"|--env|--testEnvironment|--maxWorkers|-w|--testTimeout|--preset|--shard|--coverageDirectory|--reporters"
        r"|--coverageReporters|--testPathIgnorePatterns|--modulePathIgnorePatterns|--outputFile|--runner"
        r"|--collectCoverageFrom|--setupFilesAfterEnv|--cacheDirectory|--logHeapUsage|--workerIdleMemoryLimit",
        dropped_options=r"--coverage\w*|--collectCoverage\w*|--watch\w*|--ci|--silent|--verbose|--reporters|--json|--outputFile|-i"
        r"|--bail|-b|--colors?|--no-coverage|--notify|--onlyChanged|-o|--changedSince|-u|--updateSnapshot|--forceExit"
        r"|--maxWorkers|-w|--shard|--detectOpenHandles|--no-cache|--clearCache|--logHeapUsage|--passWithNoTests",
    ),
    "vitest": NodeTestRunner(
        framework="vitest",
        package="vitest",
        subcommands=("run", "watch", "dev"),
        value_options=r"-c|--config|-r|--root|--dir|--project|--environment|--mode|-t|--testNamePattern|--reporter|--outputFile"
        r"|--pool|--maxWorkers|--minWorkers|--testTimeout|--hookTimeout|--shard|--retry|--exclude|--workspace",
        dropped_options=r"--coverage[\w.]*|--watch|-w|--run|--reporter|--outputFile|--ui|--open|--silent|--bail|--shard|-u|--update"
        r"|--changed|--no-watch|--no-color|--color|--hideSkippedTests|--typecheck[\w.]*|--passWithNoTests|--no-coverage",
    ),
    "mocha": NodeTestRunner(
        framework="mocha",
        package="mocha",
        value_options=r"-r|--require|--import|-t|--timeout|--timeouts|-s|--slow|-u|--ui|--config|--opts|--file|--ignore"
        r"|--exclude|-R|--reporter|-O|--reporter-options?|-g|--grep|-f|--fgrep|--extension|--ext|--compilers|-j|--jobs"
        r"|--globals?|--watch-files|--retries|--loader|--experimental-loader|-n|--node-option|-C"
        r"|--package|--es-module.*",
        path_options=r"--spec",
        dropped_options=r"-R|--reporter|-O|--reporter-options?|-w|--watch|--watch-files|--bail|-b|--colors?|-c|--no-colors?|-C"
        r"|--parallel|-p|-j|--jobs|--growl|-G|--exit|--no-exit|--inspect.*|--forbid-only|--forbid-pending"
        r"|--full-trace",
    ),
    "ava": NodeTestRunner(
        framework="ava",
        package="ava",
        value_options=r"--config|--match|-m|--concurrency|-c|--timeout|-T|--node-arguments",
        dropped_options=r"--tap|-t|--timeout|-T|--verbose|-v|--watch|-w|--fail-fast|--color|--no-color|--concurrency|-c|--serial|-s|-u"
        r"|--update-snapshots",
    ),
    "tape": NodeTestRunner(
        framework="tap", package="tape", value_options=r"-r|--require|-i|--ignore", dropped_options=r"--no-only"
    ),
    "tap": NodeTestRunner(
        framework="tap",
        package="tap",
        value_options=r"-R|--reporter|-j|--jobs|-t|--timeout|--node-arg|--test-arg|-T|--coverage-map",
        dropped_options=r"-.*",
    ),
    # uvu names only the tests that fail, so each file runs by itself and counts as a test.
    "uvu": NodeTestRunner(
        framework="tap",
        package="uvu",
        value_options=r"-r|--require|-i|--ignore|-C|--cwd",
        dropped_options=r"-b|--bail|-c|--color|-q|--quiet|-i|--ignore",
    ),
    "borp": NodeTestRunner(
        framework="borp",
        package="borp",
        value_options=r"-r|--reporter|-c|--concurrency|-t|--timeout|--ignore|-i"
        r"|--lines|--branches|--functions|--statements|-X|--coverage-exclude|--config",
        path_options=r"-p|--pattern",
        dropped_options=r"--reporter|-r|--coverage|-C|--check-coverage|--lines|--branches|--functions|--statements|-X"
        r"|--coverage-exclude|--watch|-w|--concurrency|-c",
    ),
}
"""Name of the executable -> runner."""

NODE_TEST = NodeTestRunner(
    framework="node:test",
    package="",
    value_options=r"-r|--require|--import|--loader|--experimental-loader|--test-name-pattern|--test-reporter"
    r"|--test-reporter-destination|--test-timeout|--test-concurrency|-C|--conditions|--env-file|--test-isolation"
    r"|--test-skip-pattern|--test-shard",
    dropped_options=r"--test-reporter(-destination)?|--experimental-test-coverage|--test-coverage.*|--watch|--test-only|--test-shard"
    r"|--test-concurrency|--test-update-snapshots|--test",
)
PLAIN_NODE = NodeTestRunner(
    framework="tap", package="", value_options=r"-r|--require|--import|--loader|--experimental-loader|-C|--conditions"
)

BUN = NodeTestRunner(
    framework="bun",
    package="",
    value_options=r"--timeout|-t|--test-name-pattern|--preload|-r|--require|--rerun-each|--coverage-reporter|--coverage-dir"
    r"|--reporter|--reporter-outfile|--seed|--max-concurrency|--tsconfig-override|--define|--conditions|--env-file|-c|--config",
    dropped_options=r"--coverage.*|--watch|--hot|--bail|--reporter|--reporter-outfile|--randomize|--seed|-u|--update-snapshots"
    r"|--max-concurrency|--only-failures|--dots",
)
"""The runner that `bun test` starts: a subcommand, so its name is not in RUNNERS."""

BROWSERS = frozenset(
    (  # noqa: SIM905 - one word per line would take fifteen lines
        "karma wtr web-test-runner testem cypress playwright wdio nightwatch testcafe protractor airtap zuul "
        "webpack-dev-server"
    ).split()
)
"""Runners that need a browser."""

_EQUIVALENTS = {
    "react-scripts": "test",
    "craco": "test",
    "kcd-scripts": "test",
    "tsdx": "test",
    "dts": "test",
    "vue-cli-service": "test:unit",
    "wp-scripts": "test-unit-js",
    "kent": "test",
    "jest-cli": "",
    "react-app-rewired": "test",
    "umi-test": "",
    "lerna-jest": "",
}
"""Commands that wrap jest -> their test subcommand."""
_LOADERS = frozenset({"tsx", "ts-node", "ts-node-esm", "babel-node", "esmo", "tsm", "sucrase-node", "node"})


@dataclass(frozen=True, kw_only=True)
class RunnerCall:
    """A parsed command line of a runner."""

    runner: NodeTestRunner
    argv: tuple[str, ...]
    paths: tuple[str, ...]
    script: str

    @property
    def comparison_key(self) -> tuple[str, tuple[str, ...]]:
        """Calls with equal keys differ only in their files."""
        return self.runner.framework, self.argv


def parse_call(simple: SimpleCommand, programs: Mapping[str, str]) -> RunnerCall | None:
    """Return the runner call of a simple command; None if it starts no known runner.

    Args:
        simple: the command.
        programs: path -> name of each program of the package itself, which may be the runner.
    """
    words = list(simple.words)
    runner_start = _match_runner(words, programs)
    if runner_start is None:
        return None
    runner, count = runner_start
    program, arguments = words[:count], words[count:]
    options, paths = _split_arguments(arguments, runner)
    env = [
        f"{name}={value}"
        for name, value in simple.env
        if name not in ("NODE_ENV", "CI", "FORCE_COLOR") and "$" not in value
    ]
    if words[0] in _EQUIVALENTS:
        # Without the variable, these wrappers start jest in watch mode, which never ends.
        env.append("CI=true")
    prefix = ["env", *env] if env else []
    return RunnerCall(runner=runner, argv=(*prefix, *program, *options), paths=tuple(paths), script=simple.script)


def _match_runner(words: Sequence[str], programs: Mapping[str, str]) -> tuple[NodeTestRunner, int] | None:
    """Return (runner, number of words that start it)."""
    if words[0] == "bun" and "test" in words:
        return BUN, words.index("test") + 1
    if words[0] in RUNNERS:
        return RUNNERS[words[0]], 1
    if runner := _find_own_runner(words[0], programs) or _find_installed_runner(words[0]):
        return runner, 1
    if words[0] in _EQUIVALENTS:
        word = _EQUIVALENTS[words[0]]
        count = words.index(word) + 1 if word in words else 0 if word else 1
        return (RUNNERS["jest"], count) if count else None
    if words[0] in _LOADERS:
        positions = range(1, len(words))
        return next((match for place in positions if (match := _match_loader(words, place, programs))), None)
    return None


def _find_own_runner(word: str, programs: Mapping[str, str]) -> NodeTestRunner | None:
    return RUNNERS.get(programs.get(posixpath.normpath(word), ""))


def _find_installed_runner(word: str) -> NodeTestRunner | None:
    name = _EXECUTABLE.search(word) if "node_modules" in word else None
    return RUNNERS.get(name[1]) if name else None


_EXECUTABLE = re.compile(
    r"(?:^|/)(?:\.bin|(?:jest|vitest|mocha|ava|borp|tape|jest-cli)(?:/\w+)?)/_?([\w-]+)(?:\.m?js)?$"
)


def _match_loader(
    words: Sequence[str], position: int, programs: Mapping[str, str]
) -> tuple[NodeTestRunner, int] | None:
    """Return (runner, number of words that start it) if node or a loader starts the word at `position`."""
    word = words[position]
    if runner := _find_own_runner(word, programs) or _find_installed_runner(word):
        return runner, position + 1
    # A loader or a script may start a runner, too; after `node` the word must follow a script.
    if word in RUNNERS and (words[0] != "node" or words[position - 1].endswith("js")):
        return RUNNERS[word], position + 1
    if word == "--test" or word.startswith("--test="):
        return NODE_TEST, 1
    is_test = not word.startswith("-") and re.search(r"(^|/)(_?tests?|spec)([/._-]|$)", word)
    return (PLAIN_NODE, 1) if is_test else None


def _split_arguments(words: Sequence[str], runner: NodeTestRunner) -> tuple[list[str], list[str]]:
    """Return (kept options, files and patterns)."""
    options: list[str] = []
    paths: list[str] = []
    expects_value, expects_path, is_kept = False, False, False
    for word in words:
        name, equals, value = word.partition("=")
        if expects_path:
            expects_path = False
            paths.append(word)
        elif runner.path_options and not expects_value and re.fullmatch(runner.path_options, name):
            expects_path = not equals
            paths += [value] if equals else []
        elif expects_value:
            expects_value = False
            if is_kept:
                options.append(word)
        elif word.startswith("-") and word != "-":
            is_kept = not (runner.dropped_options and re.fullmatch(runner.dropped_options, name))
            expects_value = not equals and bool(runner.value_options and re.fullmatch(runner.value_options, name))
            if is_kept:
                options.append(word)
        # A word with an unexpanded variable names no file; a `$` at the end belongs to a regex.
        elif word not in runner.subcommands and "$" not in word.removesuffix("$"):
            paths.append(word)
    return options, paths
