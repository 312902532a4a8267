"""The test runners: how their command lines read, and which options belong into a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from languages.node.scripts import Simple


@dataclass(frozen=True, kw_only=True)
class Runner:
    """One test runner. Options are regexes on the whole name, without `=value`."""

    framework: str
    """Of `languages.node.frameworks`."""
    package: str
    """In package.json; empty for Node itself."""
    with_value: str = ""
    """Options that take the next word, `=` aside."""
    dropped: str = ""
    """Options that report, watch, measure coverage or hurry: nothing of what a test says depends on them."""
    words: tuple[str, ...] = ()
    """Subcommands, such as `run`, that the framework's shell writes itself."""


RUNNERS: dict[str, Runner] = {
    "jest": Runner(
        framework="jest", package="jest",
        with_value=r"-c|--config|--projects|--selectProjects|--rootDir|--roots|-t|--testNamePattern|--testPathPatterns?"
                   r"|--env|--testEnvironment|--maxWorkers|-w|--testTimeout|--preset|--shard|--coverageDirectory|--reporters"
                   r"|--coverageReporters|--testPathIgnorePatterns|--modulePathIgnorePatterns|--outputFile|--runner"
                   r"|--collectCoverageFrom|--setupFilesAfterEnv|--cacheDirectory|--logHeapUsage|--workerIdleMemoryLimit",
        dropped=r"--coverage\w*|--collectCoverage\w*|--watch\w*|--ci|--silent|--verbose|--reporters|--json|--outputFile|-i"
                r"|--bail|-b|--colors?|--no-coverage|--notify|--onlyChanged|-o|--changedSince|-u|--updateSnapshot|--forceExit"
                r"|--maxWorkers|-w|--shard|--detectOpenHandles|--no-cache|--clearCache|--logHeapUsage|--passWithNoTests",
    ),
    "vitest": Runner(
        framework="vitest", package="vitest", words=("run", "watch", "dev"),
        with_value=r"-c|--config|-r|--root|--dir|--project|--environment|--mode|-t|--testNamePattern|--reporter|--outputFile"
                   r"|--pool|--maxWorkers|--minWorkers|--testTimeout|--hookTimeout|--shard|--retry|--exclude|--workspace",
        dropped=r"--coverage[\w.]*|--watch|-w|--run|--reporter|--outputFile|--ui|--open|--silent|--bail|--shard|-u|--update"
                r"|--changed|--no-watch|--no-color|--color|--hideSkippedTests|--typecheck[\w.]*|--passWithNoTests|--no-coverage",
    ),
    "mocha": Runner(
        framework="mocha", package="mocha",
        with_value=r"-r|--require|--import|-t|--timeout|--timeouts|-s|--slow|-u|--ui|--config|--opts|--spec|--file|--ignore"
                   r"|--exclude|-R|--reporter|-O|--reporter-options?|-g|--grep|-f|--fgrep|--extension|--ext|--compilers|-j|--jobs"
                   r"|--globals?|--watch-files|--retries|--loader|--experimental-loader|-n|--node-option|-C"
                   r"|--package|--es-module.*",
        dropped=r"-R|--reporter|-O|--reporter-options?|-w|--watch|--watch-files|--bail|-b|--colors?|-c|--no-colors?|-C"
                r"|--parallel|-p|-j|--jobs|--growl|-G|--exit|--no-exit|--inspect.*|--forbid-only|--forbid-pending"
                r"|--full-trace",
    ),
    "ava": Runner(
        framework="ava", package="ava",
        with_value=r"--config|--match|-m|--concurrency|-c|--timeout|-T|--node-arguments",
        dropped=r"--tap|-t|--timeout|-T|--verbose|-v|--watch|-w|--fail-fast|--color|--no-color|--concurrency|-c|--serial|-s|-u"
                r"|--update-snapshots",
    ),
    "tape": Runner(framework="tap", package="tape", with_value=r"-r|--require|-i|--ignore", dropped=r"--no-only"),
    "tap": Runner(
        framework="tap", package="tap",
        with_value=r"-R|--reporter|-j|--jobs|-t|--timeout|--node-arg|--test-arg|-T|--coverage-map",
        dropped=r"-.*",
    ),
    "borp": Runner(
        framework="borp", package="borp",
        with_value=r"-r|--reporter|-c|--concurrency|-t|--timeout|-p|--pattern|--ignore|-i"
                   r"|--lines|--branches|--functions|--statements|-X|--coverage-exclude|--config",
        dropped=r"--reporter|-r|--coverage|-C|--check-coverage|--lines|--branches|--functions|--statements|-X"
                r"|--coverage-exclude|--watch|-w|--concurrency|-c",
    ),
}  # fmt: skip
"""Name of the executable -> runner."""

NODE_TEST = Runner(
    framework="node:test", package="",
    with_value=r"-r|--require|--import|--loader|--experimental-loader|--test-name-pattern|--test-reporter"
               r"|--test-reporter-destination|--test-timeout|--test-concurrency|-C|--conditions|--env-file|--test-isolation"
               r"|--test-skip-pattern|--test-shard",
    dropped=r"--test-reporter(-destination)?|--experimental-test-coverage|--test-coverage.*|--watch|--test-only|--test-shard"
            r"|--test-concurrency|--test-update-snapshots|--test",
)  # fmt: skip
PLAIN_NODE = Runner(
    framework="tap", package="", with_value=r"-r|--require|--import|--loader|--experimental-loader|-C|--conditions"
)

BROWSERS = frozenset(
    (  # noqa: SIM905 - one word a line would hide the list
        "karma wtr web-test-runner testem cypress playwright wdio nightwatch testcafe protractor airtap zuul "
        "webpack-dev-server"
    ).split()
)
"""Runners that need a browser."""

_EQUIVALENTS = {"react-scripts": "test", "craco": "test", "kcd-scripts": "test", "tsdx": "test", "dts": "test",
                "vue-cli-service": "test:unit", "wp-scripts": "test-unit-js", "kent": "test", "jest-cli": "",
                "react-app-rewired": "test", "umi-test": "", "lerna-jest": ""}  # fmt: skip
"""Commands that run jest with a configuration of their own -> their word for it."""
_LOADERS = frozenset({"tsx", "ts-node", "ts-node-esm", "babel-node", "esmo", "tsm", "sucrase-node", "node"})


@dataclass(frozen=True, kw_only=True)
class Call:
    """A runner's command line, taken apart."""

    runner: Runner
    argv: tuple[str, ...]
    paths: tuple[str, ...]
    script: str

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """Calls with the same key differ only in their files."""
        return self.runner.framework, self.argv


def read_call(simple: Simple) -> Call | None:
    """The runner that a simple command starts; None when it starts none that is known."""
    words = list(simple.words)
    start = _start(words)
    if start is None:
        return None
    runner, count = start
    head, rest = words[:count], words[count:]
    options, paths = _sorted_out(rest, runner)
    env = [
        f"{name}={value}"
        for name, value in simple.env
        if name not in ("NODE_ENV", "CI", "FORCE_COLOR") and "$" not in value
    ]
    if words[0] in _EQUIVALENTS:
        env.append("CI=true")  # else it waits for changes
    prefix = ["env", *env] if env else []
    return Call(runner=runner, argv=(*prefix, *head, *options), paths=tuple(paths), script=simple.script)


def _start(words: Sequence[str]) -> tuple[Runner, int] | None:
    """(runner, how many words start it)."""
    if words[0] in RUNNERS:
        return RUNNERS[words[0]], 1
    if words[0] in _EQUIVALENTS:
        word = _EQUIVALENTS[words[0]]
        count = words.index(word) + 1 if word in words else 0 if word else 1
        return (RUNNERS["jest"], count) if count else None
    if words[0] in _LOADERS:
        return next((found for at in range(1, len(words)) if (found := _loaded(words, at))), None)
    return None


_EXECUTABLE = re.compile(
    r"(?:^|/)(?:\.bin|(?:jest|vitest|mocha|ava|borp|tape|jest-cli)(?:/\w+)?)/_?([\w-]+)(?:\.m?js)?$"
)


def _loaded(words: Sequence[str], at: int) -> tuple[Runner, int] | None:
    """(runner, how many words start it), where node or a loader such as tsx starts it by its word `at`."""
    word = words[at]
    name = _EXECUTABLE.search(word)
    if name and name[1] in RUNNERS and "node_modules" in word:
        return RUNNERS[name[1]], at + 1
    if word in RUNNERS and (words[0] != "node" or words[at - 1].endswith("js")):  # a script may start it, too
        return RUNNERS[word], at + 1
    if word == "--test" or word.startswith("--test="):
        return NODE_TEST, 1
    is_test = not word.startswith("-") and re.search(r"(^|/)(_?tests?|spec)([/._-]|$)", word)
    return (PLAIN_NODE, 1) if is_test else None


def _sorted_out(words: Sequence[str], runner: Runner) -> tuple[list[str], list[str]]:
    """(options that are kept, files and patterns)."""
    options: list[str] = []
    paths: list[str] = []
    waiting, kept = False, False
    for word in words:
        if waiting:
            waiting = False
            if kept:
                options.append(word)
        elif word.startswith("-") and word != "-":
            name = word.partition("=")[0]
            kept = not (runner.dropped and re.fullmatch(runner.dropped, name))
            waiting = "=" not in word and bool(runner.with_value and re.fullmatch(runner.with_value, name))
            if kept:
                options.append(word)
        elif word not in runner.words and "$" not in word:
            paths.append(word)
    return options, paths
